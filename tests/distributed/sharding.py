"""Run by `treadle launch`: sharded training beside the same training of one process, and
checkpoints that other numbers of ranks have written."""

import contextlib
import os
import re
import resource
import sys
from pathlib import Path

import numpy as np

import treadle as td
from treadle import distributed as dist

DOUBLE = {"dtype": td.float64}
ROWS = 12  # of a batch of all ranks


class Block(td.nn.Module):
    def __init__(self, width, dtype=td.float64):
        super().__init__()
        self.wide = td.nn.Linear(width, width + 4, dtype=dtype)
        self.narrow = td.nn.Linear(width + 4, width, dtype=dtype)

    def forward(self, x):
        return x + self.narrow(td.nn.functional.gelu(self.wide(x)))


class Net(td.nn.Module):
    """Sizes that no number of ranks divides, a weight that two layers share, statistics."""

    def __init__(self, dtype=td.float64):
        super().__init__()
        self.first = td.nn.Linear(5, 7, dtype=dtype)
        self.blocks = td.nn.ModuleList([Block(7, dtype) for _ in range(3)])
        self.norm = td.nn.BatchNorm1d(7, dtype=dtype)
        self.last = td.nn.Linear(7, 3, dtype=dtype)
        self.second = td.nn.Linear(7, 3, bias=False, dtype=dtype)
        self.second.weight = self.last.weight
        self.around = lambda block, x: block(x)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = self.around(block, x)
        return self.last(x) + self.second(self.norm.eval()(x))


def made(seed, dtype=td.float64):
    td.manual_seed(seed)
    return Net(dtype)


class Chain(td.nn.Module):
    """Layers of the same size, so that there are few kernels to compile."""

    def __init__(self, dtype=td.float64, seed=1):
        super().__init__()
        td.manual_seed(seed)
        self.layers = td.nn.ModuleList([td.nn.Linear(5, 5, dtype=dtype) for _ in range(3)])
        self.count = 3
        self.around = lambda layer, x: layer(x)

    def forward(self, x):
        for layer in self.layers[: self.count]:
            x = self.around(layer, x)
        return x


def squares(tensors):
    """The sum of squares of each tensor."""
    return np.array([(each.numpy() ** 2).sum() for each in tensors])


def batches(seed, count=3, dtype=np.float64):
    random = np.random.default_rng(seed)
    return [
        (random.normal(size=(ROWS, 5)).astype(dtype), random.normal(size=(ROWS, 3)).astype(dtype))
        for _ in range(count)
    ]


def mine(array):
    rows = ROWS // dist.size()
    return array[rows * dist.rank() :][:rows].copy()


def trained(
    model, data, passes=1, norm=None, scaler=None, sync=True, compiled=False, optimizer=None
):
    """Losses and norms of some steps, and the parameters after them."""
    optimizer = optimizer or td.optim.AdamW(model.parameters(), lr=0.02)
    schedule = td.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def step(x, y):
        optimizer.zero_grad()
        rows, found = len(x) // passes, 0
        for k in range(passes):
            part = slice(rows * k, rows * k + rows)
            is_last = k == passes - 1
            with contextlib.nullcontext() if sync or is_last else model.no_sync():
                loss = ((model(x[part]) - y[part]) ** 2).mean() / passes
                (loss if scaler is None else scaler.scale(loss)).backward()
            found = found + loss.detach()
        if scaler is not None:
            scaler.unscale_(optimizer)
        length = None
        if norm is not None:
            length = td.nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        return found, length

    run = td.compile(step) if compiled else step
    seen = []
    for x, y in data:
        loss, length = run(td.asarray(x), td.asarray(y))
        if not compiled:
            schedule.step()
        is_part = isinstance(model, dist.Sharded)
        seen.append((dist.all_reduce(loss, "mean") if is_part else loss).item())
        if length is not None:
            seen.append(length.item())
    return seen, {name: each.numpy() for name, each in model.state_dict().items()}


