# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.distributed`: processes that train together, over `td.distributed`.

MPI or NCCL move the data. Functions that write into tensors are PyTorch's; what is written is
waited for when it is read, so a call starts a collective and returns.
"""

from treadle.core.errors import DistributedError as DistributedError
from treadle.torch.distributed import elastic as elastic
from treadle.torch.distributed.collectives import P2POp as P2POp
from treadle.torch.distributed.collectives import all_gather as all_gather
from treadle.torch.distributed.collectives import all_gather_into_tensor as all_gather_into_tensor
from treadle.torch.distributed.collectives import all_reduce as all_reduce
from treadle.torch.distributed.collectives import all_to_all as all_to_all
from treadle.torch.distributed.collectives import all_to_all_single as all_to_all_single
from treadle.torch.distributed.collectives import barrier as barrier
from treadle.torch.distributed.collectives import batch_isend_irecv as batch_isend_irecv
from treadle.torch.distributed.collectives import broadcast as broadcast
from treadle.torch.distributed.collectives import gather as gather
from treadle.torch.distributed.collectives import irecv as irecv
from treadle.torch.distributed.collectives import isend as isend
from treadle.torch.distributed.collectives import monitored_barrier as monitored_barrier
from treadle.torch.distributed.collectives import recv as recv
from treadle.torch.distributed.collectives import reduce as reduce
from treadle.torch.distributed.collectives import reduce_scatter as reduce_scatter
from treadle.torch.distributed.collectives import reduce_scatter_tensor as reduce_scatter_tensor
from treadle.torch.distributed.collectives import scatter as scatter
from treadle.torch.distributed.collectives import send as send
from treadle.torch.distributed.objects import all_gather_object as all_gather_object
from treadle.torch.distributed.objects import broadcast_object_list as broadcast_object_list
from treadle.torch.distributed.objects import gather_object as gather_object
from treadle.torch.distributed.objects import scatter_object_list as scatter_object_list
from treadle.torch.distributed.processes import GroupMember as GroupMember
from treadle.torch.distributed.processes import ProcessGroup as ProcessGroup
from treadle.torch.distributed.processes import destroy_process_group as destroy_process_group
from treadle.torch.distributed.processes import get_backend as get_backend
from treadle.torch.distributed.processes import get_global_rank as get_global_rank
from treadle.torch.distributed.processes import get_group_rank as get_group_rank
from treadle.torch.distributed.processes import get_node_local_rank as get_node_local_rank
from treadle.torch.distributed.processes import get_process_group_ranks as get_process_group_ranks
from treadle.torch.distributed.processes import get_rank as get_rank
from treadle.torch.distributed.processes import get_world_size as get_world_size
from treadle.torch.distributed.processes import group as group
from treadle.torch.distributed.processes import init_process_group as init_process_group
from treadle.torch.distributed.processes import is_available as is_available
from treadle.torch.distributed.processes import is_gloo_available as is_gloo_available
from treadle.torch.distributed.processes import is_initialized as is_initialized
from treadle.torch.distributed.processes import is_mpi_available as is_mpi_available
from treadle.torch.distributed.processes import is_nccl_available as is_nccl_available
from treadle.torch.distributed.processes import is_torchelastic_launched as is_torchelastic_launched
from treadle.torch.distributed.processes import new_group as new_group
from treadle.torch.distributed.processes import (
    new_subgroups_by_enumeration as new_subgroups_by_enumeration,
)
from treadle.torch.distributed.work import ReduceOp as ReduceOp
from treadle.torch.distributed.work import Work as Work

__all__ = [
    "DistributedError",
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "elastic",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups_by_enumeration",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]
