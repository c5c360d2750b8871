"""Notebooks of the documentation that run in the browser, and what builds their pages."""
