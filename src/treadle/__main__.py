"""`python -m treadle` is `treadle`."""

from treadle.cli.app import main

main()
