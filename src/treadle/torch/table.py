"""Which names of PyTorch's are here, what computes them, and what is a method.

One line a module of `operations` (or a table in it, `module:TABLE`): its names, as
`name[=function][:flags]`. Flags: f is a function `torch.name`, m a method `x.name`, i a method
`x.name_` that writes into x, v one that makes x show the view, o that the function takes `out=`.
Without flags it is a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

_HERE = "treadle.torch.operations"
OPERATIONS = {
    f"{_HERE}.creation": "tensor zeros:fo",
    f"{_HERE}.pointwise:FUNCTIONS": (
        "abs:fmio absolute=abs:fmio acos:fmio arccos=acos:fmio exp:fmio neg:fmio sqrt:fmio "
        "eq:fmio ge:fmio gt:fmio le:fmio lt:fmio ne:fmio sigmoid:fmio tanh:fmio "
        "maximum:fmo minimum:fmo"
    ),
    f"{_HERE}.pointwise": "add:fmio div:fmio divide=div:fmio mul:fmio sub:fmio subtract=sub:fmio",
    f"{_HERE}.reductions": "max:fmo sum:fmo",
    f"{_HERE}.shapes": (
        "as_strided:fmv broadcast_shapes broadcast_tensors broadcast_to:fm diagonal:fm "
        "expand:m expand_as:m flatten:fm flip:fm fliplr:fm flipud:fm movedim:fm "
        "moveaxis=movedim:fm narrow:fm permute:fm ravel:fm repeat:m reshape:fm reshape_as:m "
        "roll:fm rot90:fm select:fm squeeze:fmv swapaxes:fmv swapdims=transpose:fmv t:fmv "
        "tile:fm transpose:fmv unflatten:fm unfold:m unsqueeze:fmv view:m view_as:m adjoint:fm"
    ),
    f"{_HERE}.shapes:FUNCTIONS": (
        "atleast_1d atleast_2d atleast_3d as_strided_copy diagonal_copy expand_copy "
        "narrow_copy:fmo permute_copy select_copy slice_copy squeeze_copy t_copy "
        "transpose_copy unfold_copy unsqueeze_copy view_copy"
    ),
    f"{_HERE}.indexing": (
        "argwhere:fm as_strided_scatter:fm diag:fmo diag_embed:fm diagflat:fm "
        "diagonal_scatter:fm gather:fmo index_add:fmio index_copy:fmio index_fill:fmi "
        "index_put:fmi index_reduce:fmio index_select:fmo masked_scatter:fmi masked_select:fmo "
        "nonzero:fmo nonzero_static:fm put:fmi scatter:fmio scatter_add:fmio "
        "scatter_reduce:fmio select_scatter:fm slice_scatter:fm take:fmo take_along_dim:fmo "
        "trace:fmo tril:fmio triu:fmio"
    ),
    f"{_HERE}.indexing:FUNCTIONS": "tril_indices triu_indices",
    f"{_HERE}.joining": (
        "block_diag cartesian_prod cat:fo chunk:fm column_stack:fo combinations concat=cat:fo "
        "concatenate=cat:fo dstack:fo hstack:fo meshgrid repeat_interleave:fm split:fm "
        "split_with_sizes:fm stack:fo sum_to_size:m tensor_split:fm unbind:fm unravel_index "
        "unsafe_chunk=chunk:fm unsafe_split=split:fm "
        "unsafe_split_with_sizes=split_with_sizes:fm vstack:fo row_stack=vstack:fo"
    ),
    f"{_HERE}.joining:FUNCTIONS": (
        "dsplit:fm hsplit:fm vsplit:fm unbind_copy split_copy split_with_sizes_copy"
    ),
}
# What differs from PyTorch, by the names of functions (or "Tensor.name"): for the reference.
DIFFERENCES: dict[str, str] = {}


class Entry(NamedTuple):
    """A name of PyTorch's: the module and table that has its function, and its flags."""

    name: str
    module: str
    table: str
    function: str
    flags: str


def entries() -> Iterator[Entry]:
    """All names."""
    for place, names in OPERATIONS.items():
        module, _, table = place.partition(":")
        for each in names.split():
            named, _, flags = each.partition(":")
            name, _, function = named.partition("=")
            yield Entry(name, module, table, function or name, flags or "f")


def function_of(entry: Entry) -> Any:
    """The function of an entry, imported."""
    module = import_module(entry.module)
    return (
        getattr(module, entry.table)[entry.function]
        if entry.table
        else getattr(module, entry.function)
    )
