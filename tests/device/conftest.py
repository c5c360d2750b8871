"""One suite for every device: `device` is each of those present, in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import treadle as td

IN_A_PAGE = sys.platform == "emscripten"  # tests/browser runs the suite there
if not IN_A_PAGE:
    from tests.support.dawn import dawn_device
    from tests.support.ptx_device import ptx_device
    from treadle.drivers.cuda.library import driver_installed

# How each is found. The same physical device through OpenGL, or Dawn, is a device of its own here.
FINDERS: dict[str, Callable[[], td.Device]] = {
    "cpu": lambda: td.device("cpu"),
    "numpy": lambda: td.device("numpy"),
    "webgpu": lambda: td.device("webgpu"),
    "webgpu-gl": lambda: td.device("webgpu", api="gl"),
    "dawn": lambda: dawn_device(),
    "cuda": lambda: td.device("cuda"),
}
_IN_PAGES = ("webgpu", "cpu")


def _found() -> dict[str, Callable[[], td.Device]]:
    if IN_A_PAGE:
        return {name: FINDERS[name] for name in _IN_PAGES}
    # Without NVIDIA's driver there is nothing to say in each of a thousand skips.
    return {name: find for name, find in FINDERS.items() if name != "cuda" or driver_installed()}


_FOUND = _found()
_MARKS = {"cuda": pytest.mark.cuda}
# In an evaluator of PTX: what is printed as PTX for two generations of GPUs, and as CUDA C++, of
# which NVIDIA's compiler makes PTX.
_PTX = {} if IN_A_PAGE else {"ptx": "sm_90", "ptx-sm_70": "sm_70", "ptx-nvrtc": "nvrtc"}
# What runs for the first of them alone: long tests of operations that print the same for the older
# one, and that are made of what other tests of CUDA C++ have.
_ONCE = frozenset({
    "test_a_long_kernel", "test_benchmark_kernels", "test_float64_stays_within_its_bounds",
    "test_many_launches_leave_memory_flat", "test_results_chain_without_reads", "test_round_trip",
    "test_memory_is_counted_and_reused", "test_order_of_every_dtype", "test_distinct_elements",
    "test_near_the_true_value", "test_special_values_of_floats",
})  # fmt: skip

# Tests of arrays, whose kernels are made of what the tests of kernels have on every device: one
# device of a kind is enough for them, where no card asks for more.
_ARRAY_KERNELS = frozenset({
    "test_attention_kernels", "test_joins", "test_neighbours", "test_parts", "test_reductions",
    "test_rows", "test_scans",
})  # fmt: skip
# Those without anything but elementwise kernels need not run in both providers' compilers: what
# one runs, the other's compiles (tests/support/both_compilers.py).
_ELEMENTWISE = frozenset({"test_complex"})
# And of what arrays make of those kernels.
_ARRAY_RULES = frozenset({
    "test_activations", "test_array_object", "test_batch", "test_creation", "test_folding",
    "test_functional", "test_indexing", "test_linalg", "test_manipulation", "test_padding",
    "test_python_objects",
    "test_searching", "test_sharing",
})  # fmt: skip
# And the kernel library, a file on each line.
_LIBRARY = frozenset({
    "test_attention",
    "test_compile",
    "test_compile_around",
    "test_compile_auto",
    "test_convolution",
    "test_einsum",
    "test_embedding",
    "test_epilogues",
    "test_fft",
    "test_interpolation",
    "test_losses",
    "test_margin_losses",
    "test_normalization",
    "test_packed_attention",
    "test_paged_attention",
    "test_pooling",
    "test_products",
    "test_products_after",
    "test_prologues",
    "test_sampling",
    "test_scattering",
    "test_topk",
})  # fmt: skip
# And differentiation and training, a file on each line.
_TRAINING = frozenset({
    "test_autocast",
    "test_compile_training",
    "test_autograd",
    "test_ctc",
    "test_scaling",
    "test_training",
    "test_backward_pass",
    "test_checkpoint",
    "test_function",
    "test_quantized_gradients",
    "test_gradients_array",
    "test_gradients_everywhere",
    "test_gradients_fft",
    "test_gradients_layers",
    "test_gradients_linalg",
    "test_gradients_moving",
    "test_gradients_products",
    "test_initial_values",
    "test_layers",
    "test_module_hooks",
    "test_module_parts",
    "test_modules",
    "test_sequences",
    "test_state_dicts",
    "test_transforms",
    "test_vmap",
    "test_optimizers",
    "test_data",
    "test_gradients_attention",
    "test_gradients_rows",
    "test_schedulers",
    "test_contiguous_runs",
})  # fmt: skip
# And CUDA C++, whose kernels are made of what the tests of kernels have on every device.
_CUDA_CPP = frozenset({
    "test_cpp_algorithms", "test_cpp_bases", "test_cpp_bit_fields", "test_cpp_class_templates",
    "test_cpp_constraints", "test_cpp_curand",
    "test_cpp_deduction",
    "test_cpp_doubles",
    "test_cpp_function_objects", "test_cpp_functions",
    "test_cpp_language", "test_cpp_library_classes", "test_cpp_lifetimes", "test_cpp_numbers",
    "test_cpp_order",
    "test_cpp_packs", "test_cpp_pairs",
    "test_cpp_pointers", "test_cpp_recursion", "test_cpp_split_branches",
    "test_cpp_standard_library",
    "test_cpp_statements", "test_cpp_structs", "test_cpp_templates",
})  # fmt: skip
# And libraries, which are text in CUDA C++.
_CUDA_CPP_LIBRARIES = frozenset({
    "test_cpp_addresses", "test_cpp_cub", "test_cpp_grid_barriers", "test_cpp_heap",
    "test_cpp_inline_ptx", "test_cpp_launches", "test_cpp_linked", "test_cpp_mbarriers",
    "test_cpp_narrow_numbers", "test_cpp_pointer_tables", "test_cpp_roles",
    "test_cpp_synchronization",
    "test_cpp_texture_kinds", "test_cpp_textures", "test_cpp_thrust_and_torch",
})  # fmt: skip
# Those of what CUDA declares, which PTX has instructions for.
_CUDA_CPP_BUILTINS = frozenset({
    "test_cpp_atomics", "test_cpp_groups", "test_cpp_lockstep", "test_cpp_mathematics",
    "test_cpp_places",
    "test_cpp_reports", "test_cpp_vectors", "test_cpp_warps",
})  # fmt: skip
# And what plans, compiled functions and results have in common on all devices.
_PLANS = frozenset({
    "test_compile_libraries", "test_interrupted_finalizers", "test_plan_functions",
    "test_plans_of_steps", "test_recorded_calls", "test_recurrences", "test_row_major_results",
})  # fmt: skip
# Actors, whose kernels are small.
_ACTORS = frozenset({
    "test_actors", "test_prepared", "test_relaunched", "test_resident_kernel",
})  # fmt: skip
# And those that are about threads of the host, which one device of a kind has as another.
_WAITING_ACTORS = frozenset({
    "test_bad_input", "test_many_actors", "test_messages", "test_pipes", "test_timeouts",
})  # fmt: skip
# And what is drawn, which the evaluator of PTX would be long about.
_DRAWN_ACTORS = frozenset({"test_actor_machine"})
# Stencils, whose kernels are loops and accesses, of which every device has the tests of kernels.
_STENCILS = frozenset({
    "test_bad_stencils", "test_large_grids", "test_stacks", "test_stencil_steps", "test_stencils",
})  # fmt: skip
# And what they solve, in many steps.
_STENCIL_SOLUTIONS = frozenset({"test_stencil_solutions"})
# And quantized tensors, whose expressions shift and mask bytes.
_QUANT = frozenset({"test_quantized"})
_LEFT_OUT = {
    # Plans, which are the same for all devices of a kind.
    **dict.fromkeys(
        ("test_changing_sizes", "test_compile_sizes", "test_token_sampling"),
        frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    **dict.fromkeys(
        (
            "test_chosen_items",
            "test_cpp_divided_barriers",
            "test_matrices",
            "test_pairs",
            "test_python_functions",
            "test_vector_functions",
        ),
        frozenset({"webgpu-gl", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    "test_views": frozenset({"webgpu-gl", "dawn", "ptx-sm_70", "ptx-nvrtc"}),
    "test_spectra": frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"}),
    # Branches and loops, which are printed the same for both generations. OpenGL has test_control.
    "test_deep_control": frozenset({"webgpu-gl", "dawn", "ptx-sm_70", "ptx-nvrtc"}),
    "test_benchmark_kernels": frozenset({"webgpu-gl", "dawn"}),
    # Its kernels are those of test_reductions and test_sorting, which run on all kinds of devices.
    **dict.fromkeys(
        ("test_beside_numpy", "test_choices", "test_distributions", "test_statistics"),
        frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    # What runs in one provider of WebGPU, the other's compiler takes too (support/both_compilers).
    **dict.fromkeys(
        (
            "test_device_windows",
            "test_exact_products",
        ),
        frozenset({"webgpu-gl", "dawn", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    # And the evaluator of PTX, where they are long, leaves them to cards.
    **dict.fromkeys(
        ("test_marches", "test_quantized_products", "test_several_steps", "test_sorting"),
        frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    # Neither their launches nor their threads and messages depend on how a kernel is spelled.
    **dict.fromkeys(
        _ACTORS
        | {
            "test_captures",
            "test_interop",
            "test_interrupted_launches",
            "test_side_by_side",
            "test_streams",
        },
        frozenset({"webgpu-gl", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    **dict.fromkeys(  # about recordings
        ("test_graph_bodies", "test_drawn_graph_bodies"),
        frozenset({"webgpu-gl", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    **dict.fromkeys(
        _CUDA_CPP_LIBRARIES, frozenset({"webgpu-gl", "dawn", "ptx-sm_70", "ptx-nvrtc"})
    ),
    **dict.fromkeys(_CUDA_CPP_BUILTINS, frozenset({"webgpu-gl", "dawn"})),
    # Slow there, and no different.
    **dict.fromkeys(("test_diverged_warps", "test_fragments"), frozenset({"webgpu-gl"})),
    **dict.fromkeys(
        ("test_cpp_inline_matrices", "test_cpp_wmma"),
        frozenset({"webgpu", "webgpu-gl", "dawn", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    # Software GPUs compile them for a minute.
    "test_cpp_wide_tiles": frozenset({"webgpu", "webgpu-gl", "dawn", "ptx-sm_70", "ptx-nvrtc"}),
    "test_opaque_fragments": frozenset({"webgpu-gl", "dawn", "ptx-nvrtc"}),
    **dict.fromkeys(_ARRAY_KERNELS, frozenset({"webgpu-gl", "dawn", "ptx-sm_70", "ptx-nvrtc"})),
    **dict.fromkeys(_CUDA_CPP, frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"})),
    **dict.fromkeys(_ELEMENTWISE, frozenset({"webgpu-gl", "dawn", "ptx-sm_70", "ptx-nvrtc"})),
    # Their functions are those of test_math and test_values, and what they have beside these is in
    # tests of arrays and stencils, which the evaluator runs.
    **dict.fromkeys(
        (
            "test_boundaries",
            "test_complex_math",
            "test_elementwise_functions",
            "test_fusion",
            "test_random",
            "test_selecting",
            "test_stencil_arrays",
        ),
        frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    **dict.fromkeys(_STENCILS, frozenset({"webgpu-gl", "dawn", "ptx-sm_70", "ptx-nvrtc"})),
    **dict.fromkeys(
        _STENCIL_SOLUTIONS, frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"})
    ),
    **dict.fromkeys(
        _DRAWN_ACTORS | _WAITING_ACTORS,
        frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"}),
    ),
    **dict.fromkeys(_QUANT, frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"})),
    **dict.fromkeys(
        _ARRAY_RULES | _LIBRARY | _TRAINING | _PLANS,
        frozenset({"webgpu-gl", "dawn", "ptx", "ptx-sm_70", "ptx-nvrtc"}),
    ),
}


# What runs through NumPy for every change: each kind of construct, and some of array programs. All
# of the suite runs there with the slow tests.
_NUMPY = frozenset({
    "test_blocks", "test_byte_dots", "test_control", "test_cpp_atomics", "test_cpp_statements",
    "test_cpp_warps", "test_diverged_warps", "test_fragments", "test_fusion",
    "test_ir_atomics", "test_ir_kernels", "test_items", "test_launch", "test_memory",
    "test_reductions", "test_rows", "test_scattering", "test_structs",
    "test_views", "test_wide_integers",
})  # fmt: skip


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    full = not config.option.markexpr
    left_out = [item for item in items if _is_left_out(item, full)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def _is_left_out(item: pytest.Item, full: bool) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    device = parameters.get("device")
    by_numpy = "cpu" if IN_A_PAGE else "numpy"
    if device == by_numpy and not full and item.path.stem not in _NUMPY:
        return True
    if "cuda" not in _FOUND and device in _LEFT_OUT.get(item.path.stem, ()):
        return True
    name = getattr(item, "originalname", "")
    return device in ("ptx-sm_70", "ptx-nvrtc") and name in _ONCE


@pytest.fixture(
    params=[pytest.param(name, marks=_MARKS.get(name, ())) for name in (*_FOUND, *_PTX)]
)
def device(request: pytest.FixtureRequest) -> Iterator[td.Device]:
    if request.param in _PTX:
        with ptx_device(_PTX[request.param]) as machine, td.use_device(machine):
            yield machine
        return
    try:
        found = _FOUND[request.param]()
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found


@pytest.fixture
def rng() -> np.random.Generator:
    """Fresh numbers at every run; the seed is in the output of a failing test."""
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    return np.random.default_rng(seed)
