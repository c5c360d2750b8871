"""`torch.linalg`: factors, systems, eigenvalues and norms of matrices."""

from treadle.torch.errors import LinAlgError
from treadle.torch.namespaces import namespace

__all__, __getattr__, __dir__ = namespace("linalg")
__all__ += ["LinAlgError"]
