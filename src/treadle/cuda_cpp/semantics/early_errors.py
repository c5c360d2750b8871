"""Errors that a file has whatever kernels of it are launched: they are found without types.

Each must be an error for nvcc, too. So a name counts as unknown only if nothing in the file ever
declares it and it cannot come from CUDA, C, C++'s library or a header that was not found, and a
number of arguments as wrong only if no function of that name takes it. What else is wrong with a
kernel is found when it is lowered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from treadle.core.errors import CompileError
from treadle.cuda_cpp.source.headers import declares_only_host_names
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.cursor import Arity, Uses

# Names that CUDA, C or compilers may declare without a header of ours.
_FOREIGN = re.compile(
    r"_|cu[a-z]*[A-Z_]|CU|nv[a-z_]*_|NV|curand|atomic|tex|surf|wmma|mma$|barrier|pipeline|"
    r"(FLT|DBL|LDBL|U?INT\w*|U?L?LONG|U?CHAR|SCHAR|U?SHRT|SIZE|M|EXIT|RAND|CLOCKS|CUDART|HUGE)_|"
    r"[A-Z]{2,}$|std\w+$|errno$|va_"
)
# Names of C++'s library that `using namespace std` makes plain ones.
_STANDARD_TEXT = """
accumulate all_of any any_of array as_const async atomic back_inserter bad_alloc begin bind
bit_cast bitset bool_constant byte cbegin cend cerr cin clamp clog common_type_t complex
conditional conditional_t conj copy copy_n count count_if countl_zero countr_zero cout cref data
deque distance decay decay_t declval div enable_if enable_if_t end endl equal errc exception
exchange exclusive_scan fabs false_type fill fill_n find find_if fixed flush for_each forward
function future gcd generate get getline greater greater_equal hash hypot identity ifstream imag
inclusive_scan index_sequence initializer_list inner_product integer_sequence integral_constant
invoke iota is_base_of is_floating_point is_integral is_same is_same_v is_signed is_unsigned
istream iterator less less_equal list lock_guard logical_and lower_bound make_index_sequence
make_pair make_shared make_tuple make_unique map max max_element memory_order memory_order_relaxed
midpoint min min_element minmax minus move multiplies mutex negate next none_of norm nth_element
numeric_limits ofstream optional ostream pair partial_sort partial_sum partition plus polar
popcount prev priority_queue ptrdiff_t queue random_device real reduce ref remainder remove
remove_const_t remove_cv_t remove_reference_t replace reverse rotate round runtime_error search
set setprecision setw shared_ptr shuffle size size_t sort span ssize stable_sort stack stod stof
stoi string string_view stringstream swap terminate thread tie to_string transform
transform_reduce true_type tuple tuple_element tuple_size underlying_type_t unique unique_ptr
unordered_map unordered_set upper_bound variant vector visit void_t
"""
_STANDARD = frozenset(_STANDARD_TEXT.split())


def may_be_foreign(name: str) -> bool:
    """Whether CUDA, C or C++'s library may declare a name that nothing here does."""
    return name in _STANDARD or _FOREIGN.match(name) is not None


def early_errors(
    uses: Uses,
    unknown_headers: Sequence[str],
    is_built_in: Callable[[str], bool],
    message: Callable[[str, Iterable[str]], str],
    is_surely_none: Callable[[str], bool],
) -> list[CompileError]:
    """The errors, in the order of the file; none if names may come from headers that were not
    found. `message` is that of an unknown name, with the names that may have been meant.
    `is_surely_none` says of a name like CUDA's that it is none of them here."""
    if not all(map(declares_only_host_names, unknown_headers)) or uses.namespaces - {"std"}:
        return []
    known = uses.others | uses.arities.keys()
    unknown: dict[str, CompileError] = {}
    # The types of host code may be those of a header for the host.
    for name in uses.names if unknown_headers else (*uses.names, *uses.of_parameters):
        text = name.text
        if text in known or is_built_in(text):
            continue
        if may_be_foreign(text) and not is_surely_none(text):
            continue
        if text not in unknown:
            unknown[text] = CompileError(message(text, known), name.span)
    found = [*unknown.values(), *_wrong_counts(uses, is_built_in)]
    return sorted(found, key=lambda one: (one.file, one.line, one.column))


def _wrong_counts(uses: Uses, is_built_in: Callable[[str], bool]) -> Iterator[CompileError]:
    for call in uses.calls:
        assert isinstance(call.function, tree.Name)
        text = call.function.text
        known = uses.arities.get(text)
        if known is None or text in uses.others or text in _STANDARD or is_built_in(text):
            continue
        count = len(call.arguments)
        if any(isinstance(one, tree.PackExpansion) for one in call.arguments):
            continue
        if any(one.least <= count <= one.most for one in known):
            continue
        each = dict.fromkeys(f"{text} of line {one.span.line} takes {_takes(one)}" for one in known)
        if len(each) == 1:
            said = f"{next(iter(each))}, not {count}"
        else:
            said = f"no function {text} takes {_plural(count)}: {'; '.join(each)}"
        yield CompileError(said, call.span)


def _takes(one: Arity) -> str:
    if one.least == one.most:
        return _plural(one.least)
    return f"{one.least} to {_plural(int(one.most))}"


def _plural(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"
