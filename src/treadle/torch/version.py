"""`torch.version`: which PyTorch's interface this is."""

__version__ = "2.13.0+treadle"
cuda = None
hip = None
xpu = None
debug = False
git_version = "unknown"
