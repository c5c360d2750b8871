"""Layers divided among ranks beside the whole layers, in float64."""

import copy
from functools import partial

import numpy as np
from derived import close, raised

import treadle as td
from treadle import distributed as dist
from treadle.tensor.checks import in_host_memory

F64 = {"dtype": td.float64}


def groups():
    """All ranks; of four, also groups of two of them."""
    size = dist.size()
    return [None, *([dist.new_group([[0, 1], [2, 3]])] if size == 4 else [])]


def same(what, layer, known, wanted_inputs, found_inputs):
    """The gradients of inputs, and of parameters of which each rank has a part, or all."""
    for found, wanted in zip(found_inputs, wanted_inputs, strict=True):
        close(found.grad, wanted.grad.numpy(), f"{what}: gradient of an input")
    names = dict(known.named_parameters())
    for name, parameter in layer.named_parameters():
        place, _, own = name.rpartition(".")
        parts = getattr(dict(layer.named_modules())[place], "parts", {})
        gradient = names[name].grad
        if own in parts:
            gradient = parts[own].of(layer_group(layer).rank, gradient)
        close(parameter.grad, gradient.numpy(), f"{what}: gradient of {name}")


def layer_group(layer):
    return next(each.group for each in layer.modules() if hasattr(each, "group"))


def tensors(random, *shape):
    """Two leaves of the same values."""
    values = random.normal(size=shape)
    return [td.asarray(values.copy()).requires_grad_() for _ in range(2)]


def linear(seed):
    """Columns then rows, with features that do not divide; gathered outputs."""
    random = np.random.default_rng(seed)
    for group in groups():
        size = dist.size() if group is None else group.size
        td.manual_seed(seed)
        known = td.nn.Sequential(
            td.nn.Linear(5, 2 * size + 1, **F64), td.nn.Tanh(), td.nn.Linear(2 * size + 1, 3, **F64)
        )
        td.manual_seed(seed)
        drawn = td.nn.Sequential(
            dist.ColumnParallelLinear(5, 2 * size + 1, group=group, **F64),
            td.nn.Tanh(),
            dist.RowParallelLinear(2 * size + 1, 3, group=group, **F64),
        )
        made = td.nn.Sequential(
            dist.ColumnParallelLinear.of(known[0], group=group),
            td.nn.Tanh(),
            dist.RowParallelLinear.of(known[2], group=group),
        )
        close(drawn[2].weight.detach(), made[2].weight.detach().numpy(), "drawn")
        for layer in (drawn, made):
            known.zero_grad()
            x, y = tensors(random, 7, 5)
            wanted, found = known(x), layer(y)
            close(found, wanted.numpy(), "linear")
            (wanted**2).sum().backward()
            (found**2).sum().backward()
            same("linear", layer, known, [x], [y])
        gathered = dist.ColumnParallelLinear.of(known[0], group=group, gather_output=True)
        known.zero_grad()
        x, y = tensors(random, 2, 3, 5)
        (known[0](x) ** 3).sum().backward()
        (gathered(y) ** 3).sum().backward()
        same("gathered", gathered, known[0], [x], [y])
    few = raised(lambda: dist.ColumnParallelLinear(3, dist.size() - 1))
    assert isinstance(few, ValueError), few
    assert "take fewer ranks" in str(few).lower()


