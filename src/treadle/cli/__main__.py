"""`python -m treadle.cli` is `treadle`."""

from treadle.cli.app import main

main()
