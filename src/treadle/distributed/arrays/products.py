"""Products of sharded arrays: `matmul` and `einsum`, by the names of axes.

A name that is summed along may be split: then each rank has a part of the sum, which stays to be
added up. Which names are split is chosen by what travels for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import permutations
from typing import Any

from treadle.core.dtypes import bool_
from treadle.core.errors import ShapeError
from treadle.distributed.arrays.elementwise import mesh_of, refusal
from treadle.distributed.arrays.layout import Entry, Layout, Spec
from treadle.distributed.arrays.moving import Pieces, moved
from treadle.distributed.arrays.reductions import settled
from treadle.distributed.arrays.steps import sent
from treadle.tensor import products
from treadle.tensor.conversions import common_shape
from treadle.tensor.einstein_summation import einsum as einsum_of

Names = tuple[Hashable, ...]


def matmul(x1: Any, x2: Any) -> Any:
    """`td.matmul` of sharded arrays."""
    mesh_of("matmul", [each for each in (x1, x2) if isinstance(each, Pieces)], (x1, x2))
    for each in (x1, x2):
        if not isinstance(each, Pieces):
            raise TypeError("matmul takes arrays, not numbers: write x * y")
        if not each.shape:
            raise ShapeError("matmul takes arrays with axes: with a number, write x * y")
    left, right = len(x1.shape), len(x2.shape)
    if x1.shape[-1] != x2.shape[max(right - 2, 0)]:
        raise ShapeError(
            f"matmul: the last axis of shape {x1.shape} has {x1.shape[-1]} elements, and axis "
            f"{max(right - 2, 0)} of shape {x2.shape} has {x2.shape[max(right - 2, 0)]}: they must "
            "be equal"
        )
    common_shape("matmul", (x1.shape[:-2], x2.shape[: max(right - 2, 0)]))
    batch = range(-max(left - 2, right - 2, 0), 0)
    rows, columns = ("row",) * (left > 1), ("column",) * (right > 1)
    one = (*batch[len(batch) - max(left - 2, 0) :], *rows, "inner")
    other = (*batch[len(batch) - max(right - 2, 0) :], "inner", *columns)
    return _product("matmul", (x1, x2), (one, other), (*batch, *rows, *columns), products.matmul)


def einsum(subscripts: str, *operands: Any, optimize: Any = True) -> Any:
    """`td.einsum` of sharded arrays: of one or two at once, of more in the order that takes the
    fewest operations."""
    from opt_einsum import contract_path
    from opt_einsum.parser import parse_einsum_input

    mesh_of("einsum", [each for each in operands if isinstance(each, Pieces)], operands)
    inputs, output, _ = parse_einsum_input((subscripts, *operands))
    terms, arrays = inputs.split(","), [*operands]
    for term, x in zip(terms, arrays, strict=True):
        if len(term) != len(x.shape):
            raise ShapeError(
                f"einsum: {term!r} names {len(term)} axes, and an array of shape {x.shape} has "
                f"{len(x.shape)}"
            )
        twice = [at for at, name in enumerate(term) if term.count(name) > 1]
        if any(x.layout.spec[at] for at in twice):
            raise refusal("einsum's diagonal", x, twice)
    if len(arrays) > 2:
        equation = f"{','.join(terms)}->{output}"
        chosen = "auto" if optimize is True else optimize
        order, _ = contract_path(equation, *[x.shape for x in arrays], shapes=True, optimize=chosen)
    else:
        order = [tuple(range(len(arrays)))]
    for places in order:
        own = [(terms.pop(at), arrays.pop(at)) for at in sorted(places, reverse=True)][::-1]
        needed = set(output).union(*terms)
        names = dict.fromkeys("".join(term for term, _ in own))
        kept = "".join(each for each in names if each in needed) if terms else output
        equation = f"{','.join(term for term, _ in own)}->{kept}"

        def local(*pieces: Any, equation: str = equation) -> Any:
            return einsum_of(equation, *pieces)

        made = _product(
            "einsum", [x for _, x in own], [tuple(t) for t, _ in own], tuple(kept), local
        )
        terms.append(kept)
        arrays.append(made)
    return arrays[0]


def _product(
    operation: str, arrays: Sequence[Any], terms: Sequence[Names], kept: Names,
    function: Callable[..., Any],
) -> Any:  # fmt: skip
    arrays = [settled(x, operation) for x in arrays]
    extents: dict[Hashable, int] = {}
    for x, term in zip(arrays, terms, strict=True):
        for name, extent in zip(term, x.shape, strict=True):
            known = extents.setdefault(name, extent)
            if extent != known and 1 not in (extent, known):
                raise ShapeError(
                    f"{operation}: {name!r} is an axis of {known} elements in one array, and of "
                    f"{extent} in another"
                )
            extents[name] = extent if known == 1 else known
    split = _cheapest(arrays, terms, kept, extents)
    specs = [_spec(x, term, split, extents) for x, term in zip(arrays, terms, strict=True)]
    pieces = [moved(x, spec, operation) for x, spec in zip(arrays, specs, strict=True)]
    made = function(*pieces)
    shape = tuple([extents[name] for name in kept])
    pending = [axis for name, entry in split.items() if name not in kept for axis in entry]
    spec = tuple([split.get(name, ()) for name in kept])
    layout = Layout(arrays[0].layout.mesh, shape, spec, pending)
    total = arrays[0].like(made, layout, *arrays[1:])
    return settled(total, operation) if math.prod(shape) == 1 else total


# --- which names are split ------------------------------------------------------------------------


def _cheapest(
    arrays: Sequence[Any], terms: Sequence[Names], kept: Names, extents: dict[Hashable, int]
) -> dict[Hashable, Entry]:
    """The choice for which the fewest bytes travel. The first of equal ones has the layout of the
    largest array."""
    best, least = {}, math.inf
    for split in _choices(arrays, terms, kept, extents):
        cost: float = 0
        for x, term in zip(arrays, terms, strict=True):
            cost += sent(x.layout, _spec(x, term, split, extents), x.dtype.itemsize)
        spec = tuple([split.get(name, ()) for name in kept])
        pending = [axis for name, entry in split.items() if name not in kept for axis in entry]
        shape = tuple([extents[name] for name in kept])
        result = Layout(arrays[0].layout.mesh, shape, spec, pending)
        cost += sent(result, spec, arrays[0].dtype.itemsize)
        if cost < least:
            best, least = split, cost
    return best


def _choices(
    arrays: Sequence[Any], terms: Sequence[Names], kept: Names, extents: dict[Hashable, int]
) -> Iterator[dict[Hashable, Entry]]:
    """What is split as in one array, and as far as it does not contradict that as in the next: with
    the names that are summed along, and without."""
    largest = sorted(range(len(arrays)), key=lambda at: -math.prod(arrays[at].shape))
    is_logical = all(x.dtype is bool_ for x in arrays)
    for summed in (False,) if is_logical else (True, False):
        for order in permutations(largest):
            split: dict[Hashable, Entry] = {}
            for at in order:
                for name, entry, extent in zip(
                    terms[at], arrays[at].layout.spec, arrays[at].shape, strict=True
                ):
                    used = [each for found in split.values() for each in found]
                    if not entry or name in split or extent != extents[name]:
                        continue
                    if (summed or name in kept) and not any(each in used for each in entry):
                        split[name] = entry
            yield split


def _spec(
    x: Pieces, term: Names, split: dict[Hashable, Entry], extents: dict[Hashable, int]
) -> Spec:
    """The part of a choice that an array has."""
    return tuple(
        [
            split.get(name, ()) if extent == extents[name] else ()
            for name, extent in zip(term, x.shape, strict=True)
        ]
    )
