"""The rules: pure Python, state in, verdict out. No I/O, clock, framework or Kubernetes client."""
