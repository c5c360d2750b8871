"""Speed, measured beside a peer in the same run. `python -m benchmarks --help` says how."""
