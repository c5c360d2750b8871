"""Tables of learned rows."""

from __future__ import annotations

from typing import Any, TypeVar

from treadle.core.errors import ShapeError
from treadle.graph.history import recorded
from treadle.nn import init
from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.tensor.annotations import ArrayLike, DeviceLike, DTypeLike
from treadle.tensor.creation import asarray, empty
from treadle.tensor.functional import embeddings
from treadle.tensor.tensor import Tensor

Own = TypeVar("Own", bound="_Table")


class _Table(Module):
    """What both kinds have in common."""

    weight: Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        weight: Any,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(
                    f"{type(self).__name__}: padding_idx={padding_idx} is not a row of a table of "
                    f"{num_embeddings}"
                )
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        shape = (num_embeddings, embedding_dim)
        if weight is None:
            self.weight = Parameter(empty(shape, dtype=dtype, device=device))
            self.reset_parameters()
        else:
            given = asarray(weight, dtype=dtype, device=device)
            if given.shape != shape:
                raise ShapeError(
                    f"{type(self).__name__}: the weight given has shape {given.shape}, not {shape}"
                )
            self.weight = Parameter(given)

    def reset_parameters(self) -> None:
        """Draw the rows anew, normal; the one of `padding_idx` is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with recorded(False):
                self.weight.detach()[self.padding_idx] = 0

    @classmethod
    def from_pretrained(
        cls: type[Own], embeddings: Any, freeze: bool = True, **options: Any
    ) -> Own:
        """A module with these rows, which does not learn unless `freeze` is False.

        >>> import treadle as td
        >>> layer = td.nn.Embedding.from_pretrained(td.eye(3, device="cpu"))
        >>> layer(td.asarray([2], device="cpu")).tolist()
        [[0.0, 0.0, 1.0]]
        """
        table = embeddings if isinstance(embeddings, Tensor) else asarray(embeddings)
        if table.ndim != 2:
            raise ShapeError(f"a table has the shape (rows, columns), not {table.shape}")
        made = cls(*table.shape, _weight=table, **options)  # type: ignore[call-arg]
        made.weight.requires_grad_(not freeze)
        return made


class Embedding(_Table):
    """Rows of a table of shape (num_embeddings, embedding_dim), looked up by integers of any shape.

    The row `padding_idx` gets no gradient. With `max_norm`, looked-up rows with a greater norm are
    first scaled down to it, in the table.

    >>> import treadle as td
    >>> layer = td.nn.Embedding(10, 3, device="cpu")
    >>> layer(td.asarray([[1, 2], [4, 5]], device="cpu")).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: ArrayLike | None = None,
        _freeze: bool = False,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)
        self.weight.requires_grad_(not _freeze)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

    def forward(self, input: ArrayLike) -> Tensor:
        """The rows: the shape of the input, and behind it embedding_dim."""
        return embeddings.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """The table's shape, and what is not as usual."""
        return _described(self, ("padding_idx", *_NAMED, "sparse"))


class EmbeddingBag(_Table):
    """The sum, mean or maximum (`mode`) of several rows of a table; see
    `td.nn.functional.embedding_bag`.

    >>> import treadle as td
    >>> bag = td.nn.EmbeddingBag(10, 3, device="cpu")
    >>> bag(td.asarray([[1, 2], [3, 4]], device="cpu")).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: ArrayLike | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self,
        input: ArrayLike,
        offsets: ArrayLike | None = None,
        per_sample_weights: ArrayLike | None = None,
    ) -> Tensor:
        """A row for each bag."""
        return embeddings.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """The table's shape, the mode, and what is not as usual."""
        shown = [_described(self, _NAMED), f"mode={self.mode!r}"]
        if self.padding_idx is not None:
            shown.append(f"padding_idx={self.padding_idx}")
        return ", ".join(shown)


_NAMED = ("max_norm", "norm_type", "scale_grad_by_freq")
_USUAL = {
    "padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False,
    "sparse": False,
}  # fmt: skip


def _described(module: Any, names: tuple[str, ...]) -> str:
    values = {name: getattr(module, name) for name in names}
    unusual = [f"{name}={value}" for name, value in values.items() if value != _USUAL[name]]
    return ", ".join([str(module.num_embeddings), str(module.embedding_dim), *unusual])
