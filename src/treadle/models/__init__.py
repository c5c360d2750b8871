"""Whole models, read from the files in which they are published."""
