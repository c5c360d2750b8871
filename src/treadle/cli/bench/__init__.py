"""What `treadle bench` measures on this machine, and how it shows it."""
