"""The kinds of nodes that are not elementwise; all others are names in `operations`."""

CONSTANT = "constant"  # detail: a Python number; every element is it
INDEX = "index"  # element i is i, in row-major order
VIEW = "view"  # of its source; detail: a View
COPY = "copy"  # of its source, in memory of its own
GATHER = "gather"  # sources: a whole array and flat indices into it; indices outside give 0
REDUCE = "reduce"  # detail: (kind, axes); the shape lacks these
WRITE = "write"  # sources: an array and values; detail: the View of the array that they replace
JOIN = "join"  # of parts that cover it; detail: where each begins, as indices along the axes
PRODUCT = "product"  # of matrices, read in place in its sources; detail: a kernels.factors.Product
CALL = "call"  # what is no fused kernel; detail: see `calls.py`
PLACEHOLDER = "placeholder"  # of an example, within td.vmap; see `placeholders.py`
COMPUTED = "computed"
FAILED = "failed"  # a write that could not be done; detail: why
