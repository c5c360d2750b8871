"""That every kernel of the samples is either tried or excluded for a reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tools.cuda_corpus.sources import WHOLE, files, kernels_in, read
from tools.cuda_corpus.spec import REASONS
from tools.cuda_corpus.trials import ALL, BEYOND, EXCLUDED, MORE, TRIALS

Key = tuple[str, str]


def tried() -> set[Key]:
    """Files and kernels of the trials of all that is not excluded."""
    return {(trial.file, trial.kernel) for trial in (*TRIALS, *MORE)}


def problems(sources: Path) -> list[str]:
    """Kernels that nobody lists, and lines of the lists that stand for none."""
    there = {
        (str(path.relative_to(sources)), kernel)
        for path in files(sources)
        if path.relative_to(sources).parts[0] in WHOLE
        for kernel in kernels_in(read(path))
    }
    excluded = {(one.file, one.kernel) for one in EXCLUDED}
    found = [f"{file}: {name} is not listed" for file, name in sorted(there - tried() - excluded)]
    whole = {one for one in tried() | excluded if one[0].partition("/")[0] in WHOLE}
    gone = sorted(whole - there)
    found += [f"{file}: {name} is listed, and not there" for file, name in gone]
    both = sorted(tried() & excluded)
    found += [f"{file}: {name} is tried and excluded" for file, name in both]
    beyond = {(trial.file, trial.kernel) for trial in BEYOND}
    found += [f"{file}: {name} is not excluded" for file, name in sorted(beyond - excluded)]
    found += [
        f"{one.file}: {one.reason} is no reason" for one in EXCLUDED if one.reason not in REASONS
    ]
    twice = [name for name, count in Counter(trial.name for trial in ALL).items() if count > 1]
    return [*found, *(f"{name} is there twice" for name in twice)]
