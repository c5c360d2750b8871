"""`torch.optim`: treadle's optimizers, whose steps are one kernel each, over PyTorch's tensors."""

from treadle.core.deferred_imports import exports
from treadle.torch.files import offer

NAMES = {
    "treadle.torch.optim.optimizer": "Optimizer",
    "treadle.torch.optim.optimizers": (
        "Adadelta Adafactor Adagrad Adam Adamax AdamW ASGD LBFGS Lion Muon NAdam RAdam RMSprop "
        "Rprop SGD SparseAdam"
    ),
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "lr_scheduler swa_utils")
offer(
    __name__,
    "adadelta adafactor adagrad adam adamax adamw asgd lbfgs nadam radam rmsprop rprop sgd",
)
