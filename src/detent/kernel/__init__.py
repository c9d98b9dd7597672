"""The pure kernel: decides what happens next from a definition, a snapshot and recorded inputs."""
