"""The kernel language: Python functions that run on every device."""
