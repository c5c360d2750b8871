"""Training under Ray: one of two ranks is killed, and the training goes on from its checkpoint."""

import os
import signal
import sys

import numpy as np
import ray

import treadle as td
from treadle import distributed as dist

STEPS = 5


def batch(step, rank):
    return np.random.default_rng((step, rank)).normal(size=(8, 3))


def made():
    td.manual_seed(3)
    model = td.nn.Linear(3, 1, dtype=td.float64)
    return model, td.optim.AdamW(model.parameters(), lr=0.1)


def loss_of(model, x):
    return ((model(x) - x.sum(axis=1, keepdims=True)) ** 2).mean()


def train(config):
    model, optimizer = made()
    state = dist.ray.last_state()
    first = 0
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"] + 1
    model = dist.DataParallel(model)
    for step in range(first, STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, td.asarray(batch(step, dist.rank())))
        loss.backward()
        optimizer.step()
        mean = dist.all_reduce(loss.detach(), "mean")
        if step == config["kill_at"] and state is None and dist.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.ray.report(
            {"loss": mean, "first": first, "size": dist.size(), "backend": dist.backend()},
            {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step},
        )


def alone():
    """The last loss of one process with the batches of both."""
    model, optimizer = made()
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, td.asarray(np.concatenate([batch(step, 0), batch(step, 1)])))
        loss.backward()
        optimizer.step()
    return loss.item()


def as_a_host():
    """NCCL refuses two ranks of a host that have one card, so each process is a host to it."""
    os.environ["NCCL_HOSTID"] = str(os.getpid())


if __name__ == "__main__":
    folder, temporary, *cards = sys.argv[1:]  # how many NVIDIA cards are used, or nothing
    options, backend = {}, "mpi"
    if cards:
        shared = 1 if int(cards[0]) > 1 else 0.5
        options = {"use_gpu": True, "resources_per_worker": {"CPU": 1, "GPU": shared}}
        backend = "nccl"
    ray.init(
        num_cpus=2, num_gpus=int(cards[0]) if cards else 0, include_dashboard=False,
        _temp_dir=temporary,
        runtime_env={"worker_process_setup_hook": as_a_host} if cards == ["1"] else None,
    )  # fmt: skip
    trainer = dist.ray.Trainer(
        train, num_workers=2, config={"kill_at": 3}, max_failures=1, keep=2, storage_path=folder,
        **options,
    )  # fmt: skip
    found = trainer.fit().metrics
    assert (found["size"], found["backend"]) == (2, backend), found
    assert found["first"] > 0, found
    td.set_default_device("cpu")
    np.testing.assert_allclose(found["loss"], alone(), 1e-12)
    print("right")
    ray.shutdown()
