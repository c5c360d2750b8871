"""`td.profile()`: records what ran, when, and for how long.

While a profile is active, each driver stream is wrapped in one that records the calls
(`profiled_stream.py`). What a driver does not receive, such as a launch's arguments, the launch
path reports (`profiler.py`).
"""
