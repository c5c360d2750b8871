"""Attention: checks the arguments and calls the kernel library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from treadle.core.dtypes import DType, bool_, float32, float64
from treadle.core.errors import DtypeError, ShapeError
from treadle.core.sizes import index
from treadle.graph import history, views
from treadle.graph.calls import call, call_of_several
from treadle.graph.node import Node, constant, view_of
from treadle.graph.placeholders import record_composite
from treadle.kernels.attend import attend, attend_result
from treadle.kernels.attend_products import attend_by_products, pays
from treadle.kernels.device_code.keys import wide
from treadle.runtime.devices import Device
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.conversions import as_python, cast, common_shape, device_of, is_number
from treadle.tensor.dtypes import promote
from treadle.tensor.functional.heads import AttentionOptions, laid_out
from treadle.tensor.generator import Generator, default_generator
from treadle.tensor.operands import node_of
from treadle.tensor.precision import cast_by_name
from treadle.tensor.random.draws import words_of_a_draw
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["scaled_dot_product_attention"]

_NAME = "scaled_dot_product_attention"
_LARGEST_SCALE = 2e38  # kernels multiply it by log2(e), in float32
Integers = tuple[int, ...]


@cast_by_name
def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window: int | tuple[int | None, int | None] | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """softmax(query keyᵀ * scale + mask) value, without the matrix of scores in memory.

    Shapes: query (…, L, E), key (…, S, E), value (…, S, Ev); the result is (…, L, Ev), in the
    common dtype of the three, computed in float32 (float64 for float64). Leading axes broadcast.
    With `enable_gqa` key and value may have fewer heads (the third axis from the right) than the
    query: each of theirs is then used by several neighbouring heads of the query. No operand has to
    be contiguous.

    `attn_mask` broadcasts to (…, L, S): bool, true where a query sees a key, or floating, added to
    the scores. `is_causal`: query i sees the keys up to key i. `scale` is 1 / sqrt(E) by default.
    `dropout_p` is the probability that a weight is dropped; the others are divided by 1 -
    dropout_p. The draws are from `generator` or the default one.

    Beyond PyTorch's arguments, `window` limits the keys that query i sees to those near key i: the
    number of keys to the left of it, or (left, right), where None means unlimited.

    A query that sees no key has a result of zeros, as in PyTorch, and so has every query if S is 0.
    ShapeError, DtypeError or ValueError for arguments that do not fit. By T. Dao and others,
    "FlashAttention", 2022.

    >>> import treadle as td
    >>> q = td.asarray([[1.0], [1.0]], device="cpu")
    >>> v = td.asarray([[2.0], [4.0]], device="cpu")
    >>> td.nn.functional.scaled_dot_product_attention(q, q, v).tolist()
    [[3.0], [3.0]]
    >>> td.nn.functional.scaled_dot_product_attention(q, q, v, is_causal=True).tolist()
    [[2.0], [3.0]]
    """
    device = device_of(_NAME, (query, key, value, attn_mask))
    nodes, front, heads = checked_operands(_NAME, (query, key, value), device, enable_gqa)
    dtype = nodes[0].dtype
    queries, keys = nodes[0].shape[-2], nodes[1].shape[-2]
    if attn_mask is not None:
        if is_causal:
            raise ValueError(
                f"{_NAME}: give either is_causal or attn_mask: a mask can be causal itself"
            )
        nodes.append(_mask(node_of(_NAME, attn_mask, device), dtype, (*front, queries, keys)))
    left, right = reach_of(_NAME, window, is_causal)
    scale, dropout = scale_of(_NAME, scale, nodes[0].shape[-1]), probability(_NAME, dropout_p)
    options = AttentionOptions(front, heads, scale, left, right, dropout)
    return attention_of(nodes, options, generator)


def attention_of(
    nodes: Sequence[Node], options: AttentionOptions, generator: Generator | None
) -> Tensor:
    """Attention of checked query, key, value and perhaps a mask, or the starts of packed texts,
    with its derivative."""
    words = None
    if options.dropout:
        words = words_of_a_draw(generator or default_generator(), nodes[0].device)
    tracked = is_tracked(nodes)
    with history.recorded(False):
        made, norms = _attended(nodes, options, nodes[0].dtype, words, tracked)
    if norms is not None:
        extra = [norms] if words is None else [norms, words]
        record_composite(history.derivatives[_NAME], [made], nodes, options, extra)
    return from_node(made)


def is_tracked(nodes: Sequence[Node]) -> bool:
    """Whether a derivative will be wanted."""
    return history.recording.get() and any(node.history is not None for node in nodes)


def _attended(
    nodes: Sequence[Node],
    options: AttentionOptions,
    dtype: DType,
    words: Node | None,
    tracked: bool,
) -> tuple[Node, Node | None]:
    """The result and, for a derivative, the logarithm of the sum of each query's exponentials."""
    shape = (*options.front, nodes[0].shape[-2], nodes[2].shape[-1])
    results = [(shape, dtype), (shape[:-1], wide(dtype))]
    if 0 in shape:
        one, other = (constant(0, *each, nodes[0].device) for each in results)
        return one, other if tracked else None
    sizes = nodes[0].shape[-2], nodes[1].shape[-2]
    by_products = tracked and not options.packed and pays(nodes[0].device, dtype, *sizes)
    sources, problem, _ = laid_out(nodes, options, by_products)
    if words is not None:
        sources = (*sources, words)
    if not tracked:
        return call(attend_result, sources, *results[0], (problem,)), None
    function = attend_by_products if by_products else attend
    made, norms = call_of_several(function, sources, results, (problem,))
    return made, norms


# --- checks of arguments
# ---------------------------------------------------------------------------


