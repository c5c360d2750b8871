"""Call PyTorch's samples of its operators through `treadle.torch`, and say what differs.

python tools/torch_parity.py add sum cat          # some operators, all samples, with messages
python tools/torch_parity.py --count 3            # all operators, few samples each
python tools/torch_parity.py --dtypes float64 --part 2/6 --json out.json
python tools/torch_parity.py --page out.json …    # what came of whole runs, as a page of the docs
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

PAGE = ROOT / "docs" / "torch_samples.md"
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
    parser.add_argument("--page", type=Path, nargs="+", help="write the page from these files")
    parser.add_argument("--messages", type=int, default=3, help="of each operator")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page([json.loads(each.read_text()) for each in options.page]))
        return 0
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
    tallies: list[tuple[bool, Tally]] = []
    for operator in operators:
        with comparing.one_by_one(options.eager or not options.names):
            (tally,) = run([operator], dtypes, options.count, options.device)
        is_listed = operator.name in listed
        tallies.append((is_listed, tally))
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
        record = {
            "device": options.device,
            "dtypes": options.dtypes,
            "count": options.count,
            "torch": torch.__version__.partition("+")[0],
            "sums": dict(sums),
            "operators": sum(is_listed and tally.samples > 0 for is_listed, tally in tallies),
            "others": [
                {"name": each.name, "refused": list(dict.fromkeys(each.refused)),
                 "refusals": len(each.refused), "wrong": each.wrong}
                for is_listed, each in tallies if is_listed and (each.refused or each.wrong)
            ],
        }  # fmt: skip
        options.json.write_text(json.dumps(record, indent=1))
    return int(any(tally.wrong for _, tally in tallies))


_HEAD = """# PyTorch's samples

*Written by `tools/torch_parity.py --page`.*

PyTorch tests its operators with samples of arguments. Here each is called through `treadle.torch`
exactly as PyTorch {version} is called, as a function, as a method, in place and with `out=`, and
compared: shape, dtype and values, and in float64 the gradients. Counted are the operators that
PyTorch's documentation lists{few}.

| device | dtype | operators | samples | right | refused by name | wrong |
|---|---|---|---|---|---|---|
"""


def _advice(refusal: str) -> str:
    """What a refusal says besides the name."""
    _, _, rest = refusal.partition("has no attribute ")
    return rest.partition(": ")[2] or "PyTorch does not document it"


def page(records: list[dict[str, Any]]) -> str:
    """The page of runs, whose parts are added up by device and dtype."""
    sums: dict[tuple[str, str], Counter[str]] = {}
    others: dict[str, Counter[str]] = {}
    for record in records:
        key = record["device"], record["dtypes"]
        sums.setdefault(key, Counter()).update(record["sums"])
        sums[key]["operators"] += record["operators"]
        for each in record["others"]:
            reasons = others.setdefault(each["name"], Counter())
            if each["refused"]:
                reasons[f"refused: {_advice(each['refused'][0])}"] += each["refusals"]
            reasons.update(f"wrong: {text.rpartition(': ')[2]}" for text in each["wrong"])
    count = min(record["count"] for record in records)
    few = "" if count >= 10_000 else f", with at most {count} samples of a dtype"
    lines = [_HEAD.format(version=records[0]["torch"], few=few)]
    for (device, dtypes), found in sums.items():
        right, refused, wrong = (found[f"listed {what}"] for what in ("right", "refused", "wrong"))
        total = max(right + refused + wrong, 1)
        lines.append(
            f"| {device} | {dtypes} | {found['operators']} | {total:,} | "
            f"{right:,} ({right / total:.1%}) | {refused:,} | {wrong:,} |\n"
        )
    if others:
        lines.append(
            "\nThose that are not all right:\n\n| operator | samples | what |\n|---|---|---|\n"
        )
    for name, reasons in sorted(others.items()):
        for text, number in reasons.items():
            shown = text.replace("|", "\\|").replace("<", "&lt;")
            lines.append(f"| `{name}` | {number} | {shown[:160]} |\n")
    return "".join(lines)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Leaves the examples as they are."""


if __name__ == "__main__":
    sys.exit(main())
