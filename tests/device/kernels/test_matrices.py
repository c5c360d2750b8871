"""Small matrices in kernels, beside NumPy's: on every device, and in the interpreter."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import treadle as td
from tests.support.kernels import agree
from treadle.core.errors import CompileError, DtypeError, LaunchError
from treadle.tensor.dtypes import supports


@td.struct
class Pose:
    turn: td.mat3x3[td.f32]
    shift: td.vec3[td.f32]
    weights: td.mat2x4[td.f32]


@td.struct
class Rig:
    ms: td.mat2x2[td.f32][2]


@td.func
def moved(pose, v):
    return pose.turn @ v + pose.shift


@td.kernel
def compute(
    ms: td.Array[td.mat3x3[td.f32]],
    vs: td.Array[td.vec3[td.f32]],
    a: td.mat3x3[td.f32],
    pose: Pose,
    poses: td.Array[Pose],
    out: td.Array[td.mat3x3[td.f32]],
    found: td.Array[td.vec3[td.f32]],
    numbers: td.Array[td.f32, 2],
):
    i = td.grid(1)
    if i < vs.size:
        m = ms[i]
        found[i] = (m @ a.T + pose.turn * 2.0) @ vs[i] - vs[i] @ m + moved(pose, vs[i])
        numbers[0, i] = m.determinant()
        m[1, 2] += 1.0
        m[0] = m[0] * 2.0
        m[2].x = 4.0
        m[2, i % 3] = -m[2, i % 3]
        numbers[1, i] = m[i % 3, (i + 1) % 3] + m[i % 3].y
        numbers[2, i] = m[i + 3, 0] + m[0, i + 3]  # outside: 0
        shared = td.shared(8, td.mat3x3[td.f32])
        shared[td.thread_idx.x] = -m if i != 2 else m + 1
        own = td.local(2, td.mat3x3[td.f32])
        own[i % 2] = shared[td.thread_idx.x] - 0.5 * m
        own[i % 2][0, 1] += 2.0
        m @= a
        out[i] = own[i % 2].inverse() / 2 + m
        poses[i].turn = m
        poses[i].turn[1, 1] = 7.0
        poses[i].weights[1, 2] += pose.weights[0, 1] * 2.0


def expected(ms, vs, a, pose, poses):
    turn, shift = np.asarray(pose.turn), np.asarray(pose.shift)
    ms, vs, i = ms.astype(np.float64), vs.astype(np.float64), np.arange(len(vs))
    found = np.einsum("nij,nj->ni", ms @ a.T.astype(np.float64) + turn * 2, vs)
    found += vs @ turn.T.astype(np.float64) + shift - np.einsum("nj,nji->ni", vs, ms)
    m = ms.copy()
    m[:, 1, 2] += 1
    m[:, 0] *= 2
    m[:, 2, 0] = 4
    m[i, 2, i % 3] *= -1
    read = m[i, i % 3, (i + 1) % 3] + m[i, i % 3, 1]
    beyond = np.where(i + 3 < 3, np.nan, 0)
    shared = np.where((i == 2)[:, None, None], m + 1, -m) - 0.5 * m
    shared[:, 0, 1] += 2
    m = m @ a
    turned = m.copy()
    turned[:, 1, 1] = 7
    numbers = np.stack([np.linalg.det(ms), read, beyond])
    return np.linalg.inv(shared) / 2 + m, found, numbers, turned


def arguments(n):
    rng = np.random.default_rng()
    # near a multiple of the identity, so that there is an inverse
    ms = (rng.uniform(-1, 1, (n, 3, 3)) + 6 * np.eye(3)).astype(np.float32)
    vs = rng.normal(size=(n, 3)).astype(np.float32)
    a = rng.normal(size=(3, 3)).astype(np.float32)
    pose = Pose(rng.normal(size=(3, 3)), (1, 2, 3), np.arange(8))
    poses = np.zeros(n, Pose.dtype)
    poses["weights"]["row1"] = 1
    return ms, vs, a, pose, poses


def check(given, out, found, numbers, poses):
    wanted = expected(*given)
    np.testing.assert_allclose(out, wanted[0], rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(found, wanted[1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(numbers, wanted[2], rtol=1e-4, atol=1e-4)
    turned = np.stack([poses["turn"][f"row{i}"] for i in range(3)], axis=1)
    np.testing.assert_allclose(turned, wanted[3], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(poses["weights"]["row1"], [[1, 1, 3, 1]] * len(poses))


@pytest.mark.parametrize("n", [1, 5])
def test_beside_numpy(device, n):
    given = arguments(n)
    ms, vs, a, pose, poses = given
    out, found = td.full((n, 3, 3), 77.0), td.full((n, 3), 77.0)
    numbers = td.full((3, n), 77.0)
    made = td.mat3x3[td.f32](a)
    compute[1, 8](td.asarray(ms), td.asarray(vs), made, pose, poses, out, found, numbers)
    check(given, out.numpy(), found.numpy(), numbers.numpy(), poses)


def test_the_interpreter_agrees():
    given = arguments(5)
    ms, vs, a, pose, poses = given
    zeros = np.zeros((5, 3, 3), np.float32), np.zeros((5, 3), np.float32)
    numbers = np.zeros((3, 5), np.float32)
    with td.interpret():
        compute[1, 8](ms, vs, td.mat3x3[td.f32](a), pose, poses, *zeros, numbers)
    check(given, *zeros, numbers, poses)


def test_every_shape(device):
    rng = np.random.default_rng()
    two, three, four = (rng.normal(size=(r, 3)).astype(np.float32) for r in (2, 3, 4))

    @td.kernel
    def products(
        a: td.mat2x3[td.f32],
        b: td.mat3x3[td.f32],
        c: td.mat4x3[td.f32],
        x: td.Array[td.f32, 2],
        y: td.Array[td.f32],
        out: td.Array[td.f32, 3],
    ):
        p, q, r = a @ b, c @ a.T, a @ c.T
        s = q @ r + td.mat4x4[td.f32](10.0)
        t = s.inverse()
        u = td.mat2x2[td.f32](a[0].xy, a[1].xy)
        v = u.inverse()
        w = td.mat3x4[td.f32](x)
        z = td.mat4x2[td.f32](y) * 2
        for i in td.static_range(4):
            for j in td.static_range(4):
                out[0, i, j] = s[i, j]
                out[1, i, j] = t[i, j]
        for i in td.static_range(2):
            for j in td.static_range(3):
                out[2, i, j] = p[i, j]
        for i in td.static_range(2):
            for j in td.static_range(2):
                out[3, i, j] = v[i, j]
        out[4, 0, 0] = s.determinant()
        out[4, 0, 1] = u.determinant()
        out[4, 1, 0], out[4, 1, 1] = z.shape
        for i in td.static_range(3):
            for j in td.static_range(4):
                out[5, i, j] = w[i, j] + z.T[i % 2, j] + td.mat4x3[td.f32](w.T)[j, i]

    x, y = np.arange(12.0, dtype=np.float32).reshape(3, 4), np.arange(8.0, dtype=np.float32)
    out = td.zeros((6, 4, 4))
    products[1, 1](
        td.mat2x3[td.f32](two), td.mat3x3[td.f32](three), td.mat4x3[td.f32](*four), x, y, out
    )
    made = out.numpy()
    two, three, four = (each.astype(np.float64) for each in (two, three, four))
    s = four @ two.T @ two @ four.T + 10 * np.eye(4)
    np.testing.assert_allclose(made[0], s, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(made[1], np.linalg.inv(s), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(made[2, :2, :3], two @ three, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(made[3, :2, :2] @ two[:, :2], np.eye(2), atol=1e-3)
    np.testing.assert_allclose(made[4, 0, 0], np.linalg.det(s), rtol=1e-3)
    np.testing.assert_allclose(made[4, 0, 1], np.linalg.det(two[:, :2]), rtol=1e-3, atol=1e-5)
    assert made[4, 1, :2].tolist() == [4, 2]
    wanted = 2 * x + 2 * y.reshape(4, 2).T[[0, 1, 0]]
    np.testing.assert_array_equal(made[5, :3], wanted)


@pytest.mark.parametrize("dtype", ["i32", "u8", "f16", "f64"])
def test_dtypes(device, dtype):
    kind = getattr(td, dtype)
    if not supports(device, kind):
        return

    @td.kernel
    def squared(ms: td.Array[td.mat2x2[kind]], out: td.Array[td.mat2x2[kind]]):
        i = td.grid(1)
        out[i] = ms[i] @ ms[i] + ms[i] * 2 - td.mat2x2[kind](1)

    ms = np.random.default_rng().integers(0, 6, (3, 2, 2)).astype(kind.numpy)
    out = np.zeros_like(ms)
    squared.launch(3, ms, out)
    np.testing.assert_array_equal(out, (ms @ ms + ms * 2 - np.eye(2)).astype(ms.dtype))


@td.kernel
def assign(ms: td.Array[td.mat3x2[td.f32]], rigs: td.Array[Rig], count: td.Array[td.i32]):
    i = td.grid(1)
    m = ms[i]
    m[i % 3, i % 2] = 10.0
    m[(i + 1) % 3][1] += 20.0
    m[(i + 2) % 3].x = td.f32(td.atomic_add(count, 0, 1) * 0 + 30)
    m[i % 3] *= 2.0
    m[i + 3, 0] = 7.0  # outside: dropped
    ms[i] = m
    ms[i][i % 3, 0] += 1.0
    rigs[i].ms[i % 2][i % 2, 1] = 5.0
    rigs[i].ms[1][(i + 1) % 2] = td.vec2[td.f32](8, 9)


def assigned(ms):
    for i, m in enumerate(ms):
        m[i % 3, i % 2] = 10
        m[(i + 1) % 3, 1] += 20
        m[(i + 2) % 3, 0] = 30
        m[i % 3] *= 2
        m[i % 3, 0] += 1
    return ms


def test_rows_that_are_chosen_are_assigned(device):
    drawn = np.random.default_rng().integers(0, 9, (5, 3, 2)).astype(np.float32)
    rigs, count = np.zeros(5, Rig.dtype), td.zeros(1, dtype=td.int32)
    ms = td.asarray(drawn)
    assign.launch(5, ms, rigs, count)
    np.testing.assert_array_equal(ms.numpy(), assigned(drawn.copy()))
    assert count.item() == 5
    for i, rig in enumerate(rigs["ms"]):
        made = np.stack([rig["row0"], rig["row1"]], axis=1)
        wanted = np.zeros((2, 2, 2))
        wanted[i % 2, i % 2, 1] = 5
        wanted[1, (i + 1) % 2] = 8, 9
        np.testing.assert_array_equal(made, wanted)
    host, again = drawn.copy(), np.zeros(5, Rig.dtype)
    with td.interpret():
        assign[1, 5](host, again, np.zeros(1, np.int32))
    np.testing.assert_array_equal(host, assigned(drawn.copy()))
    assert (again == rigs).all()


def test_singular_matrices(device):
    @td.kernel
    def invert(ms: td.Array[td.mat2x2[td.f32]]):
        ms[td.grid(1)] = ms[td.grid(1)].inverse()

    ms = np.array([[[1, 2], [2, 4]], [[np.nan, 0], [0, 1]]], np.float32)
    invert.launch(2, ms)
    assert not np.isfinite(ms[0]).any()
    assert np.isnan(ms[1]).any()


def test_print(capfd):
    @td.kernel
    def show(m: td.mat2x2[td.i32]):
        print(m, m[1], np.linalg.det(m))

    *_, lines = _printed(show, td.mat2x2[td.i32](1, 2, 3, 4), capfd)
    assert lines == ["((1, 2), (3, 4)) (3, 4) -2"] * 2


def _printed(kernel, m, capfd):
    with td.use_device("cpu"):
        kernel[1, 1](m)
        td.default_device().synchronize()
    with td.interpret():
        kernel[1, 1](m)
    return (capfd.readouterr().out.splitlines(),)


# --- outside kernels -----------------------------------------------------------------------------


def test_values_outside_kernels():
    m = td.mat2x3[td.f32]([[1, 2, 3], [4, 5, 6]])
    assert m == td.mat2x3[td.f32](1, 2, 3, 4, 5, 6) == td.mat2x3[td.f32]((1, 2, 3), (4, 5, 6))
    assert m == td.mat2x3[td.f32](m[0], m[1]) == td.mat2x3[td.f32](np.asarray(m))
    assert repr(m) == "mat2x3[float32]((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))"
    assert (m.shape, len(m), m[1, 2], m[0].y) == ((2, 3), 2, 6, 2)
    for made in (copy.copy(m), copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert made == m
        made[1, 2] = 7
        assert (made[1, 2], m[1, 2]) == (7, 6)
    a, b = np.asarray(m), np.asarray(m @ m.T)
    assert a.dtype == np.float32
    np.testing.assert_array_equal(b, a @ a.T)
    np.testing.assert_array_equal(m @ td.vec3[td.f32](1, 2, 3), a @ [1, 2, 3])
    np.testing.assert_array_equal(td.vec2[td.f32](1, 2) @ m, [1, 2] @ a)
    np.testing.assert_array_equal(2 * m - m / 2 + 1, 2 * a - a / 2 + 1)
    np.testing.assert_array_equal(-m * m, -a * a)
    for size, family in ((2, td.mat2x2), (3, td.mat3x3), (4, td.mat4x4)):
        data = np.random.default_rng().normal(size=(size, size)) + 5 * np.eye(size)
        square = family[td.f64](data)
        np.testing.assert_allclose(square.inverse(), np.linalg.inv(data), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(square.determinant(), np.linalg.det(data), rtol=1e-12)
        assert np.asarray(family[td.f32](2)).tolist() == (2 * np.eye(size)).tolist()
        assert not np.asarray(family[td.f32]()).any()
    for wrong in (
        lambda: td.mat2x2[td.f32](1, 2, 3),
        lambda: td.mat2x3[td.f32](np.zeros((3, 2))),
        lambda: m @ m,
        lambda: m + td.mat2x2[td.f32](),
        lambda: m * td.vec3[td.f32](),
        lambda: m.inverse(),
        lambda: td.mat2x2[td.i32](1).inverse(),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(IndexError, match="outside 2"):
        m[2, 0]


# --- what is refused -----------------------------------------------------------------------------


def refused(body):
    text = f"def f(m: td.mat2x3[td.f32], v: td.vec3[td.f32], x: td.Array[td.f32]):\n    {body}\n"
    td.kernel(source=text).source("ir")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("x[0] = (m @ m)[0, 0]", "as many columns on the left"),
        ("x[0] = (v @ v)", "td.dot"),
        ("x[0] = (m @ 2.0)[0, 0]", r"write \* for a product"),
        ("x[0] = (x @ m)[0, 0]", "index|array"),
        ("x[0] = 2.0 @ 3.0", "write the loops"),
        ("x[0] = (m * v)[0, 0]", "the product is m @ v"),
        ("x[0] = (m + td.mat2x2[td.f32]())[0, 0]", "one shape"),
        ("x[0] = (m // 2)[0, 0]", "does not work on matrices"),
        ("x[0] = m[2, 0]", "2 rows, from 0 to 1, and the index is 2"),
        ("x[0] = m[0, 3]", "3 columns"),
        ("x[0] = m[0, 0, 0]", "takes one index"),
        ("x[0] = m.determinant()", "square"),
        ("x[0] = td.mat2x2[td.i32](1).inverse()[0, 0]", "fractions"),
        ("x[0] = m.trace", "no trace|has no"),
        ("(v, v)[td.grid(1)].x = 1.0", "a tuple's items can't be assigned"),
        ("x[0] = td.mat2x2[td.f32](1, 2, 3)[0, 0]", "has 4 numbers, and 3 are given"),
        ("x[0] = td.mat2x2(1)[0, 0]", r"needs a dtype, as in td.mat2x2\[td.f32\]"),
        ("x[0] = m == m", "compare the parts"),
        ("x[0] = m", r"td\.mat2x3\[td\.f32\]"),
    ],
)
def test_refusals(body, says):
    with pytest.raises((CompileError, DtypeError), match=says):
        refused(body)


def test_arrays_of_other_shapes_are_refused():
    @td.kernel
    def touch(ms: td.Array[td.mat2x3[td.f32]]):
        ms[0] = ms[0]

    for launch in (lambda x: touch[1, 1](x), lambda x: touch[1, 1](td.asarray(x, device="cpu"))):
        for shape in ((4, 3, 2), (6,), (2, 3)):
            with pytest.raises(LaunchError, match=r"\(2, 3\)|dimensions|shape"):
                launch(np.zeros(shape, np.float32))
    with td.interpret(), pytest.raises(LaunchError, match=r"\(2, 3\)"):
        touch[1, 1](np.zeros((4, 3, 2), np.float32))


def test_agree_in_a_generic_function():
    @td.func
    def power(m, n: td.i32):
        made = m
        for _ in range(1, n):
            made = made @ m
        return made

    @td.kernel
    def raised(ms: td.Array[td.mat3x3[td.i32]], n: td.i32):
        i = td.grid(1)
        ms[i] = power(ms[i], n)

    data = np.random.default_rng().integers(-3, 4, (4, 3, 3)).astype(np.int32)
    made, _ = agree(raised, 1, 4, data, 3)
    np.testing.assert_array_equal(made, data @ data @ data)
