"""The REST API: routes over `service`, and nothing else."""
