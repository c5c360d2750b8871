"""`torch.onnx`: models are not exported. Programs import it whether they export or not."""

from __future__ import annotations

from typing import Any, NoReturn


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: no."""
    return False


def export(*arguments: Any, **options: Any) -> NoReturn:
    """RuntimeError: save the state dict, and export with PyTorch, whose modules load it."""
    raise RuntimeError(
        "models are not exported as ONNX: torch.save(model.state_dict(), path) writes a file that "
        "PyTorch loads into the same module, to export it there"
    )