def checked_operands(
    name: str, given: Sequence[ArrayLike], device: Device, grouped: bool
) -> tuple[list[Node], Integers, Integers]:
    """Query, key and value in their common dtype, the leading axes of the result, and the heads of
    the three if they are `grouped`."""
    nodes = [node_of(name, each, device) for each in given]
    dtype = _common_dtype(name, nodes)
    nodes = [cast(node, dtype) for node in nodes]
    return nodes, *_check_shapes(name, nodes, grouped)


def _common_dtype(name: str, nodes: Sequence[Node]) -> DType:
    dtype = nodes[0].dtype
    for node in nodes[1:]:
        dtype = promote(dtype, node.dtype)
    if dtype.kind != "float":
        given = ", ".join(str(node.dtype) for node in nodes)
        raise DtypeError(
            f"{name} takes floating query, key and value, not {given}: cast them first, as in "
            "x.to(td.float32)"
        )
    return dtype


def _check_shapes(name: str, nodes: Sequence[Node], grouped: bool) -> tuple[Integers, Integers]:
    query, key, value = (node.shape for node in nodes)
    for which, shape in zip(("query", "key", "value"), (query, key, value), strict=True):
        if len(shape) < 2 + grouped:
            least = "an axis of heads, rows and columns" if grouped else "rows and columns"
            raise ShapeError(f"{name}: {which} has shape {shape}, and needs {least} at least")
    if query[-1] != key[-1]:
        raise ShapeError(
            f"{name}: query of shape {query} and key of shape {key} need last axes of one extent, "
            f"and have {query[-1]} and {key[-1]}"
        )
    if key[-2] != value[-2]:
        raise ShapeError(
            f"{name}: key of shape {key} and value of shape {value} need one number of rows, and "
            f"have {key[-2]} and {value[-2]}"
        )
    if not grouped:
        try:
            return common_shape(name, (query[:-2], key[:-2], value[:-2])), ()
        except ShapeError:
            raise ShapeError(
                f"{name}: the axes before rows and columns of query, shape {query}, of key, shape "
                f"{key}, and of value, shape {value}, do not broadcast: counted from the right, "
                f"extents must be equal or 1{_hint(query, key, value)}"
            ) from None
    heads = query[-3], key[-3], value[-3]
    few, many = sorted(heads[1:])
    if heads != (0, 0, 0) and (not few or heads[0] % many or many % few):
        raise ShapeError(
            f"{name}: with enable_gqa the {heads[0]} heads of query, shape {query}, must be a "
            f"multiple of the {heads[1]} of key, shape {key}, and the {heads[2]} of value, shape "
            f"{value}, and one of these a multiple of the other"
        )
    front = common_shape(name, (query[:-3], key[:-3], value[:-3]))
    return (*front, heads[0]), heads


def _hint(query: Integers, key: Integers, value: Integers) -> str:
    """What lets heads of a query share those of key and value, where that is what was meant."""
    if min(len(query), len(key), len(value)) < 3 or key[-3] != value[-3]:
        return ""
    many, few = query[-3], key[-3]
    if not 1 < few < many or many % few:
        return ""
    return f"; enable_gqa=True has {many} heads of the query share {few} of key and value"


def _mask(node: Node, dtype: DType, wanted: Integers) -> Node:
    """A mask that broadcasts to the shape of the scores."""
    if node.dtype is not bool_ and node.dtype.kind != "float":
        raise DtypeError(
            f"{_NAME}: attn_mask is bool, or floating and added to the scores, not {node.dtype}"
        )
    if node.dtype is float64 and dtype is not float64:
        node = cast(node, float32)
    if len(node.shape) < 2:
        rows = (1,) * (2 - len(node.shape)) + node.shape
        node = view_of(node, views.whole(rows))
    given = node.shape
    try:
        fits = common_shape(_NAME, (given, wanted)) == wanted
    except ShapeError:
        fits = False
    if not fits:
        raise ShapeError(
            f"{_NAME}: attn_mask of shape {given} does not broadcast to {wanted}, a score for each "
            "query and key"
        )
    return node


def reach_of(name: str, window: Any, is_causal: bool) -> tuple[int | None, int | None]:
    """The number of keys that a query sees to the left and to the right."""
    pair = window if isinstance(window, (tuple, list)) else (window, None)
    if len(pair) != 2:
        raise ValueError(f"{name}: window is a number, or a pair (left, right), not {window!r}")
    found: list[int | None] = []
    for number in pair:
        if number is not None and (isinstance(number, bool) or not hasattr(number, "__index__")):
            raise TypeError(f"{name}: window takes integers and None, not {number!r}")
        if number is not None and index(number) < 0:
            raise ValueError(f"{name}: a window reaches no less than 0 keys, and {number} is less")
        found.append(None if number is None else index(number))
    return found[0], 0 if is_causal else found[1]


def scale_of(name: str, scale: Any, depth: int) -> float:
    """The factor of scores."""
    if scale is None:
        return 1 / math.sqrt(depth) if depth else 1.0
    number = as_python(scale) if is_number(scale) else None
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        raise TypeError(f"{name}: scale is a number or None, not {type(scale).__name__}")
    if _LARGEST_SCALE < abs(number) < math.inf:
        raise ValueError(f"{name}: scale is {scale!r}, which is too large for scores of float32")
    return float(number)


def probability(name: str, p: Any) -> float:
    """The probability that a weight is dropped."""
    if not is_number(p) or isinstance(p, (bool, complex)) or not 0 <= as_python(p) <= 1:
        raise ValueError(f"{name}: dropout_p is a probability, from 0 to 1, not {p!r}")
    return float(as_python(p))
