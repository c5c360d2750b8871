"""The suites of cards, in a small form: that both libraries compute what is right, and that what is
wrong is not timed. Nothing is timed here."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from benchmarks import __main__ as command
from benchmarks import commits
from benchmarks.cards import algorithms, attention, case, convolutions, products
from benchmarks.cards.case import Case, measure, simple

torch = pytest.importorskip("torch")


@pytest.fixture
def host(monkeypatch):
    """PyTorch on the CPU in place of a card, and a clock that calls everything once."""

    def clock(device, torch, mine, peers, tensors):
        case._realized(mine[-1]())
        for make in peers.values():
            make(torch, *tensors[-1])()
        return [1.0, *[2.0] * len(peers)]

    monkeypatch.setattr(case, "torch_on_cuda", lambda: torch)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda self: self)
    monkeypatch.setattr(case, "_by_graphs", clock)
    monkeypatch.setattr(case, "_by_calls", clock)
    monkeypatch.setattr(case, "_MOST_SETS", 2)
    return td.device("cpu")


def test_products(host):
    sizes = 33, 40, 24
    turned = {"turned": True}
    cases = [
        products._case(what, sizes, **more)
        for what, more in (("float16", {}), ("float16", turned), ("TF32", turned), ("float32", {}))
    ]
    for each in cases:
        (figure,) = measure("products-cuda", host, each)
        assert figure.ours == 2 * figure.peers
        assert figure.unit == "TFLOP/s"
    assert td.get_float32_matmul_precision() == "highest"


def test_attention(host, monkeypatch):
    for name, size in (("_BATCH", 1), ("_HEADS", 2), ("_LENGTH", 9)):
        monkeypatch.setattr(attention, name, size)
    for size, causal, back in ((8, False, False), (8, True, True)):
        made = attention._case(size, causal, back, "float16", 1.0)
        assert len(measure("attention-cuda", host, made)) == 1


def test_convolutions(host):
    for what, last in (("float16", False), ("float32", True), ("TF32", False)):
        made = convolutions._case(what, 2, 16, 7, 0.85, last)
        (figure,) = measure("convolutions-cuda", host, made)
        assert [name for name, _ in figure.others] == ["PyTorch, channels last"] * (not last)


def test_algorithms(host, monkeypatch):
    small = [
        algorithms._rate("sort", algorithms._floats(100), td.sort,
                         lambda torch, x: torch.sort(x)[0], 100, 0.0),
        algorithms._rate("loss", algorithms._scores(7, 9),
                         lambda x, at: td.nn.functional.cross_entropy(x, at),
                         lambda torch, x, at: torch.nn.functional.cross_entropy(x, at.long()), 63),
        algorithms._transform("a transform", algorithms._complex(3, 35), "fft", 105),
        algorithms._transform("a real one", algorithms._floats(64), "rfft", 64),
        algorithms._factors("solve", algorithms._general(20, 3), td.linalg.solve,
                            lambda torch, a, b: torch.linalg.solve(a, b), target=1.0),
        algorithms._factors("QR", algorithms._general(20), algorithms._triangle_first,
                            lambda torch, a: torch.linalg.qr(a)[1].abs()),
        algorithms._factors("SVD", algorithms._floats(12, 12), algorithms._values_first,
                            lambda torch, a: torch.linalg.svd(a)[1]),
    ]  # fmt: skip
    for each in small:
        (figure,) = measure("algorithms-cuda", host, each)
        assert figure.met is None or each.unit == "s" or figure.met


def test_what_is_wrong_is_not_timed(host):
    def draw(rng):
        return [rng.standard_normal((4, 5), np.float32)]

    off = Case(
        "off", draw, simple(lambda x: x + 1), lambda torch, x: lambda: x, lambda torch, x: x,
    )  # fmt: skip
    with pytest.raises(ValueError, match="off is wrong: relative error"):
        measure("products-cuda", host, off)
    short = Case(
        "short", draw, simple(lambda x: x[0]), lambda torch, x: lambda: x, lambda torch, x: x
    )
    with pytest.raises(ValueError, match="short: shape"):
        measure("products-cuda", host, short)


def test_every_suite_has_cases_for_its_devices():
    modules = {"products": products, "attention": attention, "convolutions": convolutions,
               "algorithms": algorithms}  # fmt: skip
    for suite, (module, *where) in command.SUITES.items():
        kind, _, name = suite.partition("-")
        assert kind in commits.MEASURED
        if module.startswith("cards.") and kind in modules:
            assert where == [name]
            cases = [each for each in modules[kind].CASES if name in each.devices]
            assert cases
            assert len({each.name for each in cases}) == len(cases)
