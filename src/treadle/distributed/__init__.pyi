# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`td.distributed`: several processes that compute together, each with a device of its own.

MPI or NCCL move the data. What is here starts processes and ends them, gives tensors to these
libraries in the order of the program, and says what is wrong when a process is missing.
"""

from treadle.distributed import ray as ray
from treadle.distributed.arrays.mesh import Mesh as Mesh
from treadle.distributed.arrays.sharded import ShardedTensor as ShardedTensor
from treadle.distributed.arrays.sharded import from_pieces as from_pieces
from treadle.distributed.arrays.traffic import explain as explain
from treadle.distributed.collectives import all_gather as all_gather
from treadle.distributed.collectives import all_reduce as all_reduce
from treadle.distributed.collectives import all_to_all as all_to_all
from treadle.distributed.collectives import barrier as barrier
from treadle.distributed.collectives import broadcast as broadcast
from treadle.distributed.collectives import reduce_scatter as reduce_scatter
from treadle.distributed.data_parallel import DataParallel as DataParallel
from treadle.distributed.data_parallel import average_gradients as average_gradients
from treadle.distributed.group import backend as backend
from treadle.distributed.group import init as init
from treadle.distributed.group import is_initialized as is_initialized
from treadle.distributed.group import local_rank as local_rank
from treadle.distributed.group import new_group as new_group
from treadle.distributed.group import rank as rank
from treadle.distributed.group import size as size
from treadle.distributed.layers.attention import (
    ParallelMultiheadAttention as ParallelMultiheadAttention,
)
from treadle.distributed.layers.attention import sum_gradients as sum_gradients
from treadle.distributed.layers.attention import tensor_parallel as tensor_parallel
from treadle.distributed.layers.batch_norm import SyncBatchNorm as SyncBatchNorm
from treadle.distributed.layers.batch_norm import convert_sync_batchnorm as convert_sync_batchnorm
from treadle.distributed.layers.divided import ColumnParallelLinear as ColumnParallelLinear
from treadle.distributed.layers.divided import RowParallelLinear as RowParallelLinear
from treadle.distributed.layers.divided import VocabParallelEmbedding as VocabParallelEmbedding
from treadle.distributed.layers.divided import (
    vocab_parallel_cross_entropy as vocab_parallel_cross_entropy,
)
from treadle.distributed.layers.divided import whole_state_dict as whole_state_dict
from treadle.distributed.layers.parts import join as join
from treadle.distributed.layers.parts import split as split
from treadle.distributed.layers.pipeline import Pipeline as Pipeline
from treadle.distributed.members import Group as Group
from treadle.distributed.messages import recv as recv
from treadle.distributed.messages import send as send
from treadle.distributed.sampler import DistributedIterable as DistributedIterable
from treadle.distributed.sampler import DistributedSampler as DistributedSampler
from treadle.distributed.sharding.checkpoints import load_checkpoint as load_checkpoint
from treadle.distributed.sharding.checkpoints import save_checkpoint as save_checkpoint
from treadle.distributed.sharding.sharded import Sharded as Sharded
from treadle.distributed.traces import save_profile as save_profile

__all__ = [
    "ColumnParallelLinear",
    "DataParallel",
    "DistributedIterable",
    "DistributedSampler",
    "Group",
    "Mesh",
    "ParallelMultiheadAttention",
    "Pipeline",
    "RowParallelLinear",
    "Sharded",
    "ShardedTensor",
    "SyncBatchNorm",
    "VocabParallelEmbedding",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "average_gradients",
    "backend",
    "barrier",
    "broadcast",
    "convert_sync_batchnorm",
    "explain",
    "from_pieces",
    "init",
    "is_initialized",
    "join",
    "load_checkpoint",
    "local_rank",
    "new_group",
    "rank",
    "ray",
    "recv",
    "reduce_scatter",
    "save_checkpoint",
    "save_profile",
    "send",
    "size",
    "split",
    "sum_gradients",
    "tensor_parallel",
    "vocab_parallel_cross_entropy",
    "whole_state_dict",
]
