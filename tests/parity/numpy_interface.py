"""Calls of `numpy_cases` with drawn arrays, by NumPy and by `treadle.numpy`: values, dtypes, shapes
and kinds of errors."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy  # noqa: ICN001

import treadle.numpy as ours
from treadle.numpy.arrays import Values, ndarray

DTYPES = (
    "float64", "float32", "int64", "int32", "bool", "complex128", "uint8", "int8", "float16",
    "int16", "uint32", "complex64", "uint64", "uint16",
)  # fmt: skip
# Shapes that broadcast in pairs.
SHAPES = (
    ((3, 4), (4,)), ((5,), (5,)), ((), ()), ((2, 1, 3), (7, 3)), ((1,), (1,)), ((0,), (0,)),
    ((4, 1), (1, 5)), ((0, 3), (3,)), ((2, 3, 5), ()), ((17,), (1,)),
)  # fmt: skip
_TOLERANCE = {"float16": 4e-3, "float32": 3e-5, "complex64": 3e-5, "float64": 1e-11,
              "complex128": 1e-11}  # fmt: skip


@dataclass
class Tally:
    """What came of the calls of a name."""

    name: str
    right: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Different(AssertionError):
    """What is not as NumPy has it."""


def drawn(
    random: numpy.random.Generator, dtype: str, shape: tuple[int, ...], low: int = -4, high: int = 5
) -> Any:
    """An array of small numbers."""
    kind = numpy.dtype(dtype)
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if kind.kind == "u":
        return random.integers(max(low, 0), high, shape).astype(kind)
    if kind.kind == "i":
        return random.integers(low, high, shape).astype(kind)
    values = random.uniform(low, high, shape) / 2
    values = numpy.where(random.random(shape) < 0.15, numpy.round(values), values)
    if kind.kind == "c":
        values = values + 1j * random.uniform(low, high, shape)
    return numpy.asarray(values, kind)


def arguments(seed: int) -> dict[str, Any]:
    """What the names in the calls stand for in a draw."""
    random = numpy.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    shapes = SHAPES[(seed // 3 + seed) % len(SHAPES)]
    floating = {"float32": "float32", "float16": "float16", "complex64": "float32"}.get(
        dtype, "float64"
    )
    x, y = (drawn(random, dtype, shape) for shape in shapes)
    f, g = (drawn(random, floating, shape) for shape in shapes)
    length = (5, 8, 3, 13)[seed % 4]
    side = (3, 2, 4)[seed % 3]
    matrix = drawn(random, floating if floating != "float16" else "float32", (side, side))
    v = drawn(random, dtype, (length,))
    h = drawn(random, floating, (7,))
    h[2] = numpy.nan
    positive = drawn(random, dtype, shapes[0], 1, 6)
    positive = positive if dtype != "bool" else numpy.ones(shapes[0], bool)
    other = DTYPES[(seed * 5 + 1) % len(DTYPES)]
    return {
        "x": x, "y": y, "f": f, "g": g, "h": h,
        "p": positive,
        "b": random.random(shapes[0]) < 0.6,
        "i": random.integers(0, 3, shapes[0]),
        "k": None if not x.ndim or seed % 3 == 0 else int(random.integers(-x.ndim, x.ndim)),
        "n": (2, 0.5, 3, True)[seed % 4],
        "v": v, "w": drawn(random, dtype, (3,)), "u": numpy.sort(drawn(random, floating, (6,))),
        "q": random.integers(0, 7, (9,)), "t": random.integers(0, length, (4,)),
        "a": drawn(random, dtype, (3, 4)), "p2": numpy.array([1.0, 2.0, 0.5]),
        "m": drawn(random, dtype, (side, side)),
        "s": matrix @ matrix.T + side * numpy.eye(side, dtype=matrix.dtype),
        "c": drawn(random, dtype, (2, 3, 3)), "d": numpy.dtype(other),
    }  # fmt: skip


def run(text: str, namespace: dict[str, Any]) -> Any:
    """The value of the last expression of some statements."""
    *statements, last = text.split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("; ".join(statements), namespace)
        return eval(last, namespace)


def taken(value: Any, device: str) -> Any:
    """An argument for `treadle.numpy`."""
    return ours.asarray(value, device=device) if isinstance(value, numpy.ndarray) else value


def check(text: str, seed: int, device: str = "cpu") -> None:
    """Different if NumPy and `treadle.numpy` do not say the same."""
    given = arguments(seed)
    theirs = {
        key: each.copy() if isinstance(each, numpy.ndarray) else each for key, each in given.items()
    }
    mine = {key: taken(each, device) for key, each in given.items()}
    with numpy.errstate(all="ignore"):
        try:
            wanted = run(text, {**theirs, "np": numpy, "io": io})
        except Exception as error:
            _check_error(error, text, {**mine, "np": ours, "io": io})
            return
    found = run(text, {**mine, "np": ours, "io": io})
    floats = [numpy.asarray(given[key]).dtype.name for key in ("x", "f")]
    if "out=np.zeros" in text:  # the result has the loop's precision
        floats.append(numpy.sqrt.resolve_dtypes((theirs["x"].dtype, None))[1].name)  # type: ignore[arg-type]
    compare(found, wanted, max(_TOLERANCE.get(each, 0.0) for each in floats))


def _check_error(error: Exception, text: str, names: dict[str, Any]) -> None:
    try:
        found = run(text, names)
        settled = repr(found)
    except NotImplementedError:
        raise  # refused here
    except Exception as mine:
        kinds = [
            kind
            for kind in type(error).__mro__
            if kind.__module__ in ("builtins", "numpy.exceptions", "numpy.linalg")
        ]
        if isinstance(error, NotImplementedError) or isinstance(mine, kinds[0]):
            return
        raise Different(
            f"NumPy raises {type(error).__name__} ({str(error)[:60]}), here it is "
            f"{type(mine).__name__}: {str(mine)[:100]}"
        ) from None
    raise Different(
        f"NumPy raises {type(error).__name__} ({str(error)[:80]}), here it is {settled[:60]}"
    )


def compare(found: Any, wanted: Any, tolerance: float = 0.0) -> None:
    """Different if two results differ."""
    if isinstance(wanted, numpy.generic) or isinstance(found, numpy.generic):
        # On the CPU elements are NumPy's own scalars.
        if type(found) is not type(wanted) and not isinstance(found, Values):
            raise Different(f"{type(found).__name__} for {type(wanted).__name__}")
        _compare_arrays(found, wanted, tolerance)
    elif isinstance(wanted, numpy.ndarray):
        if not isinstance(found, ndarray):
            raise Different(f"{type(found).__name__} for an array")
        _compare_arrays(found, wanted, tolerance)
    elif isinstance(wanted, (tuple, list)):
        if not isinstance(found, type(wanted) if type(wanted) in (tuple, list) else tuple) or len(
            found
        ) != len(wanted):
            raise Different(f"{found!r:.80} for {wanted!r:.80}")
        for one, other in zip(found, wanted, strict=True):
            compare(one, other, tolerance)
    elif isinstance(wanted, float):
        if not (
            math.isclose(found, wanted, rel_tol=max(1e-9, tolerance), abs_tol=max(1e-9, tolerance))
            or (found != found and wanted != wanted)
        ):
            raise Different(f"{found} for {wanted}")
    elif type(found) is not type(wanted) or found != wanted:
        raise Different(f"{found!r:.100} for {wanted!r:.100}")


def _compare_arrays(found: Any, wanted: Any, least: float) -> None:
    if isinstance(found, Values):
        data = found._inner.numpy()
    else:
        data = numpy.asarray(found)
    goal = numpy.asarray(wanted)
    if isinstance(found, Values) and data.dtype != goal.dtype:
        raise Different(f"dtype {data.dtype} for {goal.dtype}")
    if data.shape != goal.shape:
        raise Different(f"shape {data.shape} for {goal.shape}")
    tolerance = _TOLERANCE.get(goal.dtype.name)
    if tolerance is None:
        if not numpy.array_equal(data, goal):
            raise Different(f"{data.ravel()[:8].tolist()} for {goal.ravel()[:8].tolist()}")
        return
    tolerance = max(tolerance, least)
    with numpy.errstate(all="ignore"):
        finite = numpy.abs(goal[numpy.isfinite(goal)])
        scale = max(float(finite.max()), 1.0) if finite.size else 1.0
        if not numpy.allclose(
            data, goal, rtol=tolerance, atol=tolerance * min(scale, 1e3), equal_nan=True
        ):
            bad = ~numpy.isclose(
                data, goal, rtol=tolerance, atol=tolerance * min(scale, 1e3), equal_nan=True
            )
            raise Different(
                f"{data[bad].ravel()[:4].tolist()} for {goal[bad].ravel()[:4].tolist()}"
            )


def tally(
    name: str, calls: tuple[str, ...], seeds: Iterator[int] | range, device: str = "cpu"
) -> Tally:
    """What came of all calls of a name with some draws."""
    found = Tally(name)
    for text in calls:
        varies = any(each in text for each in _VARIABLES)
        for seed in list(seeds) if varies else list(seeds)[:1]:
            try:
                check(text, seed, device)
            except NotImplementedError as error:
                found.refused.append(f"{text} [{seed}]: {error}")
            except Exception as error:
                found.wrong.append(f"{text} [{seed}]: {type(error).__name__}: {str(error)[:150]}")
            else:
                found.right += 1
    return found


_BEFORE, _BEHIND = ("(", " ", "[", "-", "="), (")", ",", ".", "[", " ", "]")
_VARIABLES = (
    *[
        f"{one}{name}{other}"
        for name in "xyfghpbvwuqtamscdn"
        for one in _BEFORE
        for other in _BEHIND
    ],
    *[f"{name}{other}" for name in "xvafuc" for other in ".["],
)