def compare(what, model, data, around=None, **options):
    """Train alone and sharded, which must be the same."""
    alone = Chain() if isinstance(model.module, Chain) else made(1)
    if around is not None:
        model.module.around = alone.around = around
    sync = options.pop("sync", True)

    def scaler():
        return {"scaler": td.GradScaler(init_scale=64.0)} if options.get("scaler") else {}

    wanted, state = trained(alone, data, **{**options, **scaler()})
    own = [(mine(x), mine(y)) for x, y in data]
    found, parts = trained(model, own, **{**options, **scaler()}, sync=sync)
    np.testing.assert_allclose(found, wanted, 1e-12, 1e-13, err_msg=what)
    assert parts.keys() == state.keys()
    for name in state:
        if "running" not in name and "tracked" not in name:
            np.testing.assert_allclose(parts[name], state[name], 1e-9, 1e-12, err_msg=what + name)


def again(block, x):
    return td.checkpoint(block)(x)


def training(seed):
    """The same losses as alone, however the model is divided and a step is made."""
    model = made(1 + dist.rank())
    chosen = [*model.blocks, model.blocks[1].wide]
    compare("plain", dist.Sharded(model, chosen), batches(seed))
    data = [(x, x) for x, _ in batches(seed)]
    model = dist.Sharded(Chain())
    compare("again", model, data, norm=float("inf"), scaler=True, around=again)
    model = dist.Sharded(Chain(), td.nn.Linear)
    compare("compiled", model, data, passes=2, norm=2.0, sync=False, compiled=True)


def short(seed):
    """The same losses as alone."""
    data = [(x, x) for x, _ in batches(seed)]
    compare("short", dist.Sharded(Chain(seed=1 + dist.rank())), data, norm=2.0)


def unreached(seed):
    """What passes within `no_sync` have left is reduced by a pass that does not come there."""
    x = td.asarray(mine(batches(seed, 1)[0][0]))
    alone, model = Chain(), dist.Sharded(Chain())
    with model.no_sync():
        for each in (alone, model):
            (each(x) ** 2).mean().backward()
    alone.count = model.module.count = 1
    for each in (alone, model):
        (each(x) ** 2).mean().backward()
    dist.average_gradients(alone)
    found = dist.all_reduce(td.asarray(squares([each.grad for each in model.parameters()])))
    wanted = squares([each.grad for each in alone.parameters()])
    np.testing.assert_allclose(found.numpy(), wanted, 1e-12)


def single():
    """Training in float32 on any device, of a model that was made on the host."""
    data = [(x, x) for x, _ in batches(3, 3, np.float32)]
    wanted, state = trained(Chain(td.float32), data)
    own = [(mine(x), mine(y)) for x, y in data]
    with td.use_device("cpu"):
        model = Chain(td.float32, 1 + dist.rank())
    found, parts = trained(dist.Sharded(model, device=td.default_device()), own)
    np.testing.assert_allclose(found, wanted, 1e-5)
    np.testing.assert_allclose(parts["layers.0.weight"], state["layers.0.weight"], 1e-3, 1e-5)