def vocabulary(seed):
    """An embedding and a cross entropy over a vocabulary that does not divide."""
    random = np.random.default_rng(seed)
    count = 4 * dist.size() + 1
    known = td.nn.Embedding(count, 6, padding_idx=2, **F64)
    layer = dist.VocabParallelEmbedding.of(known)
    head = td.nn.Linear(6, count, **F64)
    parallel = dist.ColumnParallelLinear.of(head)
    ids = td.asarray(random.integers(-1, count + 1, (3, 5)))
    target = random.integers(0, count, (3, 5))
    target[0, 1], target[1, 2] = -100, 2
    goal = td.asarray(target)
    every = [{}, {"label_smoothing": 0.1}, {"reduction": "none"}]
    for options in every:
        for each in (known, layer, head, parallel):
            each.zero_grad()
        scores = head(known(ids))
        wanted = td.nn.functional.cross_entropy(scores.permute(0, 2, 1), goal, **options)
        own = parallel(layer(ids))
        found = dist.vocab_parallel_cross_entropy(own, goal, count, **options)
        close(found, wanted.numpy(), "cross entropy")
        (wanted**2).sum().backward()
        (found**2).sum().backward()
        same("embedding", layer, known, [], [])
        same("head", parallel, head, [], [])
    wrong = td.asarray([0, count])
    scores = parallel(td.zeros((2, 6), **F64))
    losses = dist.vocab_parallel_cross_entropy(scores, wrong, count, reduction="none").numpy()
    assert list(np.isnan(losses)) == [False, True]


def attention(seed):
    """Heads that do not divide; masks, weights, other keys than queries."""
    random = np.random.default_rng(seed)
    for group in groups():
        size = dist.size() if group is None else group.size
        heads = size + 1
        td.manual_seed(seed)
        every = [
            {"kdim": 5, "vdim": 4, "add_bias_kv": True, "add_zero_attn": True},
            {"batch_first": True},
        ]
        for options in every:
            known = td.nn.MultiheadAttention(3 * heads, heads, **options, **F64)
            layer = dist.ParallelMultiheadAttention.of(known, group=group)
            widths = (3 * heads, known.kdim, known.vdim)
            mask = td.asarray(random.random((2 * heads, 4, 4)) < 0.3)
            padding = td.asarray(np.arange(8).reshape(2, 4) == 5)
            inputs = [tensors(random, *((2, 4) if known.batch_first else (4, 2)), n)
                      for n in widths]  # fmt: skip
            found_inputs = [y for _, y in inputs]
            wanted_inputs = [x for x, _ in inputs]
            if known.batch_first:
                wanted_inputs, found_inputs = wanted_inputs[:1] * 3, found_inputs[:1] * 3
            for average in (False, True):
                wanted = known(*wanted_inputs, padding, True, mask, average)
                found = layer(*found_inputs, padding, True, mask, average)
                for a, b in zip(found, wanted, strict=True):
                    close(a, b.numpy(), "attention")
            for each in (wanted, found):
                ((each[0] ** 2).sum() + (each[1] ** 2).sum()).backward()
            same("attention", layer, known, wanted_inputs[:1], found_inputs[:1])


def loss_of_divided(model, mask, vocabulary, group, x, goal):
    """The loss, after its backward pass."""
    scores = model.head(model.norm(model.layers(model.table(x), mask, is_causal=True)))
    loss = dist.vocab_parallel_cross_entropy(scores, goal, group=group)
    loss.backward()
    return loss


def norms(parameters, known):
    """The norm of gradients, some of which other ranks have, is that of the whole model."""
    parameters, grads = [*parameters], [each.grad for each in known.parameters()]
    for p in (2.0, 3.0, np.inf, -np.inf):
        found = td.nn.utils.clip_grad_norm_(parameters, 1e9, p)
        close(found, td.nn.utils.get_total_norm(grads, p).numpy(), f"norm {p}")


def steps(model, known, group):
    """What optimizers need of gradients of which each rank has a part."""
    norms(model.parameters(), known)
    rows = td.asarray([0, len(known.table.weight) - 1])
    with in_host_memory():  # as a check of values sees them
        close(model.table(rows) if model.table.sequence_axis is None else known.table(rows),
              known.table(rows).detach().numpy(), "checked")  # fmt: skip
    if dist.size() == 1:
        return
    linear = td.nn.Linear(4, 8)
    td.optim.SGD(linear.parameters(), lr=1.0)
    error = raised(lambda: dist.ColumnParallelLinear.of(linear, group=group))
    assert "then make the optimizer" in str(error), error
    for kind in (td.optim.Adafactor, td.optim.LBFGS):
        error = raised(lambda kind=kind: kind(model.parameters()))
        assert "of which other ranks have the rest" in str(error), error
    # An overflow in one rank's part: no rank takes the step.
    model = copy.deepcopy(model)
    optimizer, scaler = td.optim.SGD(model.parameters(), lr=1.0), td.GradScaler(init_scale=8.0)
    scaler.scale(td.ones(()))
    if layer_group(model).rank == 0:
        model.layers.layers[0].linear1.weight.grad[0, 0] = np.inf
    before = model.norm.weight.numpy()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 4.0
    np.testing.assert_array_equal(model.norm.weight.numpy(), before)


