"""What programs for PyTorch rely on beside values: names of errors and of results, memory shared
with NumPy, private names that are in use, words of messages."""

from __future__ import annotations

import importlib
import operator
import re
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.torch as ours
from tests.parity.comparing import torch

F = ours.nn.functional


# --- names that are not there --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("jit", "torch.compile"), ("fx", "torch.compile"),
        ("nn.utils.prune", "parametrize"),
    ],
)  # fmt: skip
def test_imports_say_what_to_use(name, advice):
    package, _, last = f"treadle.torch.{name}".rpartition(".")
    for text in (f"from {package} import {last}", f"import {package}.{last}"):
        with pytest.raises(ImportError, match=f"'{package}' has no '{last}': .*{advice}"):
            exec(text)
    assert not hasattr(importlib.import_module(package), last)


def test_other_imports_fail_as_pythons():
    for name in ("treadle.torch.nosuch", "treadle.nosuch"):
        with pytest.raises(ModuleNotFoundError, match="No module named") as caught:
            importlib.import_module(name)
        assert caught.value.name == name


# --- errors --------------------------------------------------------------------------------------

_WRONG = [
    ("cat([])", ValueError),
    ("nn.functional.one_hot(lib.tensor([-1]))", RuntimeError),
    ("nn.functional.one_hot(lib.tensor([3]), 2)", RuntimeError),
    ("nn.functional.one_hot(lib.tensor([1.0]))", RuntimeError),
    ("nn.functional.dropout(lib.ones(2), 2.0, True)", ValueError),
    ("dropout(lib.ones(2), 2.0, True)", RuntimeError),
    ("full((2,), 300, dtype=lib.uint8)", RuntimeError),
    ("ones(2)['x']", TypeError),
    ("ones(2, 'x')", TypeError),
    ("ones(2, 3).mean('x')", TypeError),
    ("equal(lib.ones(2), [1.0, 1.0])", TypeError),
    ("where([True], lib.ones(1), lib.ones(1))", TypeError),
    ("tensor(None)", RuntimeError),
    ("tensor('a')", TypeError),
    ("device('bogus')", RuntimeError),
    ("manual_seed(2**64)", ValueError),
    ("manual_seed(-2**63 - 1)", ValueError),
]


@pytest.mark.parametrize(("text", "kind"), _WRONG, ids=[each[0] for each in _WRONG])
def test_kinds_of_errors(text, kind):
    for lib in (ours, torch):
        if lib is not None:
            with pytest.raises(kind):
                eval(f"lib.{text}", {"lib": lib})


def test_messages_name_pytorchs_functions():
    w = ours.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"torch\.") as caught:
        ours.ones(2, requires_grad=False).sum().backward()
    told = str(caught.value)
    with pytest.raises(TypeError, match=r"equal\(\) does not take a list") as caught_too:
        ours.equal(w, [1.0])
    for each in (told, str(caught_too.value)):
        assert not re.search(r"\btd\.", each), each


def test_meta_says_what_to_do():
    with pytest.raises(RuntimeError, match="skip_init"):
        ours.ones(2, device="meta")


# --- results -------------------------------------------------------------------------------------

_SHOWN = [
    "max(lib.tensor([[1, 2], [3, 1]]), 0)", "sort(lib.tensor([3, 1]))", "topk(lib.arange(4), 2)",
    "tensor([3, 1, 2]).median(0)", "tensor([3, 1, 2]).cummax(0)", "aminmax(lib.tensor([3, 1]))",
    "linalg.slogdet(lib.eye(2))", "slogdet(lib.eye(2))", "frexp(lib.ones(1))",
    "linalg.lstsq(lib.ones(3, 2), lib.ones(3))", "finfo(lib.float16)", "finfo(lib.float64)",
    "finfo(lib.bfloat16)", "finfo()", "iinfo(lib.int8)", "iinfo(lib.int64)", "add(1, 2)",
    "mul(True, 2.5)", "floor_divide(7, 2)",
    "std_mean(lib.arange(3.0))", "sign(lib.tensor([float('nan'), -0.0, -2.0]))",
    "sgn(lib.tensor([float('nan'), 3.0]))", "sgn(lib.tensor([3 + 4j, 0j]))",
    "maximum(lib.ones(1), lib.zeros(1))",
]  # fmt: skip

