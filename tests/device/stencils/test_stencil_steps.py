"""`td.stencil_loop`: arrays that change places, several stencils a step, callbacks, convergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td


@td.stencil(boundary="wrap")
def step(u, out, pos):
    out[pos] = 0.5 * pos.north(u) + 0.25 * pos.east(u) + 0.25 * u[pos]


def stepped(u: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        u = 0.5 * np.roll(u, 1, 0) + 0.25 * np.roll(u, -1, 1) + 0.25 * u
    return u


def start(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32)


@pytest.mark.parametrize("steps", [0, 1, 2, 33, 131])
def test_two_arrays_change_places(device: td.Device, steps: int) -> None:
    u = start(9, 21)
    a, b = td.asarray(u, device=device), td.full(u.shape, float("nan"), device=device)
    last = td.stencil_loop(step, a, b, steps=steps)
    assert last is (b if steps % 2 else a)
    np.testing.assert_allclose(last.numpy(), stepped(u, steps), rtol=1e-5)
    if steps:
        other = a if last is b else b
        np.testing.assert_allclose(other.numpy(), stepped(u, steps - 1), rtol=1e-5)


def test_recorded_steps_are_the_steps_one_by_one(device: td.Device) -> None:
    u = start(33, 40)
    a, b = td.asarray(u, device=device), td.zeros(u.shape, device=device)
    for _ in range(50):
        step(a, b)
        step(b, a)
    c, d = td.asarray(u, device=device), td.zeros(u.shape, device=device)
    last = td.stencil_loop(step, c, d, steps=100)
    assert last.numpy().tobytes() == a.numpy().tobytes()


@td.stencil(boundary="wrap")
def summed(u, out, pos):
    out[pos] = 0.25 * u[pos]
    for _ in td.static_range(2):
        out[pos] += 0.25 * pos.north(u)
    out[pos] = out[pos] + 0.25 * pos.east(u)


@td.stencil(boundary="wrap")
def held(u, hold, pos):
    if hold[pos]:
        u[pos] = 1.0
    else:
        u[pos] = 0.5 * u[pos]


def test_an_output_may_be_added_to_once_it_is_written(device: td.Device) -> None:
    u = start(9, 21)
    a, b = td.asarray(u, device=device), td.full(u.shape, float("nan"), device=device)
    last = td.stencil_loop(summed, a, b, steps=7)
    assert last is b
    np.testing.assert_allclose(b.numpy(), stepped(u, 7), rtol=1e-5)
    # What is read in some cells before it is written is written in place.
    hold = u > 0.5
    last = td.stencil_loop(held, a, td.asarray(hold, device=device), steps=3)
    assert last is a
    np.testing.assert_allclose(a.numpy(), np.where(hold, 1, stepped(u, 6) / 8), rtol=1e-5)


def test_arrays_of_numpy(device: td.Device) -> None:
    u = start(5, 6)
    a, b = u.copy(), np.zeros_like(u)
    last = td.stencil_loop(step, a, b, steps=3)
    assert last is b
    np.testing.assert_allclose(b, stepped(u, 3), rtol=1e-5)
    np.testing.assert_allclose(a, stepped(u, 2), rtol=1e-5)


@td.stencil(boundary="zero")
def wave(before, now, c, after, pos):
    laplacian = pos.west(now) - 2.0 * now[pos] + pos.east(now)
    after[pos] = 2.0 * now[pos] - before[pos] + c * laplacian


def test_three_arrays_rotate(device: td.Device) -> None:
    u = start(40)
    arrays = [td.asarray(each, device=device) for each in (u, u, np.full_like(u, np.nan))]
    last = td.stencil_loop(
        wave, *arrays[:2], 0.25, arrays[2], steps=101, rotate=("before", "now", "after")
    )
    before, now = u, u
    for _ in range(101):
        whole = np.pad(now, 1)
        laplacian = whole[:-2] - 2 * now + whole[2:]
        before, now = now, (2 * now - before + np.float32(0.25) * laplacian).astype(np.float32)
    np.testing.assert_allclose(last.numpy(), now, rtol=1e-4, atol=1e-5)


@td.stencil
def shot(field, signal, clock, pos):
    if pos.index[0] == 7:
        field[pos] += signal[clock[0]]


@td.stencil
def tick(clock, pos):
    clock[pos] += 1


def test_a_source_beside_arrays_that_rotate(device: td.Device) -> None:
    """After all stencils of a step arrays change places: the source adds to the new wave."""
    signal = start(101)
    fields = [td.zeros(40, device=device) for _ in range(3)]
    clock = td.zeros(1, dtype=td.int32, device=device)
    seen = []
    td.stencil_loop(
        [(wave, *fields[:2], 0.25, fields[2]),
         (shot, fields[2], td.asarray(signal, device=device), clock), (tick, clock)],
        steps=101, rotate=("before", "now", "after"), every=67,
        callback=lambda step, field, clock: seen.append((step, field.numpy(), clock.item())),
    )  # fmt: skip
    before, now, want = np.zeros(40, np.float32), np.zeros(40, np.float32), {}
    for step, each in enumerate(signal):
        whole = np.pad(now, 1)
        laplacian = whole[:-2] - 2 * now + whole[2:]
        before, now = now, (2 * now - before + np.float32(0.25) * laplacian).astype(np.float32)
        now[7] += each
        want[step + 1] = now.copy()
    assert [(step, count) for step, _, count in seen] == [(67, 67), (101, 101)]
    for step, field, _ in seen:
        np.testing.assert_allclose(field, want[step], rtol=1e-4, atol=1e-5)


def test_the_same_stencil_twice_with_arrays_that_rotate(device: td.Device) -> None:
    u, v = start(5, 6), 2 * start(5, 6)
    a, b, c, d = (td.asarray(each, device=device) for each in (u, u * 0, v, v * 0))
    one, other = td.stencil_loop([(step, a, b), (step, c, d)], steps=71, rotate=("u", "out"))
    np.testing.assert_allclose(one.numpy(), stepped(u, 71), rtol=1e-5)
    np.testing.assert_allclose(other.numpy(), stepped(v, 71), rtol=1e-5)


@td.stencil(boundary="zero")
def update_h(h, e, pos):
    h[pos] += 0.5 * (pos.east(e) - e[pos])


@td.stencil(boundary="zero")
def update_e(e, h, pos):
    e[pos] += 0.5 * (h[pos] - pos.west(h))


def test_several_stencils_in_turn(device: td.Device) -> None:
    e, h = start(30), np.zeros(30, np.float32)
    on_e, on_h = td.asarray(e, device=device), td.asarray(h, device=device)
    found = td.stencil_loop([(update_h, on_h, on_e), (update_e, on_e, on_h)], steps=70)
    for _ in range(70):
        h = h + np.float32(0.5) * (np.append(e[1:], np.float32(0)) - e)
        e = e + np.float32(0.5) * (h - np.append(np.float32(0), h[:-1]))
    assert found[0] is on_h
    assert found[1] is on_e
    np.testing.assert_allclose(on_e.numpy(), e, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(on_h.numpy(), h, rtol=1e-4, atol=1e-5)


@td.stencil
def double(u, out, pos):
    out[pos] = 2.0 * u[pos]


def test_stencils_that_hand_an_array_on(device: td.Device) -> None:
    u = start(6, 7)
    a, b = td.asarray(u, device=device), td.zeros(u.shape, device=device)
    last = td.stencil_loop([(step, a, b), (double, a, b)], steps=5)
    want = u
    for _ in range(5):
        want = 2 * stepped(want, 1)
    np.testing.assert_allclose(last.numpy(), want, rtol=1e-5)


@td.stencil(boundary="wrap")
def slope(u, out, pos):
    out[pos] = pos.east(u) - u[pos]


@td.stencil
def apply(u, change, pos):
    u[pos] += 0.25 * change[pos]


def test_what_is_handed_on_keeps_its_place(device: td.Device) -> None:
    u = start(5, 8)
    a, change = td.asarray(u, device=device), td.zeros(u.shape, device=device)
    td.stencil_loop([(slope, a, change), (apply, a, change)], steps=70)
    want = u
    for _ in range(70):
        want = want + np.float32(0.25) * (np.roll(want, -1, 1) - want)
    np.testing.assert_allclose(a.numpy(), want, rtol=1e-4)
    # Without changing places, a step that reads its result's own input stands still.
    b = td.zeros(u.shape, device=device)
    last = td.stencil_loop(step, td.asarray(u, device=device), b, steps=70, rotate=())
    assert last is b
    np.testing.assert_allclose(b.numpy(), stepped(u, 1), rtol=1e-5)


@td.stencil(boundary="wrap")
def react(u, v, new_u, new_v, pos):
    new_u[pos] = 0.5 * u[pos] + 0.5 * pos.east(v)
    new_v[pos] = 0.5 * v[pos] + 0.25 * pos.west(u)


def test_two_outputs_and_a_callback(device: td.Device) -> None:
    u, v = start(12), start(12) + 1
    on = [td.asarray(each, device=device) for each in (u, v)]
    seen: list[tuple[int, np.ndarray, np.ndarray]] = []
    last = td.stencil_loop(
        react, *on, td.zeros(12, device=device), td.zeros(12, device=device),
        steps=10, every=4, callback=lambda at, a, b: seen.append((at, a.numpy(), b.numpy())),
    )  # fmt: skip
    states = [(u, v)]
    for _ in range(10):
        u, v = 0.5 * u + 0.5 * np.roll(v, -1), 0.5 * v + 0.25 * np.roll(u, 1)
        states.append((u, v))
    assert [at for at, _, _ in seen] == [4, 8, 10]
    for at, a, b in (*seen, (10, last[0].numpy(), last[1].numpy())):
        np.testing.assert_allclose(a, states[at][0], rtol=1e-5)
        np.testing.assert_allclose(b, states[at][1], rtol=1e-5)


@td.stencil(boundary="clamp")
def relax(u, out, pos):
    out[pos] = 0.25 * pos.west(u) + 0.5 * u[pos] + 0.25 * pos.east(u)


def test_until_it_has_converged(device: td.Device) -> None:
    u = start(16)
    done: list[int] = []
    last = td.stencil_loop(
        relax, td.asarray(u, device=device), td.zeros(16, device=device), steps=10_000, every=50,
        callback=lambda at, u: done.append(at),
        until=lambda new, old: td.max(td.abs(new - old)) < 1e-3,
    )  # fmt: skip
    assert 50 <= done[-1] < 1000
    far = np.abs(np.diff(last.numpy())).max()
    assert far < 0.1 < np.abs(np.diff(u)).max()


def test_a_loop_in_a_graph_and_in_a_compiled_function(device: td.Device) -> None:
    u = start(6, 8)
    a, b = td.asarray(u, device=device), td.zeros(u.shape, device=device)
    graph = td.Graph(device)
    with graph.capture():
        td.stencil_loop(step, a, b, steps=80)
    graph.replay()
    graph.replay()
    np.testing.assert_allclose(a.numpy(), stepped(u, 160), rtol=1e-5)

    @td.compile
    def run(u: Any) -> Any:
        return td.stencil_loop(step, 2.0 * u, td.empty_like(u), steps=80) + 1.0

    for _ in range(3):
        got = run(td.asarray(u, device=device)).numpy()
        np.testing.assert_allclose(got, stepped(2 * u, 80) + 1, rtol=1e-5)


def test_what_a_loop_refuses(device: td.Device) -> None:
    a, b = td.zeros((3, 4), device=device), td.zeros((3, 4), device=device)
    launch: Any = td.errors.LaunchError
    with pytest.raises(ValueError, match="steps is an integer"):
        td.stencil_loop(step, a, b, steps=-1)
    for steps in (None, 3.0):
        with pytest.raises(ValueError, match="steps is an integer"):
            td.stencil_loop(step, a, b, steps=steps)  # type: ignore[arg-type]
    for wrong in ({"until": 5}, {"rotate": 5}):
        with pytest.raises(TypeError, match=f"{next(iter(wrong))}(=| is a)"):
            td.stencil_loop(step, a, b, steps=3, **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="until returned None"):
        td.stencil_loop(step, a, b, steps=np.int64(3), until=lambda *_: None)
    td.stencil_loop(step, a, b, steps=2, steps_per_launch=10**9)
    with pytest.raises(ValueError, match="every= goes with"):
        td.stencil_loop(step, a, b, steps=3, every=2)
    with pytest.raises(launch, match="takes 2 arguments"):
        td.stencil_loop(step, a, steps=3)
    with pytest.raises(launch, match="one dtype and shape"):
        td.stencil_loop(step, a, td.zeros((4, 4), device=device), steps=3)
    with pytest.raises(launch, match="rotate= names arrays"):
        td.stencil_loop(step, a, b, steps=3, rotate=("u", "nothing"))
    with pytest.raises(launch, match="step does not write u"):
        td.stencil_loop(step, a, b, steps=3, rotate=("out", "u"))
    with pytest.raises(launch, match="list of tuples"):
        td.stencil_loop([step], steps=3)
    with pytest.raises(launch, match="none of the stencils of the loop has all of these"):
        td.stencil_loop([(step, a, b)], steps=3, rotate=("before", "out"))
    with pytest.raises(launch, match="in one cycle of rotate= alone"):
        td.stencil_loop([(step, a, b), (step, b, a)], steps=3, rotate=("u", "out"))
    td.stencil_loop(step, a, b, steps=3)
