"""What the library says of itself, as the Array API asks."""

from types import SimpleNamespace

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import DtypeError
from treadle.core.traits import Traits
from treadle.tensor import dtypes

INFO = td.__array_namespace_info__()
STANDARD = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
}  # fmt: skip
INSTEAD = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def small_device(*features):
    """What of a device says which dtypes it has."""
    traits = Traits(("wgsl",), default_integer=td.int32)
    return SimpleNamespace(
        id="phone:0", name="a phone", traits=traits, handle=None, features=frozenset(features)
    )


def test_the_version_and_what_can_be_done():
    assert td.__array_api_version__ == "2024.12"
    can = INFO.capabilities()
    assert can == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}


def test_devices():
    with td.use_device("cpu"):
        assert INFO.default_device() is td.device("cpu")
    assert INFO.devices() == td.devices()


@pytest.mark.parametrize("device", ["cpu", td.device("cpu")], ids=["id", "device"])
def test_dtypes_of_the_cpu(device):
    assert set(INFO.dtypes(device=device)) == STANDARD
    assert all(INFO.dtypes(device=device)[name] == name for name in STANDARD)
    for kind, names in {
        "bool": {"bool"},
        "signed integer": {"int8", "int16", "int32", "int64"},
        "real floating": {"float32", "float64"},
        ("complex floating", "bool"): {"bool", "complex64", "complex128"},
        "numeric": STANDARD - {"bool"},
        (): set(),
    }.items():
        assert set(INFO.dtypes(device=device, kind=kind)) == names
    with pytest.raises(ValueError, match="'float' is not a kind"):
        INFO.dtypes(device=device, kind="float")


def test_defaults_make_what_they_say():
    default = INFO.default_dtypes(device="cpu")
    for number, kind in ((1, "integral"), (0.5, "real floating"), (1j, "complex floating")):
        assert td.asarray(number, device="cpu").dtype is default[kind]
    assert default["indexing"] is td.int64


@pytest.mark.parametrize(
    ("features", "missing"),
    [
        ((), {"int64", "uint64", "float64", "complex128"}),
        (("int64",), {"float64", "complex128"}),
        (("float64",), {"int64", "uint64"}),
        (("float64", "int64"), set()),
    ],
)
def test_dtypes_that_a_device_lacks(features, missing, monkeypatch):
    device = small_device(*features)
    monkeypatch.setattr("treadle.tensor.array_api.find_device", lambda _: device)
    assert set(INFO.dtypes()) == STANDARD - missing
    assert INFO.default_dtypes()["indexing"] is td.int32
    for name in missing:
        with pytest.raises(DtypeError, match=f"has no {name}: use dtype=td.{INSTEAD[name]}"):
            dtypes.check_dtype(dtypes.as_dtype(name), device)


def test_promotion_stays_on_the_device(monkeypatch):
    device = small_device()
    monkeypatch.setattr(dtypes, "Device", SimpleNamespace)
    signed = SimpleNamespace(dtype=td.int32, device=device)
    assert td.can_cast(td.int32, td.int64)
    assert not td.can_cast(signed, td.int64)
    assert td.can_cast(signed, td.float32)
    assert td.result_type(signed, td.uint16) is td.int32
    assert td.result_type(SimpleNamespace(dtype=td.bool, device=device), 7) is td.int32
    with pytest.raises(DtypeError, match=r"has no int64: use dtype=td\.int32"):
        td.result_type(signed, td.uint32)


def test_structs_are_not_asked_for():
    dtypes.check_dtype(np.dtype([("x", "f8")]), small_device())
