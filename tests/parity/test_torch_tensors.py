"""Tensors of `treadle.torch`: Python's operators and protocols, constructors, conversions, text,
random draws, and the list of PyTorch's names."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest

import treadle as td
import treadle.torch as mine
from tests.parity import comparing
from tests.parity.comparing import torch

pytestmark = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
KINDS = ("float32", "float64", "float16", "int64", "int32", "uint8", "bool")
OPERATORS = "add sub truediv floordiv mod pow xor lshift rshift lt"


def both(values, dtype):
    """The same numbers in both libraries."""
    array = np.asarray(values).astype(dtype)
    return mine.tensor(array), torch.tensor(array)


def agree(found, wanted, what=""):
    """Values, dtype and shape; the class of errors."""
    assert str(found.dtype) == str(wanted.dtype).removeprefix("torch."), what
    np.testing.assert_allclose(
        found.detach().numpy(), wanted.detach().numpy(), rtol=2e-3, err_msg=what
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATORS.split())
def test_operators_promote_as_pytorch_does(name):
    rng = np.random.default_rng()
    call = getattr(operator, name)
    others = [2, -3, 0.5, True, "float64 ()", "int64 ()", *rng.choice(KINDS, 2)]
    for dtype in rng.choice(KINDS, 3, replace=False):
        values = rng.integers(1, 5, 3)
        for other in others:
            right = (other, other)
            if isinstance(other, str):
                kind, _, shape = other.partition(" ")
                right = both(rng.integers(1, 4, () if shape else 3), kind)
            for order in (0, 1):
                one, two = both(values, dtype)
                pairs = [(one, right[0]), (two, right[1])]
                left, expected = (pair[::-1] if order else pair for pair in pairs)
                try:
                    wanted = call(*expected)
                except (RuntimeError, TypeError):
                    with pytest.raises((RuntimeError, TypeError)):
                        call(*left)
                    continue
                with comparing.one_by_one():
                    agree(call(*left), wanted, f"{dtype} {name} {other} {order}")


def test_operators_in_place_write_and_refuse():
    for library in (mine, torch):
        x = library.arange(6).reshape(2, 3).float()
        y, part = x, x[0]
        x += 1
        x *= x
        x -= library.ones(3)
        assert y is x
        assert part.tolist() == [0, 3, 8]
        with pytest.raises(RuntimeError):
            x += library.ones(3, 2, 3)
        counts = library.ones(3, dtype=library.int64)
        with pytest.raises(RuntimeError):
            counts += 0.5
        leaf = library.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError):
            leaf += 1
        z = leaf * 3
        z *= 2
        z.sum().backward()
        assert leaf.grad.tolist() == [6, 6]


def test_python_takes_tensors_as_it_takes_pytorchs():
    for library in (mine, torch):
        x = library.tensor([[1, 2], [3, 4]])
        one = library.tensor(2.5)
        assert len(x) == 2
        assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
        assert 3 in x
        assert 7 not in x
        assert [each.tolist() for each in reversed(x)] == [[3, 4], [1, 2]]
        assert (float(one), int(one), complex(one), bool(one)) == (2.5, 2, 2.5 + 0j, True)
        assert f"{one:.2f}" == "2.50"
        assert [10, 20, 30][library.tensor(2)] == 30
        assert np.float32(2) * x is not None
        assert isinstance(np.float64(2) * one, library.Tensor)
        for wrong, error in ((bool, RuntimeError), (float, ValueError), (int, ValueError)):
            with pytest.raises(error):
                wrong(x)
        with pytest.raises(RuntimeError):
            x.item()
        with pytest.raises(TypeError):
            len(one)
        with pytest.raises(TypeError):
            [1, 2][one]
        with pytest.raises(IndexError):
            x.size(2)
        leaf = library.ones(3, requires_grad=True)
        for made in (copy.deepcopy(leaf), pickle.loads(pickle.dumps(leaf))):
            assert made is not leaf
            assert made.requires_grad
            assert made.tolist() == [1, 1, 1]
        with pytest.raises(RuntimeError):
            copy.deepcopy(leaf * 2)
        with pytest.raises(RuntimeError):
            np.asarray(leaf)
        assert np.asarray(leaf.detach()).tolist() == [1, 1, 1]


def test_constructors():
    array = np.arange(3, dtype=np.float32)
    for library in (mine, torch):
        dtype = library.float32
        assert library.tensor([1.0]).dtype == dtype
        assert library.tensor([1, 2]).dtype == library.int64
        assert library.tensor([True]).dtype == library.bool
        assert library.tensor([1j]).dtype == library.complex64
        assert library.tensor(array.astype(np.float64)).dtype == library.float64
        assert library.tensor([library.tensor(1.0), 2.0]).tolist() == [1, 2]
        assert library.Tensor([1, 2]).dtype == dtype
        assert library.Tensor(2, 3).shape == (2, 3)
        assert library.LongTensor([1, 2]).type() == "torch.LongTensor"
        assert isinstance(library.ones(1), library.FloatTensor)
        assert not isinstance(library.ones(1), library.LongTensor)
        assert library.zeros(2, 3).shape == library.zeros((2, 3)).shape == (2, 3)
        assert library.full((2,), 7).dtype == library.int64
        assert library.ones(2).new_zeros(3, dtype=library.int32).tolist() == [0, 0, 0]
        shared = library.from_numpy(array)
        shared[0] = 9
        assert array[0] == 9
        array[0] = 0
        with pytest.raises(ValueError, match=r"length|shape"):
            library.tensor([[1, 2], [3]])
        with pytest.raises(RuntimeError):
            library.arange(1, 5, -1)
        library.set_default_dtype(library.float64)
        try:
            assert library.tensor([1.0]).dtype == library.zeros(1).dtype == library.float64
            assert (library.tensor([1]) / 2).dtype == library.float64
        finally:
            library.set_default_dtype(library.float32)


def test_conversions():
    for library in (mine, torch):
        x = library.ones(2, 3)
        assert x.to(library.float32) is x
        assert x.to("cpu") is x
        assert x.float() is x
        assert x.contiguous() is x
        assert x.cpu() is x
        assert x.to(x.double()).dtype == library.float64
        assert x.to("cpu", library.int32, copy=True).dtype == library.int32
        assert x.long().type() == "torch.LongTensor"
        assert x.type("torch.DoubleTensor").dtype == library.float64
        assert not x.t().is_contiguous()
        assert x.t().contiguous().stride() == (2, 1)
        assert (x.element_size(), x.nbytes, x.itemsize, x.get_device()) == (4, 24, 4, -1)
        assert (x.is_cuda, x.is_sparse, x.layout is library.strided) == (False, False, True)
        assert x[1].storage_offset() == 3
        assert (x.is_floating_point(), x.is_complex(), library.is_tensor(x)) == (True, False, True)
        assert library.finfo(library.float32).tiny == float(np.finfo(np.float32).tiny)
        assert library.iinfo(library.uint8).max == 255
        assert library.promote_types(library.int64, library.float16) == library.float16
        assert not library.can_cast(library.float32, library.int64)
        with pytest.raises(TypeError):
            library.finfo(library.int32)
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        mine.ones(2, device="nothing")


def test_text_is_pytorchs():
    rng = np.random.default_rng()
    for shape in ((), (0,), (0, 3), (3,), (30,), (2, 3, 4), (40, 50), (3, 400)):
        scale = 10.0 ** rng.integers(-5, 5, shape)
        drawn = rng.standard_normal(shape)
        for values in (drawn, drawn * scale, np.round(drawn * 9), np.where(drawn > 1, np.inf, 2.0)):
            for dtype in ("float32", "float64", "int64", "bool", "complex64"):
                array = np.asarray(np.clip(values, -1e6, 1e6) if dtype == "int64" else values)
                one, other = both(array, dtype)
                assert repr(one) == repr(other)
    for library in (mine, torch):
        library.set_printoptions(precision=2, linewidth=40, threshold=20, edgeitems=2)
    one, other = both(rng.standard_normal((7, 9)), "float32")
    try:
        assert repr(one) == repr(other)
    finally:
        for library in (mine, torch):
            library.set_printoptions(profile="default")
    texts = []
    for library in (mine, torch):
        leaf = library.ones(2, requires_grad=True)
        texts.append(
            [repr(leaf), repr(leaf * 2), repr(leaf.sum()), repr(library.nn.Parameter(leaf))]
        )
    assert texts[0] == texts[1]


def test_draws():
    for library in (mine, torch):
        library.manual_seed(3)
        one = [
            library.rand(3),
            library.randn(2, 2),
            library.randint(0, 9, (4,)),
            library.randperm(5),
        ]
        state = library.get_rng_state()
        after = library.rand(2)
        library.set_rng_state(state)
        assert library.equal(library.rand(2), after)
        with library.random.fork_rng():
            library.rand(9)
        g = library.Generator().manual_seed(3)
        assert library.equal(library.rand(3, generator=g), one[0])
        assert sorted(one[3].tolist()) == [0, 1, 2, 3, 4]
        assert {each.dtype for each in one[2:]} == {library.int64}
        x = library.empty(2000)
        assert abs(x.normal_(2, 0.5).mean().item() - 2) < 0.1
        assert abs(x.uniform_(1, 3).mean().item() - 2) < 0.1
        assert abs(x.exponential_(2).mean().item() - 0.5) < 0.1
        assert abs(x.bernoulli_(0.25).mean().item() - 0.25) < 0.1
        assert abs(x.geometric_(0.5).mean().item() - 2) < 0.2
        assert 0 <= x.random_(5).min().item() <= x.max().item() <= 4
        picked = library.multinomial(library.tensor([0.0, 1.0, 3.0]), 2)
        assert sorted(picked.tolist()) == [1, 2]
        means = library.normal(library.zeros(3, 1), library.ones(3, 1))
        assert means.shape == (3, 1)
        with pytest.raises(RuntimeError):
            library.randint(5, 5, (2,))


def test_a_tensor_of_treadle_is_behind():
    x = mine.ones(3)
    x.td[0] = 5
    assert x.tolist() == [5, 1, 1]
    assert mine.wrap(td.arange(3, device="cpu")).tolist() == [0, 1, 2]
    assert td.asarray(x.td) is x.td


def test_pytorchs_names_are_here_or_explained():
    from tools.website import torch_page
    from treadle.torch.lacking import differences, missing

    assert torch_page.unexplained() == []
    for path in (*missing(), *differences()):
        *spaces, name = path.split(".")
        owner = mine
        for each in spaces:
            owner = getattr(owner, each, None)
        is_here = owner is not None and torch_page._has(owner, name)
        assert is_here == (path in differences()), path
    with pytest.raises(AttributeError, match="without blocks"):
        _ = mine.sparse_bsr_tensor
    with pytest.raises(AttributeError, match="COO"):
        mine.ones(1).to_sparse_bsr(1)
