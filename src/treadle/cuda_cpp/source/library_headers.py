"""The headers that are files of CUDA C++ in the folder `library`, by the names that include them.

They are compiled like the user's code; what they cannot say in C++ are built-in functions, types
and traits whose names begin with `__treadle_`.
"""

from __future__ import annotations

# The file of each header. Several headers may be one file.
IN_LIBRARY = {
    "cooperative_groups.h": "cooperative_groups.cuh",
    "cooperative_groups/reduce.h": "cooperative_groups.cuh",
}
_STANDARD = {
    **dict.fromkeys(("algorithm", "numeric", "iterator"), "algorithm.cuh"),
    "array": "array.cuh",
    "bit": "bit.cuh",
    "complex": "complex.cuh",
    "functional": "functional.cuh",
    **dict.fromkeys(("initializer_list", "memory"), "utility.cuh"),
    "limits": "limits.cuh",
    "tuple": "tuple.cuh",
    "type_traits": "type_traits.cuh",
    "utility": "utility.cuh",
}
IN_LIBRARY |= _STANDARD | {f"cuda/std/{name}": file for name, file in _STANDARD.items()}

# The standard library. nvcc's own headers and those of the host's library include parts of it, so
# that files use them without asking, and reading them takes longer than most kernels do. So they
# are read if a file names what one declares, before all else and in this order.
FIRST = (
    "type_traits.cuh", "limits.cuh", "utility.cuh", "array.cuh", "bit.cuh", "algorithm.cuh",
    "complex.cuh", "functional.cuh", "tuple.cuh",
)  # fmt: skip
_NAMES = {
    "algorithm.cuh": (
        "accumulate", "all_of", "any_of", "binary_search", "clamp", "copy", "copy_if", "copy_n",
        "count", "count_if", "equal", "fill", "fill_n", "find", "find_if", "for_each", "gcd",
        "inner_product", "iota", "is_sorted", "lcm", "lower_bound", "max_element", "min_element",
        "none_of", "partial_sum", "remove_if", "reverse", "sort", "stable_sort", "transform",
        "unique", "upper_bound",
    ),
    "array.cuh": ("array",),
    "bit.cuh": (
        "bit_cast", "bit_ceil", "bit_floor", "bit_width", "countl_one", "countl_zero",
        "countr_one", "countr_zero", "has_single_bit", "popcount", "rotl", "rotr",
    ),
    "complex.cuh": ("complex",),
    "functional.cuh": (
        "bit_and", "bit_not", "bit_or", "bit_xor", "divides", "equal_to", "greater",
        "greater_equal", "identity", "less", "less_equal", "logical_and", "logical_not",
        "logical_or", "minus", "modulus", "multiplies", "negate", "not_equal_to", "plus",
    ),
    "limits.cuh": ("numeric_limits",),
    "tuple.cuh": ("make_tuple", "tuple"),
    "utility.cuh": (
        "addressof", "as_const", "declval", "exchange", "forward", "get", "make_pair", "move",
        "pair", "tuple_element", "tuple_element_t", "tuple_size", "tuple_size_v",
    ),
    "type_traits.cuh": (
        "integral_constant", "bool_constant", "true_type", "false_type", "enable_if", "enable_if_t",
        "conditional", "conditional_t", "common_type", "common_type_t", "is_same", "is_same_v",
        "is_base_of", "is_base_of_v", "is_convertible", "is_convertible_v", "void_t", "negation",
        "conjunction", "disjunction", "conjunction_v", "disjunction_v", "negation_v",
        "alignment_of", "type_identity", "type_identity_t",
        *(
            f"is_{trait}{end}"
            for trait in (
                "void", "null_pointer", "integral", "floating_point", "arithmetic", "fundamental",
                "enum", "scoped_enum", "class", "union", "empty", "array", "pointer", "reference",
                "lvalue_reference", "rvalue_reference", "scalar", "object", "signed", "unsigned",
                "trivially_copyable",
            )
            for end in ("", "_v")
        ),
        *(
            f"{change}{end}"
            for change in (
                "remove_reference", "remove_pointer", "remove_extent", "remove_all_extents",
                "decay", "make_signed", "make_unsigned", "underlying_type", "remove_const",
                "remove_volatile", "remove_cv", "remove_cvref", "add_const", "add_cv",
                "add_pointer", "add_lvalue_reference", "add_rvalue_reference",
            )
            for end in ("", "_t")
        ),
    ),
}  # fmt: skip
NAMES_OF_FIRST = {
    name: tuple(file for file, names in _NAMES.items() if name in names)
    for name in (name for names in _NAMES.values() for name in names)
}
