"""Drivers: one package (or file) each, one protocol (`base`)."""