def narrow(seed):
    """Parameters gathered in bfloat16, whose parts, gradients and states are float32."""
    seen = []
    model = Chain(td.float32)
    for layer in model.layers:
        layer.register_forward_hook(
            lambda layer, args, out: seen.append((args[0].dtype, out.dtype))
        )
    model = dist.Sharded(model, dtype=td.bfloat16, reduce_dtype=td.float32)
    optimizer = td.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    x = td.asarray(mine(batches(seed, 1, np.float32)[0][0]))
    for _ in range(8):
        optimizer.zero_grad()
        loss = ((model(x).to(td.float32) - x) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(dist.all_reduce(loss.detach(), "mean").item())
    assert set(seen) == {(td.bfloat16, td.bfloat16)}
    assert losses[-1] < losses[0]
    for each in model.parameters():
        assert each.dtype is each.grad.dtype is td.float32
        assert all(value.dtype is td.float32 for value in optimizer.state[each].values())


def memory():
    """A rank holds its parts, and what is whole at a time is two units."""
    width, count = 192, 8
    td.manual_seed(1)
    model = td.nn.Sequential(*[td.nn.Linear(width, width) for _ in range(count)])
    unit = 4 * width * (width + 1)
    seen = []
    model = dist.Sharded(model)
    for layer in model.module:
        layer.register_forward_hook(lambda *_: seen.append(td.memory_stats()["used"]))
    x = td.ones((4, width)).realize()
    optimizer = td.optim.SGD(model.parameters(), lr=0.01)
    optimizer.zero_grad()
    td.default_device().synchronize()
    before = td.memory_stats()["used"]
    for run in (model, td.compile(lambda x: model(x))):
        seen.clear()
        with td.no_grad():
            run(x).realize()
        assert max(seen) - before < 2.6 * unit, [(each - before) / unit for each in seen]
    after = td.memory_stats()["used"]
    (model(x) ** 2).mean().backward()
    for each in model.parameters():
        if each.grad is not None:
            each.grad.realize()
    td.default_device().synchronize()
    left = td.memory_stats()["used"] - after
    assert left < 0.5 * unit, left / unit  # the gradients have their places from the optimizer


def frozen():
    """Parameters without gradients are gathered, too, and let go of."""
    alone, model = Chain(), Chain()
    for each in (alone, model):
        each.requires_grad_(False)
        each.layers[0].requires_grad_(True)
        each.layers[1].weight.requires_grad_(True)
    model = dist.Sharded(model)
    x = td.asarray(batches(1, 1)[0][0])
    (alone(x) ** 2).mean().backward()
    (model(x) ** 2).mean().backward()
    assert all((each.grad is not None) == each.requires_grad for each in model.parameters())
    with model.gathered() as whole:
        first = whole.layers[0].weight.numpy()
        np.testing.assert_array_equal(first, alone.layers[0].weight.numpy())
    own = [each.grad for each in model.parameters() if each.requires_grad]
    wanted = [each.grad for each in alone.parameters() if each.requires_grad]
    found = dist.all_reduce(td.asarray(squares(own))).numpy()
    np.testing.assert_allclose(found, squares(wanted), 1e-12)


def refused(folder):
    """What does not work says so, on all ranks, which go on."""
    rank = dist.rank()
    model = dist.Sharded(made(1))
    optimizer = td.optim.SGD(model.parameters(), lr=0.1)
    x = td.asarray(mine(batches(1, 1)[0][0]))

    def changed():
        loss = model(x).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        loss.backward()

    def twice():
        parameters = [*model.parameters()]
        td.autograd.grad(model(x).sum(), parameters, create_graph=True)

    def kept():
        seen = []
        wide = model.module.blocks[0].wide
        with wide.register_forward_hook(lambda *_: seen.append(wide.weight)):
            model(x)
        (seen[-1] * 2).numpy()

    def elsewhere():
        bias = lambda: model.module.blocks[1].narrow.bias  # noqa: E731
        model.module.around = lambda block, x: block(x) + bias().sum()
        try:
            model(x).numpy()
        finally:
            model.module.around = lambda block, x: block(x)

    plain = made(1)
    taken = td.optim.SGD(plain.parameters(), lr=0.1)
    other = made(1)
    if rank == 1:
        other.first = td.nn.Linear(5, 7, bias=False, **DOUBLE)
    path = Path(folder) / "kept"
    dist.save_checkpoint(path, model, optimizer, extra=1)
    files = sorted(each.name for each in path.iterdir())
    bad = [
        ("changed between its forward and its backward", changed),
        ("no second derivatives", twice),
        ("call the Sharded model itself", lambda: model.module(x)),
        ("a parameter of blocks.1 is read", elsewhere),
        ("is read when it is not gathered", kept),
        ("computes with whole parameters", lambda: td.optim.Muon(model.parameters())),
        ("make the optimizer after", lambda: dist.Sharded(plain)),
        ("move, cast or assign", lambda: model.to(td.float32)),
        ("move, cast or assign", lambda: td.nn.ModuleList([model]).to(td.float32)),
        ("move, cast or assign", lambda: model.module.first.load_state_dict(
            {name: each * 2 for name, each in model.module.first.state_dict().items()},
            assign=True)),
        ("no Conv2d within it", lambda: dist.Sharded(made(1), td.nn.Conv2d)),
        ("not a module within", lambda: dist.Sharded(made(1), [td.nn.Linear(1, 1)])),
        ("a Sharded model", lambda: dist.load_checkpoint(path, made(1))),
        ("not known:\n  first.bias",
         lambda: dist.load_checkpoint(path, dist.Sharded(unbiased()))),
        ("other parameters, in other groups", lambda: dist.load_checkpoint(
            path, model, td.optim.SGD([*model.parameters()][1:], lr=0.1))),
        ("not a checkpoint", lambda: dist.load_checkpoint(folder, model)),
    ]  # fmt: skip
    if dist.size() > 1:
        bad.append(("the ranks' models differ", lambda: dist.Sharded(other)))
        bad.append(("kept was not written: rank 1: OSError: .*File too large", lambda: full(path)))

    def full(path):
        """Files of rank 1 end where a full disk would end them."""
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        if rank == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            dist.save_checkpoint(path, model, optimizer, extra=2)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    for words, call in bad:
        with raises(words):
            call()
    dist.barrier()
    assert files == sorted(each.name for each in path.iterdir())
    assert dist.load_checkpoint(path, model, optimizer) == 1
    del taken


@contextlib.contextmanager
def raises(words):
    found = None
    try:
        yield
    except (td.errors.TreadleError, ValueError) as error:
        found = error
    assert found is not None, f"no error: {words}"
    assert re.search(words, str(found)), found


def unbiased():
    model = made(1)
    model.first = td.nn.Linear(5, 7, bias=False, **DOUBLE)
    return model


def save(folder):
    """What other numbers of ranks load: parts, and the whole that they are compared with."""
    model = dist.Sharded(made(1))
    optimizer = td.optim.AdamW(model.parameters(), lr=0.02)
    trained(model, [(mine(x), mine(y)) for x, y in batches(5)], optimizer=optimizer)
    for name, full in (("parts", False), ("parts", False), ("whole", True)):
        dist.save_checkpoint(Path(folder) / name, model, optimizer, extra={"epoch": 3}, full=full)


def load(folder):
    """A checkpoint of other ranks, saved again by these, is the same bit for bit."""
    folder = Path(folder)
    whole = td.load(folder / "whole", device="cpu")
    again = folder / f"again-{dist.size()}"
    for name in ("parts", "whole"):
        model = dist.Sharded(made(7), td.nn.Linear)
        optimizer = td.optim.AdamW(model.parameters(), lr=0.5)
        assert dist.load_checkpoint(folder / name, model, optimizer) == {"epoch": 3}
        dist.save_checkpoint(again, model, optimizer, extra={"epoch": 3}, full=True)
        dist.barrier()
        same(td.load(again, device="cpu"), whole)
    if dist.size() == 3:
        dist.save_checkpoint(folder / "parts", model, optimizer, extra={"epoch": 3})
    alone = made(9)
    optimizer = td.optim.AdamW(alone.parameters(), lr=0.5)
    dist.load_checkpoint(again, alone, optimizer)
    same({"model": alone.state_dict(), "optimizer": optimizer.state_dict()},
         {name: whole[name] for name in ("model", "optimizer")})  # fmt: skip


def same(found, wanted):
    assert type(found) is type(wanted), (found, wanted)
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            same(found[key], wanted[key])
    elif isinstance(wanted, td.Tensor):
        assert found.dtype is wanted.dtype
        np.testing.assert_array_equal(found.numpy(), wanted.numpy(), strict=True)
    else:
        assert found == wanted


def main(device, seed, folder, parts):
    import beginning  # beside this script, where it is run as one

    beginning.init()
    assert td.default_device().id.startswith(device), td.default_device().id
    checks = {
        "training": lambda: training(seed), "short": lambda: short(seed),
        "single": single, "narrow": lambda: narrow(seed),
        "memory": memory, "frozen": frozen,
        "unreached": lambda: unreached(seed), "refused": lambda: refused(folder),
        "save": lambda: save(folder), "load": lambda: load(folder),
    }  # fmt: skip
    for part in parts:
        checks[part]()
        if os.environ.get("SHARDING_TIMES"):
            print(part, td.distributed.rank(), flush=True)
    print("right", dist.rank(), "of", dist.size())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
