"""`torch.distributed`: processes that train together, over `td.distributed`.

MPI or NCCL move the data. Functions that write into tensors are PyTorch's; what is written is
waited for when it is read, so a call starts a collective and returns.
"""

from treadle.core.deferred_imports import exports
from treadle.torch.lacking import within

NAMES = {
    "treadle.core.errors": "DistributedError",
    "treadle.torch.distributed.collectives": (
        "P2POp all_gather all_gather_into_tensor all_reduce all_to_all all_to_all_single barrier "
        "batch_isend_irecv broadcast gather irecv isend monitored_barrier recv reduce "
        "reduce_scatter reduce_scatter_tensor scatter send"
    ),
    "treadle.torch.distributed.objects": (
        "all_gather_object broadcast_object_list gather_object scatter_object_list"
    ),
    "treadle.torch.distributed.processes": (
        "GroupMember ProcessGroup destroy_process_group get_backend get_global_rank get_group_rank "
        "get_node_local_rank get_process_group_ranks get_rank get_world_size group "
        "init_process_group is_available is_gloo_available is_initialized is_mpi_available "
        "is_nccl_available is_torchelastic_launched new_group new_subgroups_by_enumeration"
    ),
    "treadle.torch.distributed.work": "ReduceOp Work",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "elastic", within("distributed"))
