"""What a stencil refuses: the right error class, and then the next call works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td

Call = Callable[[td.Device], Any]
FAULTS: dict[str, tuple[type[Exception], str, Call]] = {}
errors: Any = td.errors


def refused(error: type[Exception], match: str) -> Callable[[Call], Call]:
    """A call that is an error."""

    def add(call: Call) -> Call:
        FAULTS[call.__name__] = (error, match, call)
        return call

    return add


@td.stencil(boundary="wrap")
def four(u, out, pos):
    out[pos] = pos.north(u) + 2.0 * pos.south(u) + 3.0 * pos.west(u) + 4.0 * pos.east(u)


# --- races ---------------------------------------------------------------------------------------


@td.func
def left(u, pos):
    return pos.west(u)  # the line


@td.stencil
def smear(u, pos):
    u[pos] = left(u, pos)


@refused(errors.CompileError, "(?s)another cell.*# the line")
def a_race_in_a_function(device: td.Device) -> None:
    smear(td.zeros(8, device=device))


@td.stencil
def accumulate(u, pos):
    for d in td.static_range(2):
        u[pos] += pos.at(u, d)  # the line


@refused(errors.CompileError, "(?s)another cell.*# the line")
def a_race_in_an_update(device: td.Device) -> None:
    accumulate(td.zeros(8, device=device))


@td.stencil
def exchange(u, v, pos):
    u[pos] = v[pos]
    v[pos] = pos.east(u)  # the line


@refused(errors.CompileError, "(?s)writes u, and reads it here at another cell.*# the line")
def a_race_of_two_arrays(device: td.Device) -> None:
    exchange(td.zeros(8, device=device), td.zeros(8, device=device))


@refused(errors.LaunchError, "shares memory with u")
def a_race_in_a_loop(device: td.Device) -> None:
    u = td.zeros((4, 5), device=device)
    td.stencil_loop(four, u, u, steps=1)


@refused(errors.LaunchError, "shares memory with u")
def a_race_in_a_recorded_loop(device: td.Device) -> None:
    whole = td.zeros((5, 5), device=device)
    td.stencil_loop(four, whole[:4], whole[1:], steps=200)


@refused(errors.LaunchError, "shares memory with u")
def a_race_in_a_capture(device: td.Device) -> None:
    u = td.zeros((4, 5), device=device)
    with td.Graph(device).capture():
        four(u, u)


@refused(errors.LaunchError, "same element for several cells")
def several_cells_of_one_element(device: td.Device) -> None:
    one_row = td.zeros((1, 5), device=device)
    four(td.ones((4, 5), device=device), td.broadcast_to(one_row, (4, 5)))


@td.stencil(boundary="wrap")
def two_places(f, pos):
    f[1][pos] = f[0][pos]
    f[0][pos.shifted(1)] = f[1][pos]  # the line


@refused(
    errors.CompileError, r"(?s)reads it here at another cell.*\(a stencil may read f\[0\]\[pos\."
)
def a_race_in_a_stack(device: td.Device) -> None:
    two_places(td.zeros((2, 8), device=device))


@td.stencil(boundary="wrap")
def scatter(out, pos):
    out[pos.shifted(-1)] = 1.0
    out[pos.shifted(1)] = 2.0  # the line


@refused(errors.CompileError, "(?s)two threads write one element.*# the line")
def writes_at_two_neighbours(device: td.Device) -> None:
    scatter(td.zeros(8, device=device))


@td.stencil(boundary="clamp")
def to_the_edge(out, pos):
    out[pos.shifted(1)] = 1.0  # the line


@refused(errors.CompileError, "(?s)several cells would write one element.*# the line")
def writes_that_are_clamped(device: td.Device) -> None:
    to_the_edge(td.zeros(8, device=device))


@td.stencil(boundary="wrap")
def to_the_east(u, out, pos):
    out[pos.shifted(0, 1)] = u[pos]


@refused(errors.ShapeError, "writes out at neighbours, for which all of its arrays have the same")
def writes_at_neighbours_of_a_staggered_grid(device: td.Device) -> None:
    to_the_east(td.zeros((4, 6), device=device), td.zeros((4, 5), device=device))


@refused(errors.LaunchError, "shares memory with u")
def writes_at_neighbours_of_what_is_read(device: td.Device) -> None:
    u = td.zeros((4, 6), device=device)
    to_the_east(u, u)


# --- stacks --------------------------------------------------------------------------------------


@td.stencil
def by_variable(f, n, out, pos):
    out[pos] = f[n][pos]  # the line


@refused(errors.CompileError, "(?s)chooses one grid of a stack is a constant.*# the line")
def a_grid_chosen_by_a_variable(device: td.Device) -> None:
    by_variable(td.zeros((3, 8), device=device), 1, td.zeros(8, device=device))


@td.stencil
def third(f, out, pos):
    out[1][pos] = f[2][pos]


@refused(errors.ShapeError, "f is a stack of 2 grids along axis 0, and third accesses grid 2")
def a_stack_of_too_few_grids(device: td.Device) -> None:
    third(td.zeros((2, 8), device=device), td.zeros((2, 8), device=device))


@refused(errors.ShapeError, "out is a stack of 1 grids")
def an_output_of_too_few_grids_in_a_loop(device: td.Device) -> None:
    f = td.zeros((3, 8), device=device)
    td.stencil_loop(third, f, td.zeros((1, 8), device=device), steps=2, rotate=())


@td.stencil
def whole_stack(f, out, pos):
    out[pos] = f[pos]


@refused(errors.CompileError, r"choose one of its grids, as in a\[0\]\[pos\], or index it with")
def a_stack_at_a_position(device: td.Device) -> None:
    whole_stack(td.zeros((3, 8), device=device), td.zeros(8, device=device))


@td.stencil
def beside_a_number(f, out, pos):
    out[pos] = f[1, pos]  # the line


@refused(errors.CompileError, r"(?s)chosen before it, as in f\[q\]\[pos\].*# the line")
def a_position_beside_a_number(device: td.Device) -> None:
    beside_a_number(td.zeros((3, 8), device=device), td.zeros(8, device=device))


@td.func
def put(out, pos):
    out[1][pos] = 3.0


@td.stencil
def by_function(out, pos):
    put(out, pos)


@refused(errors.CompileError, "of its first array's axes, as the body itself writes none at its")
def a_stack_that_a_function_writes(device: td.Device) -> None:
    by_function(td.zeros((3, 8), device=device))


@td.stencil
def passed_on(u, out, pos):
    out[pos] = left(u, pos.shifted(1))


@refused(errors.CompileError, "pass the position")
def a_shifted_position_that_is_passed(device: td.Device) -> None:
    passed_on(td.zeros(8, device=device), td.zeros(8, device=device))


# --- offsets -------------------------------------------------------------------------------------


@td.stencil
def by_loop(u, out, pos):
    total = 0.0
    for d in range(3):
        total += pos.at(u, d)
    out[pos] = total


@refused(errors.CompileError, "constant integers")
def offsets_of_a_loop(device: td.Device) -> None:
    by_loop(td.zeros(8, device=device), td.zeros(8, device=device))


@td.stencil
def by_half(u, out, pos):
    out[pos] = pos.at(u, 0.5)


@refused(errors.CompileError, "constant integers")
def offsets_that_are_not_whole(device: td.Device) -> None:
    by_half(td.zeros(8, device=device), td.zeros(8, device=device))


@td.stencil
def by_three(u, out, pos):
    out[pos] = pos.at(u, 1, 0, 0)


@refused(errors.CompileError, r"as in pos.at\(u, di, dj\)")
def too_many_offsets(device: td.Device) -> None:
    by_three(td.zeros((2, 3), device=device), td.zeros((2, 3), device=device))


@td.stencil
def upwards(u, out, pos):
    out[pos] = pos.up(u)


@refused(errors.CompileError, r"the grid of upwards \(that of out\) has 2 axes, and pos.up needs 3")
def no_such_neighbour(device: td.Device) -> None:
    upwards(td.zeros((2, 3), device=device), td.zeros((2, 3), device=device))


@td.stencil
def of_number(u, n, out, pos):
    out[pos] = u[pos] + pos.west(n)


@refused(errors.CompileError, "a position indexes arrays")
def a_neighbour_of_a_number(device: td.Device) -> None:
    of_number(td.zeros(8, device=device), 2.0, td.zeros(8, device=device))


@td.stencil
def kept(u, out, pos):
    places = td.local(2, td.i32)
    places[0] = pos
    out[pos] = u[pos]


@refused(errors.CompileError, "position")
def a_position_that_is_kept(device: td.Device) -> None:
    kept(td.zeros(8, device=device), td.zeros(8, device=device))


# --- arguments -----------------------------------------------------------------------------------


@refused(errors.CompileError, "is i32, and this value is f32")
def an_output_of_another_dtype(device: td.Device) -> None:
    four(td.zeros((4, 5), device=device), td.zeros((4, 5), dtype=td.int32, device=device))


@refused(errors.LaunchError, "read-only")
def an_array_that_is_only_read(device: td.Device) -> None:
    out = np.zeros((4, 5), np.float32)
    out.flags.writeable = False
    four(np.ones((4, 5), np.float32), out)


@refused(errors.DtypeError, "does not take str")
def what_is_not_an_array(device: td.Device) -> None:
    four("u", td.zeros((4, 5), device=device))


@refused(errors.LaunchError, "but the launch is on")
def an_array_of_another_device(device: td.Device) -> None:
    other = td.device("webgpu" if device.id == "cpu" else "cpu")
    four(td.zeros((4, 5), device=device), td.zeros((4, 5), device=other))


@td.stencil(boundary="mirror")
def far(u, out, pos):
    out[pos] = pos.at(u, 0, -5)


@refused(errors.ShapeError, "needs at least 6")
def a_halo_wider_than_the_array(device: td.Device) -> None:
    far(td.zeros((4, 5), device=device), td.zeros((4, 5), device=device))


@refused(errors.CompileError, r"the grid of four \(that of out\) has 1 axis, and pos.north needs 2")
def arrays_with_too_few_axes(device: td.Device) -> None:
    four(td.zeros(5, device=device))


@td.stencil
def next_one(u, out, pos):
    out[pos] = u[pos + 1]


@refused(errors.CompileError, r"as in pos.at\(u, 1\)")
def arithmetic_with_a_position(device: td.Device) -> None:
    next_one(td.zeros(5, device=device))


@refused(errors.LaunchError, r"td.asarray\(u\), since lists are not arrays")
def a_list_alone(device: td.Device) -> None:
    four([[1.0, 2.0]])


@td.stencil
def add(u, out, pos):
    out[pos] += u[pos]


@refused(errors.LaunchError, r"The body reads out, as out\[pos\] \+= … does")
def an_output_that_is_read(device: td.Device) -> None:
    add(td.zeros(5, device=device))


@refused(TypeError, "the parameters of four are u, out: v is not one of them")
def a_name_of_no_parameter(device: td.Device) -> None:
    four(v=td.zeros((4, 5), device=device))


@refused(TypeError, "the parameters of four are u, out: u is given twice")
def an_argument_twice(device: td.Device) -> None:
    four(td.zeros((4, 5), device=device), u=td.zeros((4, 5), device=device))


@refused(TypeError, "four is not given u")
def an_output_by_name_alone(device: td.Device) -> None:
    four(out=td.zeros((4, 5), device=device))


def test_arguments_by_name(device: td.Device) -> None:
    u = td.asarray(np.arange(20, dtype=np.float32).reshape(4, 5), device=device)
    want, out = four(u).numpy(), td.zeros_like(u)
    assert four(out=out, u=u) is None
    np.testing.assert_array_equal(out.numpy(), want)
    np.testing.assert_array_equal(four(u=u).numpy(), want)


# --- decorators ----------------------------------------------------------------------------------


@pytest.mark.parametrize("tile", ["x", (0, 8), (64, 64), (1, 1, 1, 8), 8.0, True, ()])
def test_tiles_that_no_device_has(tile: Any) -> None:
    with pytest.raises(ValueError, match="a stencil's tile"):
        td.stencil(tile=tile)


@td.stencil(storage=td.float16)
def stored(u, out, pos):
    out[pos] = u[pos]


def test_storage_of_arrays_without_annotation(device: td.Device) -> None:
    u = td.ones((2, 3), device=device)
    for call in (stored, td.vmap(stored)):
        with pytest.raises(errors.CompileError, match=r"annotate them as float32, as in u: td.Arr"):
            call(u)
    np.testing.assert_array_equal(stored(u.to(td.float16)).numpy(), np.ones((2, 3), np.float16))


def test_a_method() -> None:
    with pytest.raises(errors.CompileError, match="copy is a method, and a stencil is a plain"):

        class Simulation:
            @td.stencil
            def copy(self, u, out, pos):
                out[pos] = u[pos]


# --- gradients -----------------------------------------------------------------------------------


@refused(errors.AutogradError, r"as in u = step\(u\)")
def a_gradient_of_a_loop(device: td.Device) -> None:
    def last(u: td.Tensor) -> td.Tensor:
        return td.stencil_loop(four, u, td.zeros_like(u), steps=2).sum()

    td.grad(last)(td.zeros((4, 5), device=device))


@td.stencil
def decided(u, out, pos):
    half = 0.5 * u[pos]
    if u[pos] > 0.5:  # the line
        half = 1.0
    out[pos] = half


@refused(errors.CompileError, "(?s)written with td.where.*# the line")
def a_gradient_of_a_decision(device: td.Device) -> None:
    td.grad(lambda u: decided(u).sum())(td.ones(4, device=device))


@refused(errors.LaunchError, "stencil_loop takes a @td.stencil")
def a_loop_of_a_function(device: td.Device) -> None:
    u = td.zeros((4, 5), device=device)
    td.stencil_loop(lambda u, out: None, u, u, steps=1)


# --- constants of boundaries ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2.5, td.int32),
        (300, td.uint8),
        (-1, td.uint32),
        (float("nan"), td.int32),
        (1e6, td.float16),
    ],
)
def test_a_constant_that_an_array_cannot_have(
    device: td.Device, value: float, dtype: td.DType
) -> None:
    @td.stencil(boundary="constant", value=value)
    def before(u, out, pos):
        out[pos] = pos.west(u)

    u = td.ones(4, dtype=dtype, device=device)
    for call in (lambda: before(u, td.zeros_like(u)), lambda: before(u)):
        with pytest.raises(
            errors.DtypeError, match=f"before has the value .*u are td.{dtype.short}"
        ):
            call()
    with pytest.raises(errors.DtypeError, match="before has the value"):
        td.vmap(before)(u[None])
    right = before(td.ones(4, device=device))
    np.testing.assert_array_equal(right.numpy(), np.float32([value, 1, 1, 1]))


def test_a_constant_does_not_count_for_masks(device: td.Device) -> None:
    @td.stencil(boundary="constant", value=2.5)
    def before(u, solid, out, pos):
        out[pos] = td.where(solid[pos], 0.0, pos.west(u))

    solid = td.asarray([False, True, False], device=device)
    found = before(td.ones(3, device=device), solid)
    np.testing.assert_array_equal(found.numpy(), [2.5, 0, 1])


# --- the same on whole arrays --------------------------------------------------------------------


@td.stencil
def scaled(u, factor, out, pos):
    out[pos] = factor * u[pos]


@td.stencil
def halved(u, out, pos):
    out[pos] = u[pos] / 2


@pytest.mark.parametrize("dtype", [td.int32, td.uint8, td.int8, td.uint32])
def test_vmap_refuses_what_a_call_refuses(device: td.Device, dtype: td.DType) -> None:
    u = td.ones((2, 3), dtype=dtype, device=device)
    for stencil, factor in ((scaled, (0.5,)), (halved, ())):
        found = []
        for call in (stencil, td.vmap(stencil, in_dims=(0, None)[: 1 + len(factor)])):
            with pytest.raises(errors.CompileError, match=r"out\[pos\] is .*cast it") as caught:
                call(u, *factor)
            found.append(str(caught.value))
        assert found[0] == found[1]


def test_vmap_refuses_shapes_as_a_call(device: td.Device) -> None:
    u = td.ones((2, 3, 5), device=device)
    for k, message in (((3, 3), "k has shape"), ((3, 4), "need arrays of one shape, and u has")):
        with pytest.raises(errors.ShapeError, match=message):
            td.vmap(times, in_dims=(0, None))(u, td.ones(k, device=device))
    far = td.stencil(boundary="wrap")(far_north.__wrapped__)
    for call in (lambda: far(u[0]), lambda: td.vmap(far)(u)):
        with pytest.raises(errors.ShapeError, match="of which there are 3"):
            call()


@td.stencil
def times(u, k, out, pos):
    out[pos] = u[pos] * k[pos]


@td.stencil
def far_north(u, out, pos):
    out[pos] = pos.at(u, -4, 0)


def test_vmap_rounds_numbers_as_a_call(device: td.Device) -> None:
    if "float64" not in device.features:
        with pytest.raises(errors.DtypeError, match="no float64"):
            td.ones(3, dtype=td.float64, device=device)
        return
    u = td.asarray(np.float64([[1, 2, 3], [4, 5, 7]]), device=device)
    for factor, exact in ((0.1, float(np.float32(0.1))), (np.float64(0.1), 0.1)):
        want = exact * u.numpy()
        np.testing.assert_array_equal(scaled(u, factor).numpy(), want)
        np.testing.assert_array_equal(td.vmap(scaled, in_dims=(0, None))(u, factor).numpy(), want)


# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_refused(device: td.Device, name: str) -> None:
    error, match, call = FAULTS[name]
    for _ in range(2):  # nothing is kept of the first call that makes the second one do something
        with pytest.raises(error, match=match):
            call(device)
    u, out = td.ones((4, 5), device=device), td.full((4, 5), float("nan"), device=device)
    four(u, out)
    np.testing.assert_array_equal(out.numpy(), 10)


def test_numbers_that_a_boundary_takes_from_outside(device: td.Device) -> None:
    """They may change, as those that a body takes."""

    @td.func
    def scaled(x: td.f32) -> td.f32:
        return x * factor

    def beyond(u, i):
        return scaled(outside)

    @td.stencil(boundary=beyond)
    def next_one(u: td.Array[td.f32, 1], out: td.Array[td.f32, 1], pos):
        out[pos] = pos.at(u, 1)

    u, out = td.ones(8, device=device), td.zeros(8, device=device)
    for outside, factor in ((2.0, 1.0), (3.0, 1.0), (3.0, 5.0), (2.0, 1.0)):
        next_one(u, out)
        assert out.tolist() == [1.0] * 7 + [outside * factor]
        assert next_one(u).tolist() == out.tolist()
        again = td.stencil_loop(next_one, u.clone(), td.zeros(8, device=device), steps=1)
        assert again.tolist() == out.tolist()


def test_a_batch_of_no_grids(device: td.Device) -> None:
    @td.stencil(boundary="zero")
    def sides(u: td.Array[td.f32, 1], out: td.Array[td.f32, 1], pos):
        out[pos] = pos.at(u, -1) + pos.at(u, 1)

    assert td.vmap(sides)(td.zeros((0, 8), device=device)).numpy().shape == (0, 8)


def test_a_neighbour_that_no_array_has(device: td.Device) -> None:
    @td.stencil(boundary="zero")
    def far(u: td.Array[td.f32, 1], out: td.Array[td.f32, 1], pos):
        out[pos] = pos.at(u, 10**10)

    u = td.zeros(8, device=device)
    with pytest.raises(td.errors.CompileError, match=r"10000000000 cells away.*\n.*pos\.at\(u"):
        far(u, td.zeros(8, device=device))


@pytest.mark.parametrize("where", ["pos", "pos.shifted(1)"])
def test_writes_at_a_position_and_at_computed_indices(device: td.Device, where: str) -> None:
    place = 0 if where == "pos" else 1

    @td.stencil(boundary="wrap")
    def both(u: td.Array[td.f32, 1], out: td.Array[td.f32, 1], pos):
        (i,) = pos.index
        out[pos.shifted(place)] = u[pos]
        out[(i + 1) % out.shape[0]] = 2.0

    u = td.zeros(8, device=device)
    with pytest.raises(td.errors.CompileError, match=r"here at computed indices.*one of the two"):
        both(u, td.zeros(8, device=device))

    @td.stencil(boundary="wrap")
    def scatter(u: td.Array[td.f32, 1], out: td.Array[td.f32, 1], pos):
        (i,) = pos.index
        out[(i + 1) % out.shape[0]] = u[pos]

    out = td.zeros(8, device=device)
    scatter(td.arange(8, dtype=td.float32, device=device), out)
    assert out.tolist() == [7, 0, 1, 2, 3, 4, 5, 6]
