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

HERE = _HERE = "treadle.torch.operations"
OPERATIONS = {
    f"{_HERE}.arithmetic": (
        "add:fmio addcdiv:fmio addcmul:fmio allclose:fm bitwise_left_shift:fmio "
        "bitwise_right_shift:fmio clamp:fmio clamp_max:fmio clamp_min:fmio clip=clamp:fmio "
        "div:fmio divide=div:fmio equal:fm float_power:fmio floor_divide:fmio fmod:fmio frexp:fmo "
        "gcd:fmio isclose:fm lcm:fmio ldexp:fmio lerp:fmio masked_fill:fmi matmul:fmo mul:fmio "
        "multiply=mul:fmio pow:fmio remainder:fmio rsub:f sub:fmio subtract=sub:fmio "
        "true_divide=div:fmio where:fo where=where_method:m"
    ),
    f"{_HERE}.complexes": (
        "alias_copy=clone:fo detach:f detach=detach:v detach_copy get_device "
        "is_inference=is_not:fm is_pinned=is_not:m is_shared=is_not:m to_dense=same:m to_dlpack "
        "view_as_complex_copy=view_as_complex:fo view_as_real_copy=view_as_real:fo angle:fmo "
        "clone:fm constant_pad_nd conj:fm conj_physical=conj:fmio copy:i fill:fi imag:f "
        "is_complex:fm is_conj=is_not:fm is_floating_point:fm is_neg=is_not:fm is_nonzero:fm "
        "is_same_size:fm is_signed:fm numel:f real:f resolve_conj=same:fm resolve_neg=same:fm "
        "view_as_complex:f view_as_real:f zero:i"
    ),
    f"{_HERE}.creation": (
        "arange:fo as_tensor asarray complex=complex_numbers:fo empty:fo empty_like "
        "empty_permuted:f empty_strided eye:fo from_dlpack from_numpy frombuffer full:fo "
        "full_like linspace:fo logspace:fo new_empty:m new_empty_strided:m new_full:m new_ones:m "
        "new_tensor:m new_zeros:m ones:fo ones_like polar:fo range=range_with_end:fo "
        "scalar_tensor tensor zeros:fo zeros_like"
    ),
    "treadle.torch.dtypes": "result_type",
    f"{_HERE}.drawing": (
        "bernoulli:fmo bernoulli=bernoulli_values:i binomial poisson cauchy=cauchy_values:i "
        "exponential=exponential_values:i geometric=geometric_values:i "
        "log_normal=log_normal_values:i multinomial:fmo normal:fo normal=normal_values:i rand:fo "
        "rand_like randint:fo randint_like randn:fo randn_like random=random_values:i randperm:fo "
        "uniform=uniform_values:i"
    ),
    f"{_HERE}.pointwise:FUNCTIONS": (
        "abs:fmio absolute=abs:fmio acos:fmio acosh:fmio arccos=acos:fmio arccosh=acosh:fmio "
        "arcsin=asin:fmio arcsinh=asinh:fmio arctan=atan:fmio arctan2=atan2:fmio "
        "arctanh=atanh:fmio asin:fmio asinh:fmio atan:fmio atan2:fmio atanh:fmio bitwise_and:fmio "
        "bitwise_not:fmio bitwise_or:fmio bitwise_xor:fmio ceil:fmio copysign:fmio cos:fmio "
        "cosh:fmio eq:fmio erf:fmio erfc:fmio erfinv:fmio exp:fmio exp2:fmio expm1:fmio "
        "fix=trunc:fmio floor:fmio ge:fmio greater=gt:fmio greater_equal=ge:fmio gt:fmio "
        "hypot:fmio isfinite:fm isinf:fm isnan:fm le:fmio less=lt:fmio less_equal=le:fmio "
        "lgamma:fmio log:fmio log10:fmio log1p:fmio log2:fmio logaddexp:fmo logical_and:fmio "
        "logical_not:fmio logical_or:fmio logical_xor:fmio lt:fmio maximum:fmo minimum:fmo "
        "ne:fmio neg:fmio negative=neg:fmio nextafter:fmio not_equal=ne:fmio reciprocal:fmio "
        "rsqrt:fmio sigmoid:fmio sin:fmio sinh:fmio sqrt:fmio tan:fmio tanh:fmio "
        "trunc:fmio"
    ),
    f"{_HERE}.pointwise": (
        "deg2rad:fmio fmax:fmo fmin:fmo frac:fmio heaviside:fmio isneginf:fmo isposinf:fmo "
        "isreal:fm logaddexp2:fmo logit:fmio nan_to_num:fmio positive:fm rad2deg:fmio round:fmio "
        "sgn:fmio sign:fmio signbit:fmo sinc:fmio square:fmio xlogy:fmio"
    ),
    f"{_HERE}.reductions": (
        "all:fmo amax:fmo amin:fmo aminmax:fmo any:fmo argmax:fmo argmin:fmo count_nonzero:fm "
        "dist:fmo kthvalue:fmo logsumexp:fmo mean:fmo median:fmo mode:fmo nanmean:fmo "
        "nanmedian:fmo nanquantile:fmo nansum:fmo norm:fmo prod:fmo quantile:fmo renorm:fmio "
        "sum:fmo"
    ),
    f"{_HERE}.reductions:FUNCTIONS": "max:fmo min:fmo std:fmo std_mean:fo var:fmo var_mean:fo",
    f"{_HERE}.scans": (
        "cumprod:fmio cumsum:fmio cumulative_trapezoid diff:fmo logcumsumexp:fmo trapezoid "
        "trapz=trapezoid"
    ),
    f"{_HERE}.scans:FUNCTIONS": "cummax:fmo cummin:fmo",
    f"{_HERE}.sorting": (
        "argsort:fmo bincount:fmo bucketize:fo histc:fmo histogram:fmo histogramdd isin:fo "
        "msort:fmo searchsorted:fo sort:fmo topk:fmo unique:fm unique_consecutive:fm"
    ),
    f"{_HERE}.products": (
        "addbmm:fmio addmm:fmio addmv:fmio addr:fmio baddbmm:fmio bmm:fmo cdist corrcoef:fm "
        "cov:fm dot:fmo einsum ger=outer:fmo gradient inner:fmo kron:fmo mm:fmo mv:fmo "
        "outer:fmo tensordot:fo vdot:fmo"
    ),
    f"{_HERE}.factors": (
        "geqrf:fmo lu=lu_of:fm lu_solve=lu_solve_of:fmo lu_unpack:fo ormqr:fmo "
        "orgqr=householder_product:fmo"
    ),
    f"{_HERE}.linear_algebra": (
        "chain_matmul:fo cholesky=cholesky_of:fmo cholesky_inverse:fmo cholesky_solve:fmo "
        "cross=cross_of:fmo det:fm inverse:fmo logdet:fm "
        "matrix_exp:fm matrix_power:fmo "
        "pca_lowrank pinverse:fm qr=qr_of:fmo slogdet:fmo "
        "svd=svd_of:fmo svd_lowrank triangular_solve:fmo vander=vander_of"
    ),
    f"{_HERE}.fourier": "istft:fm stft:fm",
    f"{_HERE}.special": ("digamma:fmio mvlgamma:fmio polygamma:fo polygamma=polygamma_of:mi"),
    f"{_HERE}.special:FUNCTIONS": "i0:fmio igamma:fmio igammac:fmio",
    f"{_HERE}.windows:FUNCTIONS": (
        "bartlett_window blackman_window hamming_window hann_window kaiser_window"
    ),
    f"{_HERE}.layers": (
        "adaptive_max_pool1d alpha_dropout:fi batch_norm binary_cross_entropy_with_logits celu:fi "
        "cosine_embedding_loss ctc_loss dropout:fi embedding feature_alpha_dropout:fi "
        "feature_dropout:fi group_norm hardshrink:fmo hinge_embedding_loss instance_norm kl_div "
        "layer_norm log_softmax:fmo margin_ranking_loss relu:fmi rrelu:fi selu:fi softmax:fmo"
    ),
    f"{_HERE}.layers:FUNCTIONS": (
        "adaptive_avg_pool1d avg_pool1d bilinear channel_shuffle conv1d conv2d conv3d conv_tbc "
        "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity max_pool1d "
        "max_pool1d_with_indices max_pool2d max_pool3d native_channel_shuffle pairwise_distance "
        "pdist pixel_shuffle pixel_unshuffle prelu:fm rms_norm threshold:fi"
    ),
    f"{_HERE}.shapes": (
        "as_strided:fmv broadcast_shapes broadcast_tensors broadcast_to:fm diagonal:fm expand:m "
        "expand_as:m flatten:fm flip:fm fliplr:fm flipud:fm movedim:fm moveaxis=movedim:fm "
        "narrow:fm permute:fm ravel:fm repeat:m reshape:fm reshape_as:m resize:v resize_as:v "
        "roll:fm rot90:fm select:fm squeeze:fmv swapaxes:fmv swapdims=transpose:fmv t:fmv tile:fm "
        "transpose:fmv unflatten:fm unfold:m unsqueeze:fmv view:m view_as:m adjoint:fm"
    ),
    f"{_HERE}.shapes:FUNCTIONS": (
        "atleast_1d atleast_2d atleast_3d as_strided_copy:fo diagonal_copy:fo expand_copy:fo "
        "narrow_copy:fmo permute_copy:fo select_copy:fo slice_copy:fo squeeze_copy:fo t_copy:fo "
        "transpose_copy:fo unfold_copy:fo unsqueeze_copy:fo view_copy:fo"
    ),
    f"{_HERE}.indexing": (
        "argwhere:fm as_strided_scatter:fm diag:fmo diag_embed:fm diagflat:fm "
        "diagonal_scatter:fm gather:fmo index_add:fmio index_copy:fmio index_fill:fmi "
        "index_put:fmi index_reduce:fmio index_select:fmo masked_scatter:fmi masked_select:fmo "
        "fill_diagonal:i nonzero:fmo nonzero_static:fm put:fmi scatter:fmio scatter_add:fmio "
        "scatter_reduce:fmio select_scatter:fm slice_scatter:fmo take:fmo take_along_dim:fmo "
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
        "dsplit:fm hsplit:fm vsplit:fm unbind_copy:fo split_copy:fo split_with_sizes_copy:fo"
    ),
}


