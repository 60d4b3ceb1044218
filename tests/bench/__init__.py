"""Benchmarks: one command each, ``python -m tests.bench NAME``. Figures are in docs/performance.md."""
