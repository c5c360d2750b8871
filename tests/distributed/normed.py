"""Batch norms over ranks beside a batch norm of all batches, in float64."""

import numpy as np
from derived import close

import treadle as td
from treadle import distributed as dist

F64 = {"dtype": td.float64}


def run(seed, is_full):
    """Results, gradients and running values; unequal batches, of which one may be empty."""
    random = np.random.default_rng(seed)
    rank, size = dist.rank(), dist.size()
    for momentum, shape, fewest in [(0.3, (4,), 2), (None, (3, 2, 5), 0)][: 1 + is_full]:
        kind = td.nn.BatchNorm1d if len(shape) == 1 else td.nn.BatchNorm3d
        known, layer = (
            td.nn.Sequential(
                kind(3, momentum=momentum, **F64), *[kind(3, affine=False, **F64)][:is_full]
            )
            for _ in range(2)
        )
        layer = dist.convert_sync_batchnorm(layer)
        for each in (known, layer):
            with td.no_grad():
                each[0].weight[...] = td.asarray([0.5, -2.0, 1.5])
                each[0].bias[...] = td.asarray([1.0, 0.0, -3.0])
        assert all(isinstance(each, dist.SyncBatchNorm) for each in layer)
        rows = [fewest + r for r in range(size)]
        ends = np.cumsum([0, *rows])
        for _ in range(2):
            # Far from 0, where sums of squares would be of no use.
            whole = random.normal(1e4, 2, (ends[-1], 3, *shape))
            weights = random.normal(size=whole.shape)
            mine = slice(ends[rank], ends[rank + 1])
            x = td.asarray(whole.copy()).requires_grad_()
            y = td.asarray(whole[mine].copy()).requires_grad_()
            wanted, found = known(x), layer(y)
            known.zero_grad()
            layer.zero_grad()
            (wanted * td.asarray(weights)).sum().backward()
            (found * td.asarray(weights[mine].copy())).sum().backward()
            np.testing.assert_allclose(found.numpy(), wanted.numpy()[mine], 1e-9, 1e-9)
            np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy()[mine], 1e-7, 1e-9)
            for a, b in zip(layer.parameters(), known.parameters(), strict=True):
                np.testing.assert_allclose(
                    dist.all_reduce(a.grad).numpy(), b.grad.numpy(), 1e-7, 1e-8
                )
            for a, b in zip(layer.buffers(), known.buffers(), strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-10, 1e-9)
        known.eval()
        layer.eval()
        close(layer(y), known(x).numpy()[mine], "evaluation")
    if is_full:
        half = dist.SyncBatchNorm(3)
        found = half(td.asarray(whole[mine].copy()).to(td.float16))
        assert found.dtype == td.float16