class Entry(NamedTuple):
    """A name of PyTorch's: the module and table that has its function, and its flags."""

    name: str
    module: str
    table: str
    function: str
    flags: str


def entries(table: dict[str, str] = OPERATIONS) -> Iterator[Entry]:
    """All names of a table."""
    for place, names in table.items():
        module, _, inside = place.partition(":")
        for each in names.split():
            named, _, flags = each.partition(":")
            name, _, function = named.partition("=")
            yield Entry(name, module, inside, function or name, flags or "f")


def function_of(entry: Entry) -> Any:
    """The function of an entry, imported."""
    module = import_module(entry.module)
    return (
        getattr(module, entry.table)[entry.function]
        if entry.table
        else getattr(module, entry.function)
    )


# In-place methods that are functions, too.
_IN_PLACE = (
    "abs_ acos_ acosh_ addmv_ alpha_dropout_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ "
    "asin_ asinh_ as_strided_ atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ "
    "conj_physical_ cos_ cosh_ deg2rad_ detach_ dropout_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ "
    "floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ "
    "negative_ rad2deg_ reciprocal_ relu_ resize_as_ round_ rrelu_ rsqrt_ selu_ sgn_ sigmoid_ sin_ "
    "sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_ trunc_ xlogy_ zero_"
)
# Those of them that there are.
IN_PLACE = frozenset(_IN_PLACE.split()) & {
    f"{each.name}_" for each in entries() if "i" in each.flags or "v" in each.flags
}
