"""What compilers behind us get wrong, as data: found by drawn kernels on cards (`tests/fuzz/card`).

A fault stays here while a version that has it may still be met. `python tools/faults.py` writes the
table of `docs/design/compiler-faults.md` from this.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a compiler."""

    name: str
    compiler: str
    versions: str  # that have been seen with it, and the first seen without
    pattern: str  # of instructions, and what becomes of it
    printed: str  # what is printed instead; "" where it cannot be seen from here
    where: str  # the module that does so
    test: str  # that computes it on every device, or reads the compiler's output


_DEVICES = "tests/device/kernels/test_compiler_faults.py::test_"
_NVIDIA = "NVIDIA's Vulkan compiler"
_DRIVERS = "580.159.04"

FAULTS = (
    Fault(
        "lost negation of 2³¹ − 1",
        "ptxas",
        "12.9, 13.0, driver 580.159.04; 13.5 is right",
        "`n - (2147483647 + c)`, with −, ^, | or max in the place of +, too, and "
        "`-(2147483647 + c)`, where c turns out to be 0 only after the operations are fused: "
        "becomes n + 2147483647",
        "the sum as `(c ^ -2147483648) + -1`, and so on. Not `c | 2147483647` or a maximum with it",
        "codegen/ptx/ptxas_workarounds.py",
        _DEVICES + "the_largest_number_is_negated",
    ),
    Fault(
        "lost negation in VIADDMNMX",
        "ptxas for sm_90 to sm_11x",
        "12.9, 13.0, 13.5, driver 580.159.04",
        "`max(n, c - x)`, also min and a comparison that chooses, where c comes from bits or "
        "shifts of 64-bit constants, which are folded late: becomes max(n, x - c)",
        "in kernels that compute with 64-bit bits, shifts or extremes: `c - x` as `~(~c + x)`",
        "codegen/ptx/ptxas_workarounds.py",
        _DEVICES + "the_larger_of_a_number_and_a_difference",
    ),
    Fault(
        "division in too few bits",
        _NVIDIA,
        _DRIVERS,
        "`u32(extractBits(x, 0u, 16u)) / y` and `%`, for a negative x, of 8 bits too: the dividend "
        "is taken for a number of so many bits, and the quotient is some hundreds off",
        "quotients of u32 by halves: `x >> 1` first, then what is left",
        "codegen/prelude.py",
        _DEVICES + "dividends_that_were_narrow_and_negative",
    ),
    Fault(
        "choice by a branch in a loop",
        _NVIDIA,
        _DRIVERS + ", with modules of naga",
        "a function that returns early, or chooses between constants in two branches, whose result "
        "goes into the variable it is called with, in a loop: `v //= v` gives 1 for 0, or 0 for 1",
        "functions are left at one place, and divisions and shifts choose without branches",
        "codegen/prelude.py, ir/passes/returns.py",
        _DEVICES + "functions_that_choose_in_loops",
    ),
    Fault(
        "conversion to 64 bits in 32",
        _NVIDIA,
        _DRIVERS,
        "`u32(u64(x))` of a float: converted to 32 bits at once, which gives 0xffffffff from 2³² "
        "on",
        "floats are converted to two words of 32 bits",
        "codegen/prelude.py",
        _DEVICES + "words_of_floats_that_become_64_bits",
    ),
    Fault(
        "lowest bit of a 64-bit quotient",
        _NVIDIA,
        _DRIVERS + ", where 64-bit integers are native",
        "`(1 + x / y) & u64(b)`, and `v * (v & 1)` of a remainder v, where only the lowest bit "
        "counts and meets a condition: the bit is inverted, in some kernels",
        "64-bit integers are divided by way of their words, unless by a constant",
        "ir/passes/wide/functions.py",
        _DEVICES + "lowest_bits_and_orders_of_64_bits, test_a_remainder_times_its_lowest_bit",
    ),
    Fault(
        "order of a negated number in two words",
        _NVIDIA,
        _DRIVERS,
        "`select(a.y < b.y, a.x < b.x, a.y == b.y)` of two words, where a comes of a subtraction "
        "with a borrow: the comparison for equality is inverted, in some kernels",
        "pairs of words are compared by `<` alone",
        "ir/passes/wide/functions.py",
        _DEVICES + "lowest_bits_and_orders_of_64_bits",
    ),
    Fault(
        "sign of the lowest number's absolute value",
        "ptxas",
        "13.0, driver 580.159.04; 13.5 is right",
        "`abs.s32(x) < 0` becomes false, though abs(-2147483648) is -2147483648",
        "`max(x, -x)`",
        "codegen/ptx/intrinsics.py",
        _DEVICES + "quotients_of_absolute_values",
    ),
    Fault(
        "quotient of the lowest number's absolute value",
        _NVIDIA,
        _DRIVERS + ", with modules of naga",
        "`abs(x) // 7`: abs(-2147483648) is taken for not negative, so that it is rounded "
        "towards 0; also where the absolute value is a choice between x and its negative",
        "`max(x, -x)`",
        "codegen/wgsl/expressions.py",
        _DEVICES + "quotients_of_absolute_values",
    ),
    Fault(
        "condition in an index of a local array, in a kernel of 64-bit floats",
        _NVIDIA,
        _DRIVERS + ", with modules of naga",
        "`l[c != 0 ? 3 : 0] = 1` with `int l[4]`, in a kernel that also has `double m[4]` with a "
        "computed index: the condition is inverted. A store in a branch instead is right",
        "",
        "",
        _DEVICES + "a_condition_in_an_index_beside_doubles",
    ),
    Fault(
        "bits of conditions in high registers",
        "LLVM for x86 with AVX-512VL",
        "22.1 (llvmlite 0.50)",
        "`bitcast <8 x i1> to i8` of shuffled or blended conditions, as in "
        "`atomicAdd(&sum, lane || x)`: is `vmovmskps`, which names 16 registers, of "
        "one of 32. Where that is one of the upper 16, as on Sapphire Rapids, another is read",
        "machine code without AVX-512VL for such modules",
        "drivers/cpu/compiler.py",
        _DEVICES + "sums_of_conditions_that_are_known_in_part",
    ),
    Fault(
        "sums of floats taken apart",
        "Mesa's llvmpipe",
        "22.3.6",
        "`(a + b) - a` of floats becomes b, so that nothing is left of what the sum lost",
        "in fused products of 16-bit floats, sums are held to finite numbers before they are used",
        "codegen/prelude.py",
        _DEVICES + "fused_products_of_halves_are_rounded_once",
    ),
    Fault(
        "order of sums of 64-bit floats",
        _NVIDIA + ", Mesa's llvmpipe",
        _DRIVERS + "; 22.3.6",
        "`(x - y) - x` becomes -y, and `(d[i] - pole) - step` in a loop `d[i] - (pole + step)`: "
        "eigenvectors of float64 matrices of 31 rows and more were wrong",
        "a term of a sum that may be a sum itself times a 1 that is computed from the number of "
        "blocks, another for either term",
        "codegen/wgsl/expressions.py",
        _DEVICES + "sums_of_64_bit_floats_stay_in_order",
    ),
)
