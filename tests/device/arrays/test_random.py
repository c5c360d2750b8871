"""Random numbers: their bits against Philox in NumPy, their laws, their parameters, generators."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

import treadle as td
from treadle.tensor.dtypes import default_integer, supports

DRAWS = (1 << 40) + 5  # a position whose upper word is not 0
SEED = 0x0123456789ABCDEF


def philox(counter, key):
    """Philox 4x32-10 of rows of four words."""
    c = [np.asarray(word, np.uint64) for word in counter]
    k = [int(word) for word in key]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        low = np.uint64(0xFFFFFFFF)
        c = [
            (second >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]),
            second & low,
            (first >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]),
            first & low,
        ]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return np.stack(c, -1).astype(np.uint32)


def words(count, seed=SEED, draw=DRAWS):
    """The first words of a draw, in order."""
    blocks = np.arange(-(-count // 4))
    rest = [np.full_like(blocks, draw % 2**32), np.full_like(blocks, draw >> 32)]
    found = philox([blocks, np.zeros_like(blocks), *rest], (seed % 2**32, seed >> 32))
    return found.reshape(-1)[:count]


def pairs(count):
    return words(2 * count).view(np.uint64)


def generator():
    return td.Generator(SEED, position=DRAWS)


def lacks(device, dtype):
    """Whether a device has no such dtype; then it must say so."""
    if supports(device, dtype):
        return False
    make = td.random.uniform if dtype.kind == "float" else td.random.permutation
    with pytest.raises(td.errors.DtypeError, match=f"has no {dtype.name}"):
        make(3, dtype=dtype)
    return True


def test_reference_gives_the_known_answers():
    ones, digits = 0xFFFFFFFF, (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)
    known = [
        ((0,) * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((ones,) * 4, (ones,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (digits, (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ]
    for counter, key, expected in known:
        assert philox(counter, key).tolist() == list(expected)


# --- bits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (0,), (1,), (101,), (3, 0, 2), (4, 8), (3, 5, 7)], ids=str)
def test_bits_of_uniform(device, shape):
    found = td.random.uniform(shape, generator=generator())
    count = int(np.prod(shape))
    expected = (words(count) >> 8).astype(np.float32) * np.float32(2.0**-24)
    assert found.shape == shape
    assert found.dtype == td.float32
    assert found.device is device
    np.testing.assert_array_equal(found.numpy(), expected.reshape(shape))


def test_bits_of_uniform_between(device):
    low, high = np.float32(-0.7), np.float32(1e3)
    found = td.random.uniform(1009, float(low), float(high), generator=generator()).numpy()
    unit = (words(1009) >> 8).astype(np.float32) * np.float32(2.0**-24)
    along = ((unit * (high - low)).view(np.uint32) & np.uint32(0xFFFFFFFE)).view(np.float32)
    expected = np.clip(low + along, low, np.nextafter(high, low))
    np.testing.assert_array_equal(found, expected)


def test_bits_of_uniform_float64(device):
    if lacks(device, td.float64):
        return
    found = td.random.uniform(101, dtype=td.float64, generator=generator()).numpy()
    np.testing.assert_array_equal(found, (pairs(101) >> np.uint64(11)) * 2.0**-53)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int32", 0, 10),
        ("int8", -128, 128),
        ("uint8", 3, 256),
        ("int16", -5, -4),
        ("int32", -(2**31), 2**31),
        ("uint32", 0, 2**32),
        ("uint32", 1, 2**32 - 1),
    ],
)
def test_bits_of_integers(device, dtype, low, high):
    found = td.random.integers(257, low, high, dtype=dtype, generator=generator())
    expected = [low + (int(pair) * (high - low) >> 64) for pair in pairs(257)]
    assert found.dtype == getattr(td, dtype)
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        ("int64", -7, 2**32 - 7),
        ("int64", -(2**63), 2**63),
        ("int64", -(2**40), 12345),
        ("uint64", 0, 2**64),
        ("uint64", 5, 2**64 - 1),
    ],
)
def test_bits_of_wide_integers(device, dtype, low, high):
    if lacks(device, td.int64):
        return
    found = td.random.integers(101, low, high, dtype=dtype, generator=generator()).tolist()
    count = high - low
    if count <= 2**32:
        expected = [low + (int(pair) * count >> 64) for pair in pairs(101)]
    else:
        blocks = words(404).view(np.uint64).reshape(-1, 2)
        expected = [low + (((int(b) << 64) + int(a)) * count >> 128) for a, b in blocks]
    assert found == expected


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.25, 0.3, 1 - 2.0**-24, 1.0])
def test_bits_of_bernoulli(device, p):
    found = td.random.bernoulli((7, 100), p, generator=generator())
    limit = int(float(np.float32(p)) * 2.0**64)
    assert found.dtype == td.bool
    assert found.numpy().reshape(-1).tolist() == [int(pair) < limit for pair in pairs(700)]


@pytest.mark.parametrize("count", [0, 1, 2, 17, 5003])
def test_bits_of_permutation(device, count):
    found = td.random.permutation(count, generator=generator())
    assert found.dtype == default_integer(device)
    np.testing.assert_array_equal(found.numpy(), np.argsort(pairs(count), kind="stable"))


def test_elements_beyond_32_bits():
    """The last ones of a draw that is too large for memory: only what is read is computed."""
    drawn = td.random.uniform((1 << 17, 1 << 16), device="cpu", generator=generator())
    found = drawn[-1, -4:].copied().numpy()
    block = [(2**33 - 4) // 4, 0, DRAWS % 2**32, DRAWS >> 32]
    expected = philox([[word] for word in block], (SEED % 2**32, SEED >> 32))[0]
    np.testing.assert_array_equal(found, (expected >> 8) * 2.0**-24)


def test_normal_and_exponential_follow_the_bits(device):
    unit = (words(2000).astype(np.float64) + 0.5) / 2**32
    found = td.random.exponential(2000, generator=generator()).numpy()
    np.testing.assert_allclose(found, -np.log(unit), rtol=1e-4, atol=1e-6)
    u, v = unit.reshape(-1, 2).T
    turn = 2 * np.pi * (v - 0.5 / 2**32)
    expected = np.sqrt(-2 * np.log(u)) * np.stack([np.cos(turn), np.sin(turn)])
    found = td.random.normal(2000, generator=generator()).numpy()
    np.testing.assert_allclose(found.reshape(-1, 2).T, expected, rtol=1e-4, atol=2e-6)


def test_normal_and_exponential_in_float64(device):
    if lacks(device, td.float64):
        return
    bits = pairs(2000)
    unit = bits.astype(np.float64) / 2**64 + 2.0**-65
    found = td.random.exponential(2000, dtype=td.float64, generator=generator()).numpy()
    np.testing.assert_allclose(found, -np.log(unit), rtol=1e-13, atol=1e-15)
    turn = 2 * np.pi * bits.reshape(-1, 2)[:, 1] / 2.0**64
    radius = np.sqrt(-2 * np.log(unit.reshape(-1, 2)[:, 0]))
    expected = radius * np.stack([np.cos(turn), np.sin(turn)])
    found = td.random.normal(2000, dtype=td.float64, generator=generator()).numpy()
    np.testing.assert_allclose(found.reshape(-1, 2).T, expected, rtol=1e-12, atol=1e-14)


# --- laws: the seeds are fixed, so they hold or do not -------------------------------------------


def test_laws(device):
    g = td.Generator(2024)
    n = 40_000
    x = td.random.uniform(n, -1.0, 3.0, generator=g).numpy()
    assert abs(x.mean() - 1) < 0.02
    assert abs(x.var() - 16 / 12) < 0.02
    x = td.random.normal(n, 2.0, 3.0, generator=g).numpy().astype(np.float64)
    z = (x - 2) / 3
    assert abs(z.mean()) < 0.02
    assert abs(z.var() - 1) < 0.03
    assert abs((z**3).mean()) < 0.05
    assert abs((z**4).mean() - 3) < 0.15
    assert abs(np.corrcoef(z[::2], z[1::2])[0, 1]) < 0.02
    x = td.random.exponential(n, 0.5, generator=g).numpy()
    assert abs(x.mean() - 0.5) < 0.01
    assert abs(x.var() - 0.25) < 0.02
    assert x.min() >= 0
    x = td.random.integers(n, 0, 7, generator=g).numpy()
    counts = np.bincount(x, minlength=7)
    assert ((counts - n / 7) ** 2 / (n / 7)).sum() < 16.8  # chi-square, 6 degrees: 1 %
    x = td.random.bernoulli(n, 0.2, generator=g).numpy()
    assert abs(x.mean() - 0.2) < 0.01


def test_permutations_are_all_as_likely(device):
    g = td.Generator(7)
    found = np.stack([td.random.permutation(3, generator=g).numpy() for _ in range(300)])
    _, counts = np.unique(found, axis=0, return_counts=True)
    assert counts.size == 6
    assert ((counts - 50.0) ** 2 / 50).sum() < 15.1  # chi-square, 5 degrees: 1 %


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 0.0), (1000.0, 1001.0), (2.0, 2.0)])
def test_uniform_never_gives_its_end(device, dtype, low, high):
    x = td.random.uniform(20_000, low, high, dtype=dtype, generator=td.Generator(1))
    values = x.numpy().astype(np.float32)
    assert x.dtype == getattr(td, dtype)
    assert values.min() >= low
    assert values.max() < high or low == high == values.max()


def test_arrays_as_parameters(device):
    low = td.asarray([[0.0], [10.0], [5.0]])
    x = td.random.uniform((3, 500), low, td.asarray([20.0]), generator=td.Generator(3)).numpy()
    assert (x >= low.numpy()).all()
    assert (x < 20).all()
    assert abs(x[1].mean() - 15) < 0.6
    x = td.random.normal((2, 500), td.asarray([[0.0], [100.0]]), 0.5, generator=td.Generator(3))
    assert np.abs(x.numpy().mean(1) - [0, 100]).max() < 0.1
    ends = td.asarray([1, 5, -3, 200], dtype=td.int32)
    x = td.random.integers((100, 4), -2, ends, generator=td.Generator(3)).numpy()
    assert x.min(0).tolist() == [-2, -2, -2, x[:, 3].min()]
    assert x[:, :3].max(0).tolist() == [0, 4, -2]
    assert 100 < x[:, 3].max() < 200
    chances = td.asarray([0.0, 0.5, 1.0, float("nan")])
    x = td.random.bernoulli((200, 4), chances, dtype=td.int32, generator=td.Generator(3)).numpy()
    assert x.sum(0)[[0, 2, 3]].tolist() == [0, 200, 0]
    assert 60 < x[:, 1].sum() < 140


def test_full_range_from_arrays(device):
    low = td.asarray([0, 2**31], dtype=td.uint32)
    x = td.random.integers((50, 2), low, 2**32 - 1, dtype=td.uint32, generator=td.Generator(3))
    values = x.numpy()
    assert values[:, 0].max() > 2**31 > values[:, 0].min()
    assert values[:, 1].min() >= 2**31


@pytest.mark.parametrize("cut", [np.s_[:], np.s_[::-1], np.s_[1:, ::2], np.s_[:, 0]], ids=str)
def test_permutation_of_rows(device, cut):
    data = np.arange(35, dtype=np.int32).reshape(7, 5)[cut]
    x = td.asarray(np.arange(35, dtype=np.int32).reshape(7, 5))[cut]
    order = np.argsort(pairs(len(data)), kind="stable")
    found = td.random.permutation(x, generator=generator())
    np.testing.assert_array_equal(found.numpy(), data[order])
    np.testing.assert_array_equal(x.numpy(), data)


def test_draws_fuse_and_stay_what_they_are(device):
    x = td.random.uniform((64, 3), generator=generator())
    doubled = (x * 2.0)[::-1, 1]
    expected = (words(192) >> 8).astype(np.float32).reshape(64, 3) * np.float32(2.0**-24)
    np.testing.assert_array_equal(doubled.numpy(), expected[::-1, 1] * 2)
    np.testing.assert_array_equal(x.numpy(), expected)


# --- generators ----------------------------------------------------------------------------------


def test_generators(device):
    g = td.Generator(5)
    state = g.get_state()
    first, second = td.random.normal(4, generator=g).tolist(), td.random.normal(4, generator=g)
    assert first != second.tolist()
    assert g.get_state() == (5, 2)
    copy = pickle.loads(pickle.dumps(g))
    assert td.random.normal(4, generator=copy).tolist() == td.random.normal(4, generator=g).tolist()
    g.set_state(state)
    assert td.random.normal(4, generator=g).tolist() == first
    assert td.random.normal(4, generator=td.Generator(6)).tolist() != first
    td.manual_seed(5)
    assert td.random.normal(4).tolist() == first
    assert td.random.normal(4).tolist() == second.tolist()
    assert td.Generator().seed != td.Generator().seed


def test_threads_never_share_a_draw():
    g = td.Generator(1)
    found = []

    def work():
        found.extend(g.next_draw()[1] for _ in range(500))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(2000))


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "error", "says"),
    [
        (lambda r: r.uniform(3, 2.0, 1.0), ValueError, "low not above high"),
        (lambda r: r.uniform(3, -3e38, 3e38), ValueError, "finite"),
        (lambda r: r.uniform(3, dtype=td.int32), td.errors.DtypeError, "floating"),
        (lambda r: r.uniform(-1), td.errors.ShapeError, "negative"),
        (lambda r: r.uniform(3, 1j), td.errors.DtypeError, "complex"),
        (lambda r: r.uniform(3, td.zeros(2)), td.errors.ShapeError, "uniform"),
        (lambda r: r.uniform(1, td.zeros(2)), td.errors.ShapeError, "does not fit the shape"),
        (lambda r: r.normal(3, 0.0, -1.0), ValueError, "std must not be negative"),
        (lambda r: r.exponential(3, -1.0), ValueError, "scale must not be negative"),
        (lambda r: r.integers(3, 4, 4), ValueError, "below"),
        (lambda r: r.integers(3, 0, 257, dtype=td.uint8), OverflowError, "256 does not fit"),
        (lambda r: r.integers(3, 0.5), TypeError, "an integer"),
        (lambda r: r.integers(3, td.zeros(3)), td.errors.DtypeError, "bounds are integers"),
        (lambda r: r.integers(3, 5, dtype=td.float32), td.errors.DtypeError, "integer dtypes"),
        (lambda r: r.bernoulli(3, 1.5), ValueError, "from 0 to 1"),
        (lambda r: r.permutation(-1), ValueError, "as -1 is"),
        (lambda r: r.permutation(td.ones(())), td.errors.ShapeError, "at least one axis"),
        (lambda r: r.permutation(300, dtype=td.int8), OverflowError, "299"),
        (lambda r: r.uniform(3, generator=7), TypeError, r"td.Generator\(seed\)"),
        (lambda r: td.manual_seed(-1), ValueError, "0 to 2"),
        (lambda r: td.Generator(1.5), TypeError, "integer"),
        (lambda r: td.Generator(1).set_state(3), ValueError, "get_state"),
    ],
)
def test_refusals(draw, error, says):
    with td.use_device("cpu"), pytest.raises(error, match=says):
        draw(td.random)


@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_a_shape_in_another_place_is_refused(device, name):
    with pytest.raises(TypeError, match="comes first"):
        getattr(td.random, name)(0, 1, (3,))
