"""`torch.utils.tensorboard`: files that TensorBoard shows, with scalars, texts and histograms."""

from __future__ import annotations

import itertools
import os
import socket
import time
from pathlib import Path
from typing import IO, Any

import numpy as np

from treadle.formats import event_files
from treadle.torch.tensors import Tensor

_numbers = itertools.count()


class SummaryWriter:
    """Writes what a training measures into a folder, `runs/` and the time unless one is named.

    There are `add_scalar`, `add_scalars`, `add_text` and `add_histogram`; other names are
    AttributeErrors. Neither TensorBoard nor PyTorch need be installed to write.

    >>> import tempfile
    >>> from treadle.torch.utils.tensorboard import SummaryWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with SummaryWriter(folder) as writer:
    ...         writer.add_scalar("loss", 0.5, 1)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if log_dir is None:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs") / f"{now}_{socket.gethostname()}{comment}"
        self.log_dir = os.fspath(log_dir)
        self._suffix, self._seconds = filename_suffix, flush_secs
        self._file: IO[bytes] | None = None
        self._flushed = time.monotonic()
        self._others: dict[str, SummaryWriter] = {}

    def _write(self, value: bytes, step: Any, seconds: float | None) -> None:
        if self._file is None:
            Path(self.log_dir).mkdir(parents=True, exist_ok=True)
            name = (
                f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}."
                f"{next(_numbers)}{self._suffix}"
            )
            self._file = (Path(self.log_dir) / name).open("wb")
            event_files.write_record(self._file, event_files.event(time.time(), None, None))
        at = time.time() if seconds is None else seconds
        step = None if step is None else int(step)
        event_files.write_record(self._file, event_files.event(at, step, value))
        if time.monotonic() - self._flushed > self._seconds:
            self.flush()

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: Any = None, walltime: float | None = None,
        new_style: bool = False, double_precision: bool = False,
    ) -> None:  # fmt: skip
        """Write a number, or a tensor of one, which is read."""
        self._write(event_files.scalar(tag, float(scalar_value)), global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None,
        walltime: float | None = None,
    ) -> None:  # fmt: skip
        """Write several numbers for one chart: each has a folder of its own, `main_tag_tag`."""
        for tag, value in tag_scalar_dict.items():
            folder = str(Path(self.log_dir) / f"{main_tag.replace('/', '_')}_{tag}")
            if folder not in self._others:
                self._others[folder] = SummaryWriter(folder, flush_secs=self._seconds)
            self._others[folder].add_scalar(main_tag, value, global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Write a text, which is shown as Markdown."""
        self._write(event_files.text(tag, text_string), global_step, walltime)

    def add_histogram(
        self, tag: str, values: Any, global_step: Any = None, bins: Any = 64,
        walltime: float | None = None, max_bins: int | None = None,
    ) -> None:  # fmt: skip
        """Write how values are distributed, which are read: `bins` is their number, or one of
        NumPy's rules ("tensorflow" is 64). ValueError for no values, or NaN."""
        host = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
        host = host.astype(np.float64).reshape(-1)
        if not host.size or not np.isfinite(host).all():
            raise ValueError("add_histogram takes finite values, at least one")
        counts, edges = np.histogram(host, 64 if bins == "tensorflow" else bins)
        message = event_files.histogram(
            tag, (host.min(), host.max()), (host.size, host.sum(), (host * host).sum()),
            edges[1:].tolist(), counts.tolist(),
        )  # fmt: skip
        self._write(message, global_step, walltime)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def flush(self) -> None:
        """Have the files hold all that was added."""
        self._flushed = time.monotonic()
        if self._file is not None:
            self._file.flush()
        for each in self._others.values():
            each.flush()

    def close(self) -> None:
        """Close the files. What is added later opens another one."""
        if self._file is not None:
            self._file.close()
            self._file = None
        for each in self._others.values():
            each.close()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        more = ""
        if name.startswith("add_"):
            more = (
                ": scalars, texts and histograms are written here, and tensorboardX writes others"
            )
        raise AttributeError(f"'SummaryWriter' object has no attribute {name!r}{more}", name=name)
