"""Benchmarks: `python -m bench [figure ...]` measures the performance budget on this machine."""
