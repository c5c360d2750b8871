"""Which module has each method, operator and property of `Tensor` that its class does not define.

They are functions above `Tensor`, most of them public ones (`x.flip(axis=0)` is
`td.flip(x, axis=0)`), and are imported when they are first used.
"""

from __future__ import annotations

from treadle.core.deferred_imports import DeferredAttribute, DeferredProperty, Elsewhere

# The names by their modules, or by tables of modules; `name=function` if they differ. The tensor is
# the first parameter.
METHODS = {
    "treadle.tensor.advanced_indexing": "__getitem__=part_of __setitem__=write_part",
    "treadle.tensor.assembly": "diff repeat roll tile",
    "treadle.tensor.creation": "astype",
    "treadle.tensor.elementwise_functions:FUNCTIONS": (
        "abs acos acosh add angle asin asinh atan atan2 atanh bitwise_and bitwise_invert "
        "bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor cbrt ceil clip conj "
        "copysign cos cosh divide equal erf erfc erfinv exp exp2 expm1 floor floor_divide gamma "
        "greater greater_equal hypot isfinite isinf isnan less less_equal lgamma log log10 log1p "
        "log2 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply "
        "negative nextafter not_equal positive pow reciprocal remainder round rsqrt sigmoid sign "
        "signbit sin sinh sqrt square subtract tan tanh trunc"
    ),
    "treadle.tensor.functional.activations": "elu gelu leaky_relu relu silu softplus",
    "treadle.tensor.functional.normalization": "log_softmax softmax",
    "treadle.tensor.manipulation": (
        "broadcast_to diagonal expand_dims flatten flip matrix_transpose moveaxis permute_dims "
        "ravel split squeeze swapaxes unsqueeze=expand_dims unstack"
    ),
    "treadle.tensor.methods": "__iter__=iterator clone contiguous permute transpose where",
    "treadle.tensor.operators:OPERATORS": (
        "__abs__ __add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __iadd__ __iand__ "
        "__ifloordiv__ __ilshift__ __imod__ __imul__ __invert__ __ior__ __ipow__ __irshift__ "
        "__isub__ __itruediv__ __ixor__ __le__ __lshift__ __lt__ __mod__ __mul__ __ne__ __neg__ "
        "__or__ __pos__ __pow__ __radd__ __rand__ __rfloordiv__ __rlshift__ __rmod__ __rmul__ "
        "__ror__ __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __sub__ "
        "__truediv__ __xor__"
    ),
    "treadle.tensor.products": "dot matmul outer tensordot vecdot",
    "treadle.tensor.products:OPERATORS": "__imatmul__ __matmul__ __rmatmul__",
    "treadle.tensor.ranges": "tril triu",
    "treadle.tensor.reductions": (
        "all any argmax argmin count_nonzero logsumexp max mean min prod std sum var"
    ),
    "treadle.tensor.representation": "__repr__=representation",
    "treadle.tensor.scans": (
        "cumprod=cumulative_prod cumsum=cumulative_sum cumulative_prod cumulative_sum"
    ),
    "treadle.tensor.scattering:METHODS": (
        "gather index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_select "
        "masked_fill masked_fill_ masked_select scatter scatter_ scatter_add scatter_add_ "
        "scatter_reduce scatter_reduce_"
    ),
    "treadle.tensor.searching": (
        "__contains__=contains argwhere nonzero searchsorted take take_along_axis"
    ),
    "treadle.tensor.sorting": "argsort sort topk",
}
PROPERTIES = {
    "treadle.tensor.elementwise_functions:FUNCTIONS": "imag real",
    "treadle.tensor.manipulation": "mT=matrix_transpose",
    "treadle.tensor.methods": "T=transposed",
}


# What is written here for methods of PyTorch's tensors.
ELSEWHERE = {
    "cpu": "x.to('cpu') moves it", "cuda": "x.to('cuda') moves it",
    "double": "write x.to(td.float64)",
    "float": "write x.to(td.float32)", "half": "write x.to(td.float16)",
    "int": "write x.to(td.int32)", "long": "write x.to(td.int64)", "type": "write x.to(dtype)",
}  # fmt: skip


def add_to(tensor: type) -> None:
    """Add all of them to the class."""
    kinds = ((METHODS, DeferredAttribute), (PROPERTIES, DeferredProperty))
    for table, kind in kinds:
        for place, names in table.items():
            for each in names.split():
                name, _, function = each.partition("=")
                kind(place, function or name).add_to(tensor, name)
    for name, advice in ELSEWHERE.items():
        other = Elsewhere(advice)
        other.__set_name__(tensor, name)
        setattr(tensor, name, other)
