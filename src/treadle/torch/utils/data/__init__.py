"""`torch.utils.data`: datasets, samplers and loaders of PyTorch's tensors, whose workers are
threads."""

from treadle.core.deferred_imports import exports
from treadle.torch.files import offer
from treadle.torch.lacking import within

NAMES = {
    "treadle.data.workers": "get_worker_info",
    "treadle.torch.utils.data.collating": "default_collate default_convert",
    "treadle.torch.utils.data.datasets": (
        "ChainDataset ConcatDataset Dataset IterableDataset random_split StackDataset Subset "
        "TensorDataset"
    ),
    "treadle.torch.utils.data.distributed": "DistributedSampler",
    "treadle.torch.utils.data.loading": "DataLoader",
    "treadle.torch.utils.data.samplers": (
        "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler "
        "WeightedRandomSampler"
    ),
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "", within("utils.data"))
offer(__name__, "dataloader dataset sampler")
