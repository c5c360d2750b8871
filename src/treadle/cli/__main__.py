"""`python -m treadle.cli` is `treadle`."""

from treadle.cli import main

main()
