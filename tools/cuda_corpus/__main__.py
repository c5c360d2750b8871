"""The command line; what it does is told in `tools.cuda_corpus`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tools.cuda_corpus as package
from tools.cuda_corpus import accept, cubins, page, results, work
from tools.cuda_corpus.acceptance_table import RECORDS
from tools.cuda_corpus.listing import problems
from tools.cuda_corpus.trials import ALL


def main() -> None:
    """Do one of the commands."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.cuda_corpus",
        description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    made = {name: commands.add_parser(name) for name in ("check", "cubins", "carry", "compare")}
    made["page"], made["work"] = commands.add_parser("page"), commands.add_parser("work")
    for name in ("check", "cubins", "carry", "compare", "work"):
        made[name].add_argument("--sources", type=Path, required=True)
    for name in ("cubins", "carry"):
        made[name].add_argument("--out", type=Path, required=True)
    made["carry"].add_argument("--cubins", type=Path, required=True)
    for name in ("compare", "work"):
        made[name].add_argument("--cubins", type=Path)
    made["compare"].add_argument("--devices", default="cpu,webgpu")
    made["compare"].add_argument("--only", default="", help="trials whose name has this in it")
    made["compare"].add_argument("--name", default="", help="of the file in benchmarks/results")
    made["compare"].add_argument("--jobs", type=int, default=1, help="processes at a time")
    made["compare"].add_argument("--keep", type=Path, help="a folder for outputs")
    for option in ("--todo", "--told", "--folder"):
        made["work"].add_argument(option, type=Path, required=True)
    made["work"].add_argument("--stage", required=True)
    accepted = commands.add_parser("accept")
    accepted.add_argument("--sources", type=Path, nargs="+", required=True, help="one project each")
    accepted.add_argument("--out", type=Path, required=True, help="a folder for results")
    accepted.add_argument("--jobs", type=int, default=1, help="processes at a time")
    accepted.add_argument("--every", type=int, default=1, help="only every so many-th file")
    accepted.add_argument("--only", default="", help="files whose path has this in it")
    accepted.add_argument(
        "--record",
        choices=tuple(RECORDS),
        help="keep the counts for the page: of known projects, of three sets not seen before, of "
        "the first of these once more",
    )
    accepted.add_argument("--without", help="no files whose path has this in it")
    accepted.add_argument(
        "--include", type=Path, nargs="*", default=(), help="folders of libraries that files use"
    )
    accepted.add_argument("--again", choices=("changed", "refused", "lost"), default="changed")
    chosen = parser.parse_args()
    match chosen.command:
        case "check":
            found = problems(chosen.sources)
            sys.exit("\n".join(found) if found else 0)
        case "cubins":
            manifest = cubins.build(ALL, chosen.sources, chosen.out)
            built = sum("cubin" in one for one in manifest.values())
            print(f"{built} of {len(manifest) - 1} trials")
        case "carry":
            size = cubins.carry(chosen.sources, chosen.cubins, chosen.out)
            print(f"{size / (1 << 20):.1f} MiB in {chosen.out}")
        case "compare":
            results.compare(chosen)
        case "accept":
            accept.accept(chosen)
        case "page":
            page.write()
        case "work":
            work.work(
                chosen.stage, chosen.todo, chosen.told, chosen.sources, chosen.cubins, chosen.folder
            )


if __name__ == "__main__":
    main()
