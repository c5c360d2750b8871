"""The autotuner: which of several kernels that compute the same is the fastest on a device.

`records` says what a problem, a candidate and a family are; `choices` is what planners ask, and
keeps results on disk; `clock` measures; `tuner` goes through candidates within a budget. It knows
no kernel: families are made by the kernel library (`kernels/tuned_families.py`).
"""
