"""Quick dataclasses do what those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field

import pytest

from treadle.core.quick_dataclasses import dataclass as quick


@quick(frozen=True, slots=True)
class Point:
    """A place."""

    x: int
    y: int = 2
    names: list[str] = field(default_factory=list, compare=False)
    note: str = field(default="", repr=False)


@quick(frozen=True, slots=True)
class Point3(Point):
    """A place in space, that is checked."""

    z: float = 0.0

    def __post_init__(self) -> None:
        if self.z < 0:
            raise ValueError("below the ground")


@quick(frozen=True, slots=True)
class Named:
    """One with methods of its own."""

    name: str
    size: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


@quick(frozen=True, slots=True)
class Empty:
    """One without fields."""


@quick(slots=True)
class Counter:
    """One that may change, which is the standard library's."""

    count: int = 0


def test_fields_and_values():
    assert dataclasses.is_dataclass(Point)
    assert [one.name for one in dataclasses.fields(Point3)] == ["x", "y", "names", "note", "z"]
    assert Point.__slots__ == ("x", "y", "names", "note")
    assert Point3.__slots__ == ("z",)
    assert Point.__match_args__ == ("x", "y", "names", "note")
    assert Point.__doc__ == "A place."
    point = Point(1, note="here")
    assert (point.x, point.y, point.names, point.note) == (1, 2, [], "here")
    assert point.names is not Point(1).names
    assert dataclasses.replace(point, y=5) == Point(1, 5, [], "here")
    assert dataclasses.asdict(Point3(1, z=2.5)) == {
        "x": 1, "y": 2, "names": [], "note": "", "z": 2.5,
    }  # fmt: skip
    match Point3(4, 5):
        case Point(x, y):
            assert (x, y) == (4, 5)
    with pytest.raises(ValueError, match="below"):
        Point3(1, z=-1)
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required .*'x'"):
        Point()  # type: ignore[call-arg]


def test_equality_and_hashes():
    for _ in range(2):  # the first call compiles the methods
        assert Point(1) == Point(1, 2, ["another"])
        assert Point(1) != Point(2)
        assert Point(1) != Point3(1)
        assert Point3(1) == Point3(1)
        assert (Point(1) == 1) is False
        assert hash(Point(1)) == hash(Point(1, names=["another"])) == hash((1, 2, ""))
        assert {Point3(1, z=1.5), Point3(1, z=1.5)} == {Point3(1, z=1.5)}
        assert Empty() == Empty()
        assert hash(Empty()) == hash(())
    assert Named("a", 1) == Named("a", 2)
    assert hash(Named("a", 1)) == hash("a")
    assert repr(Named("a", 1)) == "a"


def test_representations():
    assert repr(Point(1, note="hidden")) == "Point(x=1, y=2, names=[])"
    assert repr(Empty()) == "Empty()"
    inner = Point(1)
    inner.names.append(inner)  # type: ignore[arg-type]
    assert repr(inner) == "Point(x=1, y=2, names=[...])"


def test_frozen():
    point = Point3(1)
    for name in ("x", "z", "other"):
        with pytest.raises(
            dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"
        ):
            setattr(point, name, 3)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(point, name)
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)


def test_copies():
    point = Point3(1, 2, ["a"], "b", 3.5)
    for made in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert made == point
        assert type(made) is Point3
        assert made.names == ["a"]