if torch is not None:

    @pytest.mark.parametrize("text", _SHOWN)
    def test_text(text):
        assert repr(eval(f"lib.{text}", {"lib": ours})) == repr(eval(f"lib.{text}", {"lib": torch}))

    def test_least_squares_of_any_rank():
        rng = np.random.default_rng()
        for driver in (None, "gelsd", "gelsy") * 8:
            rows = int(rng.integers(2, 6))
            a = rng.standard_normal((rows, 1)) @ rng.standard_normal((1, 3))
            b = rng.standard_normal((rows, 2))
            mine = ours.linalg.lstsq(ours.tensor(a), ours.tensor(b), driver=driver)
            wanted = torch.linalg.lstsq(torch.tensor(a), torch.tensor(b), driver=driver)
            np.testing.assert_allclose(mine.solution.numpy(), wanted.solution.numpy(), atol=1e-10)
            assert mine.rank.item() == wanted.rank.item() == 1
            assert mine.residuals.shape == wanted.residuals.shape

    def test_lists_of_tensors():
        rng = np.random.default_rng()
        arrays = [rng.standard_normal(n).astype(np.float32) for n in (3, 1, 7)]
        for name, *rest in (
            ("add", 2.0), ("add", "lists"), ("mul", [1.0, 2.0, 3.0]), ("lerp", "lists", 0.25),
            ("addcmul", "lists", "lists"), ("maximum", 0.0), ("minimum", "lists"), ("sqrt",),
        ):  # fmt: skip
            for inplace in ("", "_"):
                found = []
                for lib in (ours, torch):
                    lists = [lib.tensor(np.abs(each)) for each in arrays]
                    given = [
                        [lib.tensor(each) for each in arrays] if each == "lists" else each
                        for each in rest
                    ]
                    made = getattr(lib, f"_foreach_{name}{inplace}")(lists, *given)
                    found.append([each.numpy() for each in (lists if inplace else made)])
                for mine, wanted in zip(*found, strict=True):
                    np.testing.assert_allclose(mine, wanted, rtol=1e-6, err_msg=name)


def test_groups_of_optimizers_are_apart():
    groups = [{"params": [ours.ones(1)]}, {"params": [ours.ones(2)], "lr": 1.0}]
    assert "weight_decay: 0\n\nParameter Group 1\n" in repr(ours.optim.SGD(groups, lr=0.5))


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(RuntimeError, match="of one length"):
        ours._foreach_add([ours.ones(1)], [ours.ones(1), ours.ones(1)])
    with pytest.raises(AttributeError):
        _ = ours._foreach_nosuch


# --- memory --------------------------------------------------------------------------------------


def test_numpy_arrays_share_memory():
    x = ours.ones(3)
    doubled = x * 2
    array = x.numpy()
    array[0] = 42
    x[1] = 3
    x += 1
    assert x.tolist() == array.tolist() == [43.0, 4.0, 2.0]
    assert doubled.tolist() == [2.0, 2.0, 2.0]
    later = x * 2
    array[2] = 100
    assert later.tolist() == [86.0, 8.0, 4.0]
    np.asarray(x)[1] = -1
    assert array.tolist() == [43.0, -1.0, 100.0]
    row = ours.arange(6.0).reshape(2, 3)[1].numpy()
    row[:] = 0
    assert np.array(x) is not array
    assert ours.ones(1).expand(3).numpy().strides == (0,)
    assert ours.ones(2, 3).t().numpy().strides == (4, 12)


