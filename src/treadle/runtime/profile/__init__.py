"""What ran, when, and for how long: `td.profile()`.

While a profile is active, each stream's driver is wrapped in one that notes what passes through it
(`watch.py`); where more is known than a driver receives, the launch path says so (`profiler.py`).
"""
