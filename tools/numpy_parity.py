"""Call NumPy's functions with drawn arrays, by NumPy and by `treadle.numpy`, and say what differs.

python tools/numpy_parity.py sum where            # some names, with messages
python tools/numpy_parity.py --draws 3            # all names, few draws each
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import treadle.numpy  # noqa: E402
from tests.parity import numpy_cases, numpy_interface  # noqa: E402


def main() -> int:
    """What came of the calls, a line a name that is not all right, and the sum."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="functions by NumPy's names; none: all")
    parser.add_argument("--draws", type=int, default=14)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--part", default="1/1", help="2/6: the second of six parts")
    parser.add_argument("--messages", type=int, default=3, help="of each name")
    options = parser.parse_args()
    part, of = map(int, options.part.split("/"))
    names = [name for name in numpy_cases.all_cases() if not options.names or name in options.names]
    if options.device != "cpu":
        treadle.numpy.set_device(options.device)
    whole = right = refused = wrong = 0
    for name in sorted(names)[part - 1 :: of]:
        seeds = range(options.first, options.first + options.draws)
        found = numpy_interface.tally(name, numpy_cases.all_cases()[name], seeds, options.device)
        right, refused, wrong = (
            right + found.right,
            refused + len(found.refused),
            wrong + len(found.wrong),
        )
        whole += not found.refused and not found.wrong
        if found.refused or found.wrong:
            counts = f"{found.right} right, {len(found.refused)} refused, {len(found.wrong)} wrong"
            print(f"{name}: {counts}", flush=True)
            for message in [*found.wrong, *found.refused][: options.messages]:
                print(f"    {message}", flush=True)
    print(
        f"{whole} of {len(names)} names right in all; calls: {right} right, {refused} refused, "
        f"{wrong} wrong"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
