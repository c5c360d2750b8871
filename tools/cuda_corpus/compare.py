"""Whether what two machines computed is the same, by a trial's own measure."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tools.cuda_corpus.spec import Exact, Holds, Levels, Norm, NumPy, Printed, Share, Trial


def difference(trial: Trial, found: list[NumPy], expected: list[NumPy]) -> str:
    """What is not as it should be, or ""."""
    if len(found) != len(expected):
        return f"{len(found)} outputs and {len(expected)}"
    match trial.agreement:
        case Holds(true, why):
            for outputs, whose in ((found, "here"), (expected, "with CUDA")):
                if not true(outputs):
                    return f"it does not hold {whose}: {why}"
            return ""
        case Printed():
            return ""
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True), 1):
        problem = _one(trial, ours, theirs)
        if problem:
            return f"output {number}: {problem}" if len(found) > 1 else problem
    return ""


def difference_of_lines(found: str, expected: str) -> str:
    """The same of what was printed."""
    ours, theirs = Counter(found.splitlines()), Counter(expected.splitlines())
    if ours == theirs:
        return ""
    more, less = (ours - theirs).total(), (theirs - ours).total()
    return f"{less} lines of CUDA's are missing, and {more} are others"


def _one(trial: Trial, ours: NumPy, theirs: NumPy) -> str:
    if ours.dtype.name == "bfloat16" and theirs.dtype == ours.dtype:
        ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{ours.shape} and {theirs.dtype}{theirs.shape}"
    if ours.dtype.names:
        parts = (_one(trial, ours[name], theirs[name]) for name in ours.dtype.names)
        return next((part for part in parts if part), "")
    if isinstance(trial.agreement, Norm) and trial.agreement.view:
        ours, theirs = ours.view(trial.agreement.view), theirs.view(trial.agreement.view)
    floating = ours.dtype.kind == "f"
    match trial.agreement:
        case Norm(most) if floating:
            return _by_norm(ours, theirs, most)
        case Levels(most, _):
            steps = ours.view(np.uint8).astype(int) - theirs.view(np.uint8).astype(int)
            worst = int(np.abs(steps).max(initial=0))
            return "" if worst <= most else f"bytes differ by up to {worst}"
        case Share(most, _):
            share = float(np.mean(_unequal(ours, theirs))) if ours.size else 0.0
            return "" if share <= most else f"{100 * share:.1f} % of the elements differ"
        case Exact() | Norm():
            count = int(_unequal(ours, theirs).sum())
            return "" if count == 0 else f"{count} of {ours.size} elements differ"
    raise AssertionError(trial.agreement)


def _unequal(ours: NumPy, theirs: NumPy) -> NumPy:
    unequal = ours != theirs
    if ours.dtype.kind == "f":
        unequal &= ~(np.isnan(ours) & np.isnan(theirs))
    return np.asarray(unequal)


def _by_norm(ours: NumPy, theirs: NumPy, most: float) -> str:
    finite = np.isfinite(theirs)
    if _unequal(np.where(finite, 0, ours), np.where(finite, 0, theirs)).any():
        return "infinities or what is no number are elsewhere"
    wide = np.where(finite, ours, 0).astype(np.float64), np.where(finite, theirs, 0).astype(float)
    if not np.isfinite(wide[0]).all():
        return "infinities or what is no number where CUDA has none"
    norm = float(np.linalg.norm(wide[1].ravel()))
    error = float(np.linalg.norm((wide[0] - wide[1]).ravel())) / (norm or 1.0)
    return "" if error <= most else f"relative error {error:.1e}"
