"""GPU computing that does not care whose GPU it is: one kernel, every GPU."""

__version__ = "0.1.0"
