"""File formats, as bytes on a disk and NumPy arrays."""
