"""Call PyTorch's samples of its operators through `treadle.torch`, and say what differs.

python tools/torch_parity.py add sum cat          # some operators, all samples, with messages
python tools/torch_parity.py --count 3            # all operators, few samples each
python tools/torch_parity.py --part 2/6 --json out.json
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.parity import comparing, interface  # noqa: E402
from tests.parity.comparing import torch  # noqa: E402
from tests.parity.interface import Tally  # noqa: E402

DTYPES = ("float32", "float64", "int64", "bool")


def documented() -> set[str]:
    """The names of PyTorch's documentation: public functions that it lists."""
    listed = {f"{name}" for name in dir(torch) if not name.startswith("_")}
    for module in ("linalg", "fft", "special", "nn.functional"):
        space: Any = torch
        for part in module.split("."):
            space = getattr(space, part)
        listed |= {f"{module}.{name}" for name in dir(space) if not name.startswith("_")}
    return listed | {name for name in dir(torch.Tensor) if not name.startswith("_")}


def run(operators: list[Any], dtypes: tuple[str, ...], count: int, device: str) -> list[Tally]:
    """A tally for each operator."""
    found = []
    for operator in operators:
        label = f"{operator.name}-{operator.variant_test_name}".rstrip("-")
        tally = Tally(label)
        for name in dtypes:
            dtype = getattr(torch, name)
            if dtype in operator.supported_dtypes("cpu"):
                interface.check(operator, dtype, count, device, tally)
        found.append(tally)
    return found


def main() -> int:
    """What came of the samples, a line an operator that is not all right, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_Formatter)
    parser.add_argument("names", nargs="*", help="operators by PyTorch's names; none: all")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--count", type=int, default=10_000, help="samples of an operator's dtype")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--part", default="1/1", help="2/6: the second of six parts")
    parser.add_argument("--eager", action="store_true", help="one kernel an operation: faster here")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--messages", type=int, default=3, help="of each operator")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    part, of = map(int, options.part.split("/"))
    operators = [
        each
        for each in comparing.operators().values()
        if not options.names or each.name in options.names
    ][part - 1 :: of]
    listed = documented()
    dtypes = tuple(options.dtypes.split(","))
    sums: Counter[str] = Counter()
    tallies = []
    for operator in operators:
        with comparing.one_by_one(options.eager or not options.names):
            (tally,) = run([operator], dtypes, options.count, options.device)
        tallies.append(tally)
        is_listed = operator.name in listed
        kind = "listed" if is_listed else "other"
        sums.update({f"{kind} right": tally.right, f"{kind} refused": len(tally.refused),
                     f"{kind} wrong": len(tally.wrong)})  # fmt: skip
        if tally.refused or tally.wrong:
            rest = "" if is_listed else " (not listed)"
            counts = f"{tally.right} right, {len(tally.refused)} refused, {len(tally.wrong)} wrong"
            print(f"{tally.name}: {counts}{rest}", flush=True)
            for message in [*dict.fromkeys(tally.refused), *tally.wrong][: options.messages]:
                print(f"    {message}", flush=True)
    print(dict(sums))
    if options.json:
        options.json.write_text(json.dumps([vars(each) for each in tallies], indent=1))
    return int(any(each.wrong for each in tallies))


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Leaves the examples as they are."""


if __name__ == "__main__":
    sys.exit(main())