class Model(td.nn.Module):
    def __init__(self, width, heads, vocabulary, layers):
        super().__init__()
        self.table = td.nn.Embedding(vocabulary, width, **F64)
        layer = td.nn.TransformerEncoderLayer(
            width, heads, 3 * width, 0.0, "gelu", batch_first=True, norm_first=True, **F64
        )
        self.layers = td.nn.TransformerEncoder(layer, layers)
        self.norm = td.nn.LayerNorm(width, **F64)
        self.head = td.nn.Linear(width, vocabulary, **F64)


def transformer(seed, is_full):
    """A transformer's layers, and its loss: whole, divided, and with divided sequences."""
    random = np.random.default_rng(seed)
    for group in groups():
        size = dist.size() if group is None else group.size
        length, heads, vocabulary = 2 * size, size + 1, 3 * size + 1
        td.manual_seed(seed)
        settings = (2 * heads, heads, vocabulary, 1 + is_full)
        known = Model(*settings).float().double()
        mask = td.nn.Transformer.generate_square_subsequent_mask(length, dtype=td.float64)
        ids = td.asarray(random.integers(0, vocabulary, (3, length + 1)))
        x, goal = ids[:, :-1], ids[:, 1:]
        hidden = known.norm(known.layers(known.table(x), mask, is_causal=True))
        wanted = td.nn.functional.cross_entropy(known.head(hidden).permute(0, 2, 1), goal)
        wanted.backward()
        for sequence in (False, True)[1 - is_full :]:
            model = Model(*settings)
            model.load_state_dict(known.state_dict())
            axis = 1 if sequence else None
            model.table = dist.VocabParallelEmbedding.of(
                model.table, group=group, sequence_axis=axis
            )
            dist.tensor_parallel(model, sequence, group)
            model.head = dist.ColumnParallelLinear.of(model.head, group=group, sequence_axis=axis)
            if sequence:
                dist.sum_gradients(model.norm, group)
            # What belongs to parameters stays with them.
            model = copy.deepcopy(model).float().double()
            given = {name: each.clone() for name, each in model.state_dict().items()}
            model.load_state_dict(given, assign=True)

            loss_of = partial(loss_of_divided, model, mask, vocabulary, group)
            close(loss_of(x, goal), wanted.numpy(), f"loss, sequence {sequence}")
            same(f"transformer, sequence {sequence}", model, known, [], [])
            steps(model, known, group)
            state, wanted_state = dist.whole_state_dict(model), known.state_dict()
            assert [*state] == [*wanted_state]
            for name, each in wanted_state.items():
                np.testing.assert_array_equal(state[name].numpy(), each.numpy(), name)
            if group is None and sequence and is_full:
                model.zero_grad()
                step = td.compile(loss_of)
                for _ in range(2):
                    model.zero_grad()
                    close(step(x, goal), wanted.numpy(), "compiled")
                same("compiled", model, known, [], [])
        # The beginning and end of a divided sequence.
        a, b = tensors(random, 2, length, 3)
        (td.sin(a) ** 2).sum().backward()
        (dist.join(td.sin(dist.split(b, 1, group)), 1, group) ** 2).sum().backward()
        close(b.grad, a.grad.numpy(), "split and join")
    if dist.size() > 1:
        odd = raised(lambda: dist.split(td.ones((2, 2 * dist.size() + 1)), 1))
        assert "equal parts" in str(odd), odd


def light(seed):
    """The case that is made of all layers."""
    transformer(seed, False)


def full(seed):
    """All cases."""
    for each in (linear, vocabulary, attention):
        each(seed)
    transformer(seed, True)
