# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Training in practice: datasets, loaders that prefetch batches, saved states, progress."""

from treadle.data.collate import default_collate as default_collate
from treadle.data.collate import default_convert as default_convert
from treadle.data.datasets import ConcatDataset as ConcatDataset
from treadle.data.datasets import Dataset as Dataset
from treadle.data.datasets import IterableDataset as IterableDataset
from treadle.data.datasets import Subset as Subset
from treadle.data.datasets import TensorDataset as TensorDataset
from treadle.data.datasets import random_split as random_split
from treadle.data.loader import DataLoader as DataLoader
from treadle.data.progress_bar import progress as progress
from treadle.data.samplers import BatchSampler as BatchSampler
from treadle.data.samplers import RandomSampler as RandomSampler
from treadle.data.samplers import Sampler as Sampler
from treadle.data.samplers import SequentialSampler as SequentialSampler
from treadle.data.samplers import SubsetRandomSampler as SubsetRandomSampler
from treadle.data.samplers import WeightedRandomSampler as WeightedRandomSampler
from treadle.data.saving import load as load
from treadle.data.saving import save as save
from treadle.data.workers import WorkerInfo as WorkerInfo
from treadle.data.workers import get_worker_info as get_worker_info

__all__ = [
    "BatchSampler",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "load",
    "progress",
    "random_split",
    "save",
]
