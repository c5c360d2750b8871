"""`td.distributed.ray`: training on a Ray cluster, which starts the ranks, watches them, and starts
them again from the last checkpoint when one is gone.

Ray Train runs the function in a process for each rank. The store where the ranks meet is in Ray's
controller of the training, which lives on when a rank dies and so knows which one has.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from treadle.core.errors import DistributedError
from treadle.data.saving import load, save
from treadle.distributed import environment, group, lifecycle
from treadle.distributed.store import Store

__all__ = ["Trainer", "last_state", "report"]
_INSTALL = 'pip install "treadle[ray]" (ray[train], and MPICH for devices other than NVIDIA GPUs)'
_STATE = "state.safetensors"  # the file of a checkpoint that `report` writes


def _ray() -> Any:
    return import_module("ray")


def _train() -> Any:
    """Ray Train, which is imported when it is used."""
    try:
        return import_module("ray.train")
    except ImportError as error:
        raise DistributedError(f"Ray Train is not here ({error}): {_INSTALL}") from None


@dataclass(frozen=True, slots=True)
class Start:
    """What ranks are started with."""

    backend: str | None
    device: str | None
    timeout: float
    check: bool


class Trainer:
    """A function that runs in `num_workers` processes of a Ray cluster, each a rank of
    `td.distributed`, which is initialized when the function is called.

    `fn` takes no argument, or the dictionary `config`. With `use_gpu` each rank has an NVIDIA GPU,
    and NCCL moves the data; without, each computes on as many cores of a CPU as
    `resources_per_worker={"CPU": …}` says (one), and MPI moves the data. `device` is another kind
    of device, as "webgpu". Within `fn`, `report` gives Ray numbers and a state to keep, and
    `last_state` has the state that was kept last: so a function that begins with it goes on where
    it was when Ray starts it again, which it does `max_failures` times at most (-1: always), with
    as many ranks as there is room for if `num_workers` is a pair (fewest, most).

    `name` and `storage_path` say where Ray keeps states and numbers (~/ray_results; on several
    machines a folder that all of them see), `keep` how many states. `backend`, `timeout` and
    `check` are those of `td.distributed.init`; other options are those of `ray.train.RunConfig`.
    DistributedError if Ray is not installed.

    ```python
    trainer = td.distributed.ray.Trainer(train, num_workers=4, use_gpu=True, max_failures=3)
    result = trainer.fit()
    ```
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        num_workers: int | tuple[int, int] = 1,
        use_gpu: bool = False,
        config: Mapping[str, Any] | None = None,
        *,
        resources_per_worker: Mapping[str, float] | None = None,
        max_failures: int = 0,
        keep: int | None = None,
        name: str | None = None,
        storage_path: str | os.PathLike[str] | None = None,
        backend: str | None = None,
        device: str | None = None,
        timeout: float = 30.0,
        check: bool = False,
        datasets: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        train = _train()
        trainer = import_module("ray.train.v2.api.data_parallel_trainer").DataParallelTrainer
        chosen = device or ("cuda" if use_gpu else "cpu")
        begin = Start(backend, chosen, timeout, check)
        self._trainer = trainer(
            _ranked(fn, begin, config is not None),
            train_loop_config=None if config is None else dict(config),
            backend_config=_config(begin),
            scaling_config=train.ScalingConfig(
                num_workers=num_workers,
                use_gpu=use_gpu,
                resources_per_worker=None if resources_per_worker is None
                else dict(resources_per_worker),
            ),
            run_config=train.RunConfig(
                name=name,
                storage_path=None if storage_path is None else str(Path(storage_path).absolute()),
                failure_config=train.FailureConfig(max_failures=max_failures),
                checkpoint_config=train.CheckpointConfig(num_to_keep=keep),
                **options,
            ),
            datasets=None if datasets is None else dict(datasets),
        )  # fmt: skip

    def fit(self) -> Any:
        """Run the function on all ranks, and wait for it: Ray's `Result`, with the `metrics` that
        were reported last and the `checkpoint` that was kept last. Ray's `TrainingFailedError` if a
        rank fails more often than `max_failures`, with each rank's reason."""
        return self._trainer.fit()


