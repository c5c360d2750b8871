"""`python tools/tuned.py FILE… [--also NAME]`: results of `treadle tune --json FILE` into the table
that is shipped, `src/treadle/tuning/shipped.json`.

A device's entry there is replaced problem by problem. Results whose choice is hardly faster than
the first guess are left out. `--also` gives the beginning of the name of another device that has
the same hardware, as "cuda NVIDIA H100" for results of an H200. Of a name what stands in
parentheses is left out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).parents[1] / "src/treadle/tuning/shipped.json"
_GAIN = 1.05  # less is not worth an entry


def merged(content: dict[str, Any], results: dict[str, Any], also: list[str]) -> dict[str, Any]:
    """The table with a file's results.

    >>> one = {"results": {"p": {"choice": ["k", 1], "gain": 1.5}, "q": {"choice": [], "gain": 1}}}
    >>> table = merged({"devices": []}, {"device": "cuda X (1)", "driver": "d"} | one, ["cuda Y"])
    >>> table["devices"][0]["names"], table["devices"][0]["choices"], table["devices"][0]["gains"]
    (['cuda X', 'cuda Y'], {'p': ['k', 1]}, {'p': 1.5})
    """
    name = results["device"].partition(" (")[0]
    found = {
        problem: each["choice"]
        for problem, each in results["results"].items()
        if each["gain"] >= _GAIN
    }
    devices = [dict(each) for each in content["devices"]]
    entry = next((each for each in devices if name in each["names"]), None)
    if entry is None:
        entry = {"names": [name], "driver": "", "choices": {}}
        devices.append(entry)
    kept = {p: c for p, c in entry["choices"].items() if p not in results["results"]}
    entry["names"] = list(dict.fromkeys([*entry["names"], *also]))
    entry["driver"] = results["driver"]
    entry["choices"] = dict(sorted((kept | found).items()))
    gains = {p: gain for p, gain in entry.get("gains", {}).items() if p in kept}
    gains |= {p: round(results["results"][p]["gain"], 2) for p in found}
    entry["gains"] = dict(sorted(gains.items()))
    return {"devices": devices}


def written(content: dict[str, Any]) -> str:
    """The table as text, a line for each problem."""
    parts = []
    for each in content["devices"]:
        head = f'{{"names": {json.dumps(each["names"])}, "driver": {json.dumps(each["driver"])},'
        choices = ",\n".join(
            f"   {json.dumps(name)}: {json.dumps(choice)}"
            for name, choice in each["choices"].items()
        )
        gains = json.dumps(each.get("gains", {}))
        parts.append(f'  {head}\n  "choices": {{\n{choices}\n  }},\n  "gains": {gains}}}')
    return '{"devices": [\n' + ",\n".join(parts) + "\n]}\n"


def main() -> None:
    """Merge the files that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--also", action="append", default=[])
    options = parser.parse_args()
    content = json.loads(SHIPPED.read_text())
    for file in options.files:
        content = merged(content, json.loads(file.read_text()), options.also)
    SHIPPED.write_text(written(content))


if __name__ == "__main__":
    main()
