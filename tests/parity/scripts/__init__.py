"""Small programs in the style of well-known ones, which run under PyTorch and under treadle.torch
(`test_scripts.py`): each has a `main` that returns numbers."""