def report(metrics: Mapping[str, Any], state: Any = None) -> None:
    """Give Ray numbers, and a state to keep: what `td.save` takes, or a folder (a `pathlib.Path`).
    All ranks call it alike; the numbers and the state of rank 0 count, and other ranks' states are
    not looked at."""
    train = _train()
    numbers = {key: _number(value) for key, value in metrics.items()}
    if state is None or group.rank():
        train.report(numbers)
        return
    if isinstance(state, Path):
        train.report(numbers, checkpoint=train.Checkpoint.from_directory(str(state)))
        return
    with tempfile.TemporaryDirectory(prefix="treadle-") as folder:
        save(state, Path(folder) / _STATE)
        train.report(numbers, checkpoint=train.Checkpoint.from_directory(folder))


def last_state() -> Any:
    """The state that `report` was given last, in this or an earlier start of the training; None if
    there is none. Of one that was given as a folder it is a copy of the folder."""
    checkpoint = _train().get_checkpoint()
    if checkpoint is None:
        return None
    folder = Path(checkpoint.to_directory())
    return load(folder / _STATE) if (folder / _STATE).exists() else folder


def _number(value: Any) -> Any:
    """Tensors of one element as Python's numbers."""
    return value.item() if hasattr(value, "item") else value


# --- in Ray's processes --------------------------------------------------------------------------


def _ranked(fn: Callable[..., Any], begin: Start, has_config: bool) -> Callable[..., Any]:
    """The function as a rank runs it, with as many parameters: Ray looks at them."""

    def configured(config: Any) -> Any:
        return _run(begin, fn, config)

    def plain() -> Any:
        return _run(begin, fn)

    return configured if has_config else plain


def _run(begin: Start, fn: Callable[..., Any], *config: Any) -> Any:
    group.init(begin.backend, begin.timeout, begin.check or None)
    try:
        result = fn(*config)
    except BaseException as error:
        # The others hear it at once, and Ray from the exception.
        lifecycle.fail(lifecycle.described(error))
        group.leave()
        raise
    group.leave()
    return result


def _config(begin: Start) -> Any:
    """What Ray Train calls before the ranks begin, and after they have ended."""
    kinds: Any = import_module("ray.train.backend")

    class Meeting(kinds.Backend):  # type: ignore[misc]
        """Opens the store, and says to each rank where it is."""

        share_cuda_visible_devices = True  # one process a device, all devices visible

        def on_start(self, worker_group: Any, backend_config: Any) -> None:
            """Before the function is called."""
            self._close()
            size, key = len(worker_group), secrets.token_hex(16)
            self._store: Store | None = Store(size, "", 0, key)
            place = f"{import_module('ray.util').get_node_ip_address()}:{self._store.port}"
            worker_group.execute(_tell, place, key, begin.device)

        def on_shutdown(self, worker_group: Any, backend_config: Any) -> None:
            """After it has ended."""
            self._close()

        def _close(self) -> None:
            store = getattr(self, "_store", None)
            self._store = None
            if store is not None:
                store.close()

    class Config(kinds.BackendConfig):  # type: ignore[misc]
        """Names it."""

        @property
        def backend_cls(self) -> type:
            """The class whose methods are called."""
            return Meeting

    return Config()


def _tell(place: str, key: str, device: str | None) -> None:
    """In a rank's process: what `init` finds in the environment."""
    running = _ray().get_runtime_context()
    context = _train().get_context()
    local = context.get_local_rank()
    found = {
        "RANK": context.get_world_rank(),
        "WORLD_SIZE": context.get_world_size(),
        "LOCAL_RANK": local,
        "LOCAL_WORLD_SIZE": context.get_local_world_size(),
        environment.STORE: place,
        environment.KEY: key,
    }
    if device is not None:
        found["TREADLE_DEVICE"] = device
    ids = running.get_accelerator_ids().get("GPU", [])
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if device == "cuda" and ids and ids[0] in visible:
        found["TREADLE_DEVICE"] = f"cuda:{visible.index(ids[0])}"
    cores = running.get_assigned_resources().get("CPU", 1)
    for launcher in environment.LAUNCHERS:
        if launcher.is_mpi:  # what has started Ray itself
            os.environ.pop(launcher.rank, None)
    os.environ.setdefault(environment.THREADS, str(max(int(cores), 1)))
    os.environ.update({name: str(value) for name, value in found.items()})
