"""Training in practice: datasets, loaders that prefetch batches, saved states, progress."""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.data.collate": "default_collate default_convert",
    "treadle.data.datasets": (
        "ConcatDataset Dataset IterableDataset random_split Subset TensorDataset"
    ),
    "treadle.data.loader": "DataLoader",
    "treadle.data.progress_bar": "progress",
    "treadle.data.samplers": (
        "BatchSampler RandomSampler Sampler SequentialSampler SubsetRandomSampler "
        "WeightedRandomSampler"
    ),
    "treadle.data.saving": "load save",
    "treadle.data.workers": "get_worker_info WorkerInfo",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
