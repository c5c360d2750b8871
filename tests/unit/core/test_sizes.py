"""Sizes as symbols: what is computed of them, what was found out, and for which others it holds."""

from __future__ import annotations

import copy
import gc
import math
import numbers
import operator
import pickle
import struct
import types
import weakref
from fractions import Fraction

import numpy as np
import pytest

import treadle as td
from treadle.core.size_facts import fact_at, readable_facts
from treadle.core.size_record import Record, symbols_of
from treadle.core.sizes import Size, slice_of, valued
from treadle.graph import recipes as recipes_module
from treadle.graph.node import COMPUTED, Node, base_of, without_history
from treadle.graph.views import compose, merge_axes, permute, reshape, slice_axis, whole
from treadle.runtime.arrays import DeviceArray


@pytest.fixture(autouse=True)
def no_views_are_left():
    """Tests ask a table of treadle's for views, and so as a user's program does: by integers."""
    yield
    whole.cache_clear()


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.lshift,
    operator.rshift, operator.and_, operator.or_,
]  # fmt: skip
NUMBERS = [1, 2, 3, 7, 64, 1000]


@pytest.mark.parametrize("operation", OPERATORS)
def test_they_compute_as_integers_do(operation):
    for first in NUMBERS:
        for second in (1, 2, 5):
            record = Record()
            a, b = record.symbol(first), record.symbol(second)
            results = (operation(a, b), operation(a, second), operation(first, b))
            assert [valued(each) for each in results] == [operation(first, second)] * 3
            function = record.function(results)
            for other, another in ((11, 3), (second + 1, second)):
                found = function(other, another)
                assert found == (
                    operation(other, another), operation(other, second), operation(first, another)
                )  # fmt: skip


def test_other_methods_of_integers():
    record = Record()
    a = record.symbol(20)
    results = (
        -a,
        +a,
        abs(-a),
        *divmod(a, 6),
        *divmod(100, a),
        a.bit_length(),
        math.prod((2, a, a)),
    )
    assert valued(results) == (-20, 20, 20, 3, 2, 5, 0, 5, 800)
    assert record.function(results)(33) == (-33, 33, 33, 5, 3, 3, 1, 6, 2178)


def test_comparisons_are_facts():
    record = Record()
    a, b = record.symbol(8), record.symbol(3)
    assert a > b
    assert b <= 8
    assert a != b
    assert a == 8 * 1
    assert not a < 2
    assert a >= 8
    function = record.function((a + b,))
    assert function(8, 3) == (11,)
    assert function(8, 4) == (12,)
    for others in ((9, 3), (8, 9), (8, 8), (7, 3)):
        assert function(*others) is None, others


def test_what_is_known_already_is_not_asked_for_again():
    record = Record()
    a = record.symbol(8)
    assert all(a * 2 > 3 for _ in range(5))
    assert len(record.facts) == 1
    assert a * 1 is a
    assert a + 0 is a
    assert 0 + a is a
    assert a * 0 == 0
    assert len(record.facts) == 1


def test_integers_that_are_taken_out_are_facts():
    record = Record()
    a = record.symbol(3)
    assert list(range(a)) == [0, 1, 2]
    assert "abc"[a - 1] == "c"
    assert (7,) * a == (7, 7, 7)
    function = record.function(())
    assert function(3) == ()
    assert function(4) is None


def test_values_may_be_looked_at_without_a_fact():
    record = Record()
    numbers = symbols_of(record, (5, 7, 5, 9), [0, 2, 3])
    assert numbers[0] is numbers[2]
    assert numbers[1] == 7
    assert len(record.symbols) == 2
    assert valued(((numbers[0],), numbers[3])) == ((5,), 9)
    assert record.facts == []


@pytest.mark.parametrize(
    "use",
    [
        lambda a: a * 0.5,
        lambda a: a / 2,
        lambda a: 2**a,
        lambda a: a < 2.5,
        lambda a: math.sqrt(a),
        lambda a: f"{a}",
        lambda a: str(a),
        lambda a: {3: 1}.get(a),
        lambda a: a in {5, 7},
        lambda a: list(range(a)),
        lambda a: np.arange(a).tolist(),
        lambda a: np.float32(2) + a,
        lambda a: a.to_bytes(2, "little"),
        lambda a: struct.pack("i", a),
        lambda a: round(a, -1),
        lambda a: copy.deepcopy([a])[0] * 1.0,
        lambda a: Fraction(1, 2) * a,
        lambda a: pickle.loads(pickle.dumps(a)),
    ],
)
def test_what_takes_the_value_makes_it_a_fact(use):
    record = Record()
    found = use(record.symbol(3))
    assert found == use(3)
    assert record.function(())(3) == ()
    assert record.function(())(4) is None


def test_programs_that_are_made_of_text_look_for_integers():
    """Also where treadle calls them, as a function that it maps."""
    program = "def find(known):\n    return lambda n: known.get(n, 0)"
    names = {}
    exec(program, names)
    record = Record()
    found = names["find"]({3: 1})
    assert [found(n) for n in (record.symbol(3), record.symbol(5))] == [1, 0]
    assert record.function(())(3, 5) == ()
    assert record.function(())(3, 3) is None


def test_they_say_that_they_are_integers():
    record = Record()
    a = record.symbol(3)
    assert isinstance(a, int)
    assert isinstance(a, numbers.Integral)
    assert not isinstance(a, (float, bool, str))
    assert type(a) is Size
    assert a != "3"
    with pytest.raises(TypeError):
        a + "3"  # type: ignore[operator]
    with pytest.raises(ZeroDivisionError):
        a // (a * 2 - 6)
    assert math.floor(a) is math.ceil(a) is round(a) is a


