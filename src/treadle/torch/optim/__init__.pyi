# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.optim`: treadle's optimizers, whose steps are one kernel each, over PyTorch's tensors."""

from treadle.torch.optim import lr_scheduler as lr_scheduler
from treadle.torch.optim import swa_utils as swa_utils
from treadle.torch.optim.optimizer import Optimizer as Optimizer
from treadle.torch.optim.optimizers import ASGD as ASGD
from treadle.torch.optim.optimizers import LBFGS as LBFGS
from treadle.torch.optim.optimizers import SGD as SGD
from treadle.torch.optim.optimizers import Adadelta as Adadelta
from treadle.torch.optim.optimizers import Adafactor as Adafactor
from treadle.torch.optim.optimizers import Adagrad as Adagrad
from treadle.torch.optim.optimizers import Adam as Adam
from treadle.torch.optim.optimizers import Adamax as Adamax
from treadle.torch.optim.optimizers import AdamW as AdamW
from treadle.torch.optim.optimizers import Lion as Lion
from treadle.torch.optim.optimizers import Muon as Muon
from treadle.torch.optim.optimizers import NAdam as NAdam
from treadle.torch.optim.optimizers import RAdam as RAdam
from treadle.torch.optim.optimizers import RMSprop as RMSprop
from treadle.torch.optim.optimizers import Rprop as Rprop
from treadle.torch.optim.optimizers import SparseAdam as SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]
