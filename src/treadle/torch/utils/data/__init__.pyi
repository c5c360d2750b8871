# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.utils.data`: datasets, samplers and loaders of PyTorch's tensors, whose workers are
threads.
"""

from treadle.data.workers import get_worker_info as get_worker_info
from treadle.torch.utils.data.collating import default_collate as default_collate
from treadle.torch.utils.data.collating import default_convert as default_convert
from treadle.torch.utils.data.datasets import ChainDataset as ChainDataset
from treadle.torch.utils.data.datasets import ConcatDataset as ConcatDataset
from treadle.torch.utils.data.datasets import Dataset as Dataset
from treadle.torch.utils.data.datasets import IterableDataset as IterableDataset
from treadle.torch.utils.data.datasets import StackDataset as StackDataset
from treadle.torch.utils.data.datasets import Subset as Subset
from treadle.torch.utils.data.datasets import TensorDataset as TensorDataset
from treadle.torch.utils.data.datasets import random_split as random_split
from treadle.torch.utils.data.distributed import DistributedSampler as DistributedSampler
from treadle.torch.utils.data.loading import DataLoader as DataLoader
from treadle.torch.utils.data.samplers import BatchSampler as BatchSampler
from treadle.torch.utils.data.samplers import RandomSampler as RandomSampler
from treadle.torch.utils.data.samplers import Sampler as Sampler
from treadle.torch.utils.data.samplers import SequentialSampler as SequentialSampler
from treadle.torch.utils.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from treadle.torch.utils.data.samplers import WeightedRandomSampler as WeightedRandomSampler

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