def test_sums_and_products_have_one_form():
    record = Record()
    a, b = record.symbol(12), record.symbol(5)
    assert a + 1 - a == 1
    assert (a + 1) - (a - 1) == 2
    assert a * 6 // 3 is a * 2
    assert a * b // b is a
    assert b * a is a * b
    assert a * 4 % 2 == 0
    assert 0 - (0 - a) is a
    assert 0 // a == 0
    assert [each for each in record.facts if "%" in each or "//" in each] == []
    assert record.function((a + 1 - a, a * 6 // 3))(7, 1) == (1, 14)


def test_what_is_equal_by_a_fact_is_one():
    record = Record()
    a, b = record.symbol(5), record.symbol(5)
    assert a == b
    assert a * 2 is b * 2
    assert a == 5
    assert (b + 1, type(b + 1)) == (6, int)
    assert record.function(())(5, 5) == ()
    assert record.function(())(5, 6) is None


def test_a_closed_record():
    record = Record()
    a = record.symbol(5)
    b = a + 1
    record.close()
    assert (a + 2, b * 2, type(b * 2)) == (7, 12, int)
    assert a < 6
    assert a == 5
    assert hash(a) == hash(5)
    assert {5: 1}[a] == 1
    other = Record().symbol(3)
    assert valued(a + other) == valued(other + a) == 8


def test_a_program_with_too_many_events_has_fixed_sizes():
    record = Record(of_program=True)
    a = record.symbol(3)
    total = a
    for k in range(1, 60_000):
        total = (total ^ k) + a
    assert type(total) is int
    function = record.function((total,))
    assert function(3) == (total,)
    assert function(4) is None


def test_slices_of_sizes():
    for extent in (0, 1, 5):
        for start in (None, 0, 2, -1, -9, 9):
            for stop in (None, 0, 3, -2, -9, 9):
                for step in (None, 1, 2, -1, -3):
                    record = Record()
                    given = [None if n is None else record.symbol(n) for n in (start, stop)]
                    part = slice(*given, step if step is None else record.symbol(step))
                    found = valued(slice_of(part, record.symbol(extent)))
                    assert found == slice_of(slice(start, stop, step), extent)


def test_facts_as_people_read_them():
    record = Record()
    a, b = record.symbol(8, "x.shape[0]"), record.symbol(3, "n")
    assert a > 2
    assert -(-a // 4) < 100
    assert a * 3 != 30
    assert b + 1 == 4
    assert a > b
    assert a * a >= 60
    assert readable_facts(record) == [
        "4 <= x.shape[0] <= 396, x.shape[0] != 10", "n == 3", "x.shape[0] * x.shape[0] >= 60",
    ]  # fmt: skip
    assert record.failing((8, 3)) is None
    assert fact_at(record, record.failing((8, 4))) == "n + 1 == 4"


def views_of_treadle(*shapes):
    """How many views a table of treadle's has for shapes, asked by treadle itself."""
    nodes = [without_history(COMPUTED, (), shape, td.float32, td.device("cpu"), None, 0)
             for shape in shapes]  # fmt: skip
    return len({id(base_of(node)[1]) for node in nodes})


def test_sizes_of_different_plans_are_not_equal():
    one, other = Record().symbol(5), Record().symbol(5)
    assert one != other
    assert views_of_treadle((one,), (other,)) == 2


def drawn(rng, numbers):
    """A view of a matrix, as views are made by slices, transposes and reshapes."""
    rows, columns = numbers
    view = whole((rows, columns))
    for step in rng.integers(0, 3, 3):
        axes = len(view.shape)
        if step == 0:
            view = permute(view, tuple(reversed(range(axes))))
        elif step == 1 and view.shape[0] > 2:
            view = slice_axis(view, 0, 1, 1, view.shape[0] - 1)
        else:
            view = reshape(view, (math.prod(view.shape),)) or view
    return view


def test_views_of_sizes_are_the_views_for_others():
    """What a plan is made of, computed for some sizes and used for others."""
    held = 0
    for seed in range(300):
        sizes = [
            tuple(int(n) for n in np.random.default_rng((seed, k)).integers(1, 9, 2))
            for k in range(6)
        ]

        def plan(numbers, seed=seed):
            rng = np.random.default_rng(seed)
            outer, inner = drawn(rng, numbers), drawn(rng, numbers)
            composed = compose(whole(inner.shape), inner)
            return tuple(composed or ()), *merge_axes(outer.shape, [outer.strides])

        record = Record()
        planned = plan([record.symbol(each) for each in sizes[0]])
        flat = (planned[0], planned[1], tuple(planned[2]))
        function = record.function(flat)
        for each in sizes:
            found = function(*each)
            if found is None:
                continue
            held += 1
            expected = plan(each)
            assert found == (tuple(expected[0]), expected[1], tuple(expected[2])), (seed, each)
    assert held > 300  # a table of views that is asked here, and not by treadle, takes values


def test_plans_hold_no_memory():
    device = td.device("cpu")

    def run(n):
        x = td.asarray(np.ones((n, 5), np.float32), device=device)
        return weakref.ref(x._node.whole_array.storage), td.sum(td.exp(x) + n, axis=0).numpy()

    seen = [run(n)[0] for n in (3, 70, 9, 71)]
    gc.collect()
    assert [one() for one in seen] == [None] * 4
    for recipes in [*recipes_module._recipes._young.values()]:
        for plan in recipes._plans:
            todo, known = [plan], set()
            while todo:
                one = todo.pop()
                if id(one) in known or isinstance(one, (type, types.ModuleType)):
                    continue
                known.add(id(one))
                assert not isinstance(one, (Node, DeviceArray))
                if isinstance(one, (list, tuple, dict)) or type(one).__module__.endswith(
                    "_of_sizes"
                ):
                    todo += gc.get_referents(one)
