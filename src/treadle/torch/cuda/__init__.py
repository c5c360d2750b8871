"""`torch.cuda`: NVIDIA's cards, and, where a program asks for "cuda" and there is none, another
device that stands in for it (`torch.cuda.set_stand_in`)."""

from treadle.core.deferred_imports import exports
from treadle.torch.lacking import within

NAMES = {
    "treadle.torch.cuda.cards": (
        "can_device_access_peer current_device current_stream default_stream device "
        "device_count device_of empty_cache get_arch_list get_device_capability get_device_name "
        "get_device_properties init ipc_collect is_available is_bf16_supported "
        "is_current_stream_capturing is_initialized max_memory_allocated max_memory_cached "
        "max_memory_reserved mem_get_info memory_allocated memory_cached memory_reserved "
        "memory_stats memory_summary reset_max_memory_allocated "
        "reset_peak_memory_stats set_device set_stream stream synchronize utilization"
    ),
    "treadle.torch.cuda.draws": (
        "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all "
        "set_rng_state set_rng_state_all"
    ),
    "treadle.torch.cuda.streams": "Event Stream",
    "treadle.torch.devices": "set_stand_in",
    "treadle.torch.errors": "OutOfMemoryError",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES, "amp", within("cuda"))
