"""Which of PyTorch's names `treadle.torch` has: for the page of the reference.

python tools/torch_reference.py              # the page, as the documentation has it
python tools/torch_reference.py --collect    # write the list of names, from an installed PyTorch

A name is the same (●), differs as is said (◐), or is not here, with the reason (○). Names that
differ are in `treadle.torch.table.DIFFERENCES`, names that are not here in
`treadle.torch.lacking`; the rest has to be there.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]
NAMES = ROOT / "tools" / "website" / "pytorch_names.txt"

_SPACES = (
    "torch torch.Tensor torch.nn torch.nn.functional torch.nn.init torch.nn.utils "
    "torch.nn.utils.parametrizations torch.nn.utils.rnn torch.optim torch.optim.lr_scheduler "
    "torch.linalg torch.fft torch.special torch.sparse torch.autograd torch.autograd.functional "
    "torch.func "
    "torch.utils.data torch.amp torch.cuda torch.random torch.testing torch.distributions"
)
SPACES = tuple(_SPACES.split())
# What PyTorch's modules have for themselves: other libraries, compilers' types, and the functions
# of one library that its own functions call.
_INTERNAL = re.compile(
    r"cudnn_|miopen_|mkldnn_|fbgemm_|native_|quantized_|sym_|q_|import_|parse_|is_vulkan|"
    r".*_(copy_|increment_nesting|decrement_nesting)$|merge_type|unify_type|"
    r"batch_norm_(backward|elemt|gather|stats|update)|DispatchKey|Tag$|AggregationType|"
    r"fused_moving|choose_qparams|_|norm_except|.*Storage$|has_(lapack|mkl|openmp|spectral)|"
    r"has_torch_function|boolean_dispatch|handle_torch|assert_int|"
    r"(List|Optional|Callable|Any|BroadcastingList.|Sequence|TYPE_CHECKING|TypeVar|ParamSpec|"
    r"Union|Literal|overload|cast|deprecated|Warning|grad_)$"
)
_CLASSES = (
    "Event Generator OutOfMemoryError Size Stream Tensor device dtype finfo iinfo layout "
    "memory_format BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor "
    "HalfTensor IntTensor LongTensor ShortTensor"
)


def _is_kept(space: str, owner: Any, name: str) -> bool:
    import torch

    if _INTERNAL.match(name):
        return False
    value = getattr(owner, name)
    if inspect.ismodule(value):
        return space == "torch" and value.__name__.startswith("torch.")
    module = getattr(value, "__module__", "") or ""
    if isinstance(value, type):
        if name == "Tensor" or hasattr(torch._C, name):  # most are a compiler's
            return name in _CLASSES.split() and space == "torch"
        return module.startswith("torch")
    if space == "torch.Tensor" or isinstance(
        value, (float, torch.dtype, torch.layout, torch.memory_format)
    ):
        return True
    return callable(value) and (not module or module.startswith("torch"))


def collect() -> str:
    """The names, a line each: `space.name`."""
    lines = []
    for space in SPACES:
        owner: Any = importlib.import_module(space.removesuffix(".Tensor"))
        owner = owner.Tensor if space == "torch.Tensor" else owner
        listed = getattr(owner, "__all__", None) if space not in ("torch", "torch.Tensor") else None
        names = listed or [each for each in dir(owner) if not each.startswith("_")]
        kept = sorted(n for n in set(names) if hasattr(owner, n) and _is_kept(space, owner, n))
        lines += [f"{space}: {' '.join(kept)}"]
    return "\n".join(lines) + "\n"


def names() -> dict[str, list[str]]:
    """PyTorch's names by their spaces."""
    found = {}
    for line in NAMES.read_text().splitlines():
        space, _, listed = line.partition(": ")
        found[space] = listed.split()
    return found


def place(space: str) -> Any:
    """The module, or the class of tensors, that has the names of a space; None if there is none."""
    import treadle.torch

    found: Any = treadle.torch
    for part in space.split(".")[1:]:
        try:
            found = getattr(found, part)
        except (AttributeError, ImportError):
            return None
    return found


def main() -> int:
    """Show the page, or write the list."""
    if "--collect" in sys.argv:
        NAMES.write_text(collect())
        return 0
    from tools.website import torch_page

    print(torch_page.text())
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