def test_parameters_are_stepped_through_shared_memory():
    model = ours.nn.Linear(3, 2)
    shared = model.weight.detach().numpy()
    alone = ours.nn.Linear(3, 2)
    alone.load_state_dict(model.state_dict())
    for each in (model, alone):
        optimizer = ours.optim.SGD(each.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            each(ours.ones(4, 3)).square().sum().backward()
            optimizer.step()
    np.testing.assert_array_equal(shared, alone.weight.detach().numpy())


def test_versions_and_bases():
    x = ours.ones(3)
    assert (x._version, x._base, x.is_shared()) == (0, None, False)
    part = x[1:]
    part.mul_(2)
    x.add_(1)
    assert x._version == part._version == 2
    part._base[0] = 7
    assert x.tolist() == [7.0, 3.0, 3.0]


def test_kinds_of_gradient_functions():
    class Cut(ours.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clamp(0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = ours.ones(2, requires_grad=True)
    names = [type(each.grad_fn).__name__ for each in (Cut.apply(x), x.clone(), x * 2, x**2)]
    assert names == ["CutBackward", "CloneBackward0", "MulBackward0", "PowBackward0"]


# --- derivatives of derivatives ------------------------------------------------------------------


@pytest.mark.parametrize("pool", ["max_pool1d", "adaptive_max_pool1d"])
def test_second_derivative_of_pooling_is_zero(pool):
    w = ours.ones(4, requires_grad=True)
    b = ours.tensor([0.5, -0.5, 1.0, 2.0], requires_grad=True)
    (g,) = ours.autograd.grad(getattr(F, pool)((w * b)[None], 2).sum(), w, create_graph=True)
    g.sum().backward()
    assert w.grad.tolist() == [0.0] * 4
    assert b.grad.tolist() == [1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("device", ["cpu", *(["webgpu"] if td.is_available("webgpu") else [])])
def test_counts_are_long(device):
    x = ours.tensor([0, 2], device=device)
    assert F.one_hot(x, 3).dtype is x.dtype
    norm = ours.nn.BatchNorm1d(2, device=device)
    norm(ours.ones(3, 2, device=device))
    assert norm.num_batches_tracked.dtype is x.dtype
    assert norm.num_batches_tracked.item() == 1


def test_gradients_of_what_is_written_in_place():
    x, w = ours.tensor([1.0, 2.0, 3.0]), ours.tensor([2.0, 2.0, 2.0], requires_grad=True)
    x.mul_(w).mul_(w)
    x.sum().backward()
    assert x.tolist() == [4.0, 8.0, 12.0]
    assert w.grad.tolist() == [4.0, 8.0, 12.0]
    y = ours.tensor([1.0, 2.0])
    copy = ours.zeros(2).copy_(y)
    y.add_(1).mul_(y).add_(y[:1])
    assert y.tolist() == [8.0, 13.0]
    assert copy.tolist() == [1.0, 2.0]


def test_arrays_of_other_libraries_are_named():
    import treadle.numpy as np_ours

    x = ours.ones(2)
    others = [(np_ours.ones(2), r"treadle\.numpy\.ndarray"), (x.td, r"treadle\.Tensor")]
    if torch is not None:
        others.append((torch.ones(2), r"torch\.Tensor"))
    for other, name in others:
        with pytest.raises(TypeError, match=rf"\+ of a tensor of treadle\.torch and a {name}"):
            x + other
        with pytest.raises(TypeError, match=rf"treadle\.torch.* and a {name}|y\.td is a tensor"):
            other + x
        with pytest.raises(TypeError, match=rf"== of a tensor .*{name}"):
            operator.eq(x, other)
    with pytest.raises(TypeError, match=r"not a float: torch\.as_tensor"):
        ours.exp(2.0)
    with pytest.raises(TypeError, match=r"got treadle\.numpy\.ndarray"):
        ours.from_numpy(np_ours.ones(2))
    with pytest.raises(RuntimeError, match=r"x\.to\(torch\.float32\)"):
        ours.tensor([1]).requires_grad_()


def test_text_names_the_device_that_is_meant(monkeypatch):
    if td.is_available("webgpu") and not td.is_available("cuda"):
        monkeypatch.setenv("TREADLE_TORCH_CUDA", "webgpu")
        x = ours.ones(2, device="cuda")
        assert x.is_cuda
        assert repr(x) == "tensor([1., 1.], device='cuda:0')"


def test_formats_and_errors_that_programs_rely_on():
    loss = ours.tensor(2.4770817)
    assert f"{loss}" == f"{loss.item()}"
    assert f"{loss:.3f} {loss.argmax()}" == "2.477 0"
    assert f"{ours.ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(RuntimeError, match="categories"):
        ours.multinomial(ours.tensor([1.0, 0.0]), 2)
    assert sorted(ours.multinomial(ours.tensor([1.0, 0.5, 0.0]), 2).tolist()) == [0, 1]
    with pytest.raises(RuntimeError, match="asked for"):
        ours.zeros(10**6, 10**6, 10**3).numpy()


# --- kinks, numbers of NumPy's, indices outside --------------------------------------------------

_KINKS = [
    "elu(x)", "celu(x, 0.5)", "selu(x)", "mish(x)", "prelu(x, w)", "smooth_l1_loss(x, y, beta=2.0)",
    "huber_loss(x, y)", "hinge_embedding_loss(x, -y - 1)", "margin_ranking_loss(x, y, y + 1)",
    "multi_margin_loss(x[None] / 2, lib.tensor([4]), margin=0.5)", "gaussian_nll_loss(x, y, x * x)",
]  # fmt: skip


@pytest.mark.parametrize("call", [f"lib.nn.functional.{each}" for each in _KINKS]
                         + ["x.median() * x", "x[2:].nanmedian()"])  # fmt: skip
def test_slopes_at_kinks(call):
    pytest.importorskip("torch")

    def gradients(lib):
        x = lib.tensor([-2.0, -0.5, 0.0, 1.0, 0.5, 2.0, 1.0], dtype=lib.float64, requires_grad=True)
        y, w = lib.zeros(7, dtype=lib.float64), lib.full((1,), 0.25, dtype=lib.float64)
        made = eval(call, {"lib": lib, "x": x, "y": y, "w": w})
        first = lib.autograd.grad(made.sum(), x, create_graph=True)[0]
        second = [None]
        if first.requires_grad and "multi_" not in call and "ranking" not in call:
            second = lib.autograd.grad((first * first.detach()).sum(), x, allow_unused=True)
        return [first.detach(), second[0]]

    for one, other in zip(gradients(ours), gradients(torch), strict=True):
        if other is None:
            assert one is None or not one.any()
        else:
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "data",
    ["[np.float64(1.5)]", "[np.int32(1)]", "[1.0, np.float64(2)]", "[1, np.float32(2)]",
     "[np.float16(2), 1.0]", "[[np.int8(2)], [np.int8(3)]]", "(np.bool_(True), True)",
     "[np.complex64(1), 1.0]", "[np.uint8(1), np.int8(-1)]", "[np.float32(1), 1j]"],
)  # fmt: skip
def test_numbers_of_numpys_keep_their_dtype(data):
    pytest.importorskip("torch")
    values = eval(data)
    one, other = ours.tensor(values), torch.tensor(values)
    assert str(one.dtype) == str(other.dtype).removeprefix("torch.")
    assert one.tolist() == other.tolist()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("F.max_unpool1d(lib.ones(1, 1, 2), lib.tensor([[[0, 4]]]), 2)", RuntimeError, "index: 4"),
        ("F.max_unpool2d(lib.ones(1, 1, 2), lib.tensor([[[0, -1]]]), 2)", RuntimeError, ": -1"),
        ("F.multi_margin_loss(lib.ones(1, 3), lib.tensor([3]))", RuntimeError, "out of range"),
        ("F.multi_margin_loss(lib.ones(1, 3), lib.tensor([-1]))", RuntimeError, "out of range"),
        ("F.multilabel_margin_loss(lib.ones(3), lib.tensor([3, 0, -1]))", RuntimeError, "out of"),
        ("cat([lib.ones(2), np.ones(2)])", TypeError, "expected Tensor as element 1"),
        ("stack([np.ones(2)])", TypeError, "expected Tensor as element 0"),
        ("from_numpy(lib.ones(2))", TypeError, r"expected np.ndarray \(got Tensor\)"),
        ("nn.Linear(2, 2).load_state_dict({'weight': lib.ones(1, 2), 'bias': lib.ones(2)})",
         RuntimeError, r"size mismatch for weight: copying a param with shape torch.Size\(\[1, 2\]"
         r"\) from checkpoint, the shape in current model is torch.Size\(\[2, 2\]\)"),
        ("nn.Linear(2, 2).load_state_dict({'weight': 5, 'bias': lib.ones(2)})", RuntimeError,
         'named "weight", expected torch.Tensor or Tensor-like object'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(call, error, words):
    for lib in (ours, *([torch] if torch is not None else [])):
        text = call.replace("F.", "nn.functional.", 1) if call.startswith("F.") else call
        with pytest.raises(error, match=words):
            eval(f"lib.{text}", {"lib": lib, "np": np})


def test_what_is_shown():
    lazy = [ours.nn.LazyLinear(3), ours.nn.LazyConv2d(3, 2), ours.nn.LazyBatchNorm1d()]
    ours.manual_seed(1)
    state = ours.get_rng_state()
    assert [str(each).partition(",")[0] for each in lazy] == [
        "LazyLinear(in_features=0", "LazyConv2d(0", "LazyBatchNorm1d(0"
    ]  # fmt: skip
    assert ours.equal(ours.get_rng_state(), state)
    module = ours.nn.Sequential(ours.nn.BatchNorm1d(2), ours.nn.Linear(2, 2))
    versions = [each["version"] for each in module.state_dict()._metadata.values()]
    assert versions == [1, 2, 1]
    found = module.load_state_dict({}, strict=False)
    assert repr(found).startswith("_IncompatibleKeys(missing_keys=['0.weight'")
    assert type(operator.add((1,), ours.Size([2]))) is ours.Size
    for name, advice in (("utils.dlpack", "from_dlpack"), ("utils.hooks", "remove()")):
        with pytest.raises(ImportError, match=advice):
            importlib.import_module(f"treadle.torch.{name}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(x * 2).backward()", "grad can be implicitly created only for scalar outputs"),
        ("lib.ones(2).sum().backward()", "does not require grad and does not have a grad_fn"),
        ("(y := (x * x).sum()).backward(); y.backward()", "through the graph a second time"),
        ("(y := x.exp()).add_(1); y.sum().backward()", "modified by an inplace operation"),
        ("x += 1", "a leaf Variable that requires grad is being used in an in-place"),
        ("x[:1].add_(1)", "a view of a leaf Variable that requires grad is being used in"),
    ],
)
def test_phrases_that_programs_look_for(text, words):
    for lib in (ours, *([torch] if torch is not None else [])):
        names = {"lib": lib, "x": lib.ones(2, requires_grad=True)}
        with pytest.raises(RuntimeError, match=words):
            exec(text, names)


@pytest.mark.skipif(torch is None, reason="needs PyTorch")
@pytest.mark.parametrize(
    "text",
    [
        "nn.Parameter(x)", "nn.functional.smooth_l1_loss(x, x)", "nn.functional.prelu(x, x)",
        "nn.functional.max_unpool1d(x, x, 2)", "nn.functional.multi_margin_loss(x, x)",
        "nn.ReLU()(x)", "nn.Linear(4, 4)(x)", "sin(x)", "ones(4).add_(x)", "cat([x])",
    ],
)  # fmt: skip
def test_tensors_of_pytorch_itself_are_named(text):
    x = torch.ones(1, 4, requires_grad=True)
    with pytest.raises(TypeError, match=r"torch\.Tensor.*torch\.from_dlpack"):
        eval(f"lib.{text}", {"lib": ours, "x": x})


_ALIKE = [
    "arange(5.).std(correction=5)", "var(lib.eye(3), correction=9)", "ones(5).var(correction=6)",
    "arange(6.).reshape(2, 3).var(1, correction=3)", "std_mean(lib.arange(5.), correction=6)",
    "zeros(0).var()", "arange(6).reshape(2, 3)[..., ...]", "arange(6).reshape(2, 3)[..., 0, ...]",
    "arange(6).reshape(2, 3)[0, ..., 1, ...]", "arange(6)[..., lib.tensor([1, 2]), ...]",
    "tensor([[1., 2.], lib.ones(2)])", "tensor([lib.ones(1), lib.ones(1, 1)])",
    "cuda.memory_allocated() if not lib.cuda.is_available() else 0",
    "cuda.max_memory_reserved() if not lib.cuda.is_available() else 0",
]  # fmt: skip


@pytest.mark.skipif(torch is None, reason="needs PyTorch")
@pytest.mark.filterwarnings("ignore")
def test_rare_arguments():
    def said(lib, text):
        return repr(eval(f"lib.{text}", {"lib": lib}))

    for text in _ALIKE:
        assert said(ours, text) == said(torch, text), text
    for text in ("tensor([lib.ones(2), lib.ones(2)])", "tensor([lib.ones(2), [1., 2.]])",
                 "tensor([lib.zeros(0)])"):  # fmt: skip
        for lib in (ours, torch):
            with pytest.raises(ValueError, match="only one element tensors"):
                said(lib, text)
    for text in ("normal(lib.zeros(2), lib.tensor([1.0, -1.0]))", "poisson(lib.tensor([-1.0, 2]))",
                 "zeros(2).cauchy_(0, -1)", "zeros(2).log_normal_(0, 0)"):  # fmt: skip
        for lib in (ours, torch):
            with pytest.raises(RuntimeError):
                said(lib, text)
    for lib in (ours, torch):
        with pytest.raises(IndexError):
            said(lib, "arange(6).reshape(2, 3)[..., ..., 0]")
        data = lib.utils.data
        pairs = data.DataLoader(data.TensorDataset(lib.ones(3, 2), lib.ones(3)), batch_size=None)
        assert type(next(iter(pairs))) is list
    random = np.random.default_rng()
    for dtype in ("half", "bfloat16"):
        start, end = random.uniform(-5, 5, 2)
        for steps in (0, 1, 2, 4, int(random.integers(5, 3000))):
            text = f"linspace({start}, {end}, {steps}, dtype=lib.{dtype}).tolist()"
            assert said(ours, text) == said(torch, text), text
