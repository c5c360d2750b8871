"""`td.distributed`: several processes that compute together, each with a device of its own.

MPI or NCCL move the data. What is here starts processes and ends them, gives tensors to these
libraries in the order of the program, and says what is wrong when a process is missing.
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.distributed.arrays.mesh": "Mesh",
    "treadle.distributed.arrays.sharded": "ShardedTensor from_pieces",
    "treadle.distributed.arrays.traffic": "explain",
    "treadle.distributed.collectives": (
        "all_gather all_reduce all_to_all barrier broadcast reduce_scatter"
    ),
    "treadle.distributed.data_parallel": "DataParallel average_gradients",
    "treadle.distributed.group": "backend init is_initialized local_rank new_group rank size",
    "treadle.distributed.layers.attention": (
        "ParallelMultiheadAttention sum_gradients tensor_parallel"
    ),
    "treadle.distributed.layers.batch_norm": "SyncBatchNorm convert_sync_batchnorm",
    "treadle.distributed.layers.divided": (
        "ColumnParallelLinear RowParallelLinear VocabParallelEmbedding "
        "vocab_parallel_cross_entropy whole_state_dict"
    ),
    "treadle.distributed.layers.parts": "join split",
    "treadle.distributed.layers.pipeline": "Pipeline",
    "treadle.distributed.members": "Group",
    "treadle.distributed.messages": "recv send",
    "treadle.distributed.sampler": "DistributedIterable DistributedSampler",
    "treadle.distributed.sharding.checkpoints": "load_checkpoint save_checkpoint",
    "treadle.distributed.sharding.sharded": "Sharded",
    "treadle.distributed.traces": "save_profile",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "ray")
