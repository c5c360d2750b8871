# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""`torch.cuda`: NVIDIA's cards, and, where a program asks for "cuda" and there is none, another
device that stands in for it (`torch.cuda.set_stand_in`).
"""

from treadle.torch.cuda import amp as amp
from treadle.torch.cuda.cards import can_device_access_peer as can_device_access_peer
from treadle.torch.cuda.cards import current_device as current_device
from treadle.torch.cuda.cards import current_stream as current_stream
from treadle.torch.cuda.cards import default_stream as default_stream
from treadle.torch.cuda.cards import device as device
from treadle.torch.cuda.cards import device_count as device_count
from treadle.torch.cuda.cards import device_of as device_of
from treadle.torch.cuda.cards import empty_cache as empty_cache
from treadle.torch.cuda.cards import get_arch_list as get_arch_list
from treadle.torch.cuda.cards import get_device_capability as get_device_capability
from treadle.torch.cuda.cards import get_device_name as get_device_name
from treadle.torch.cuda.cards import get_device_properties as get_device_properties
from treadle.torch.cuda.cards import init as init
from treadle.torch.cuda.cards import ipc_collect as ipc_collect
from treadle.torch.cuda.cards import is_available as is_available
from treadle.torch.cuda.cards import is_bf16_supported as is_bf16_supported
from treadle.torch.cuda.cards import is_current_stream_capturing as is_current_stream_capturing
from treadle.torch.cuda.cards import is_initialized as is_initialized
from treadle.torch.cuda.cards import max_memory_allocated as max_memory_allocated
from treadle.torch.cuda.cards import max_memory_cached as max_memory_cached
from treadle.torch.cuda.cards import max_memory_reserved as max_memory_reserved
from treadle.torch.cuda.cards import mem_get_info as mem_get_info
from treadle.torch.cuda.cards import memory_allocated as memory_allocated
from treadle.torch.cuda.cards import memory_cached as memory_cached
from treadle.torch.cuda.cards import memory_reserved as memory_reserved
from treadle.torch.cuda.cards import memory_stats as memory_stats
from treadle.torch.cuda.cards import memory_summary as memory_summary
from treadle.torch.cuda.cards import reset_max_memory_allocated as reset_max_memory_allocated
from treadle.torch.cuda.cards import reset_peak_memory_stats as reset_peak_memory_stats
from treadle.torch.cuda.cards import set_device as set_device
from treadle.torch.cuda.cards import set_stream as set_stream
from treadle.torch.cuda.cards import stream as stream
from treadle.torch.cuda.cards import synchronize as synchronize
from treadle.torch.cuda.cards import utilization as utilization
from treadle.torch.cuda.draws import get_rng_state as get_rng_state
from treadle.torch.cuda.draws import get_rng_state_all as get_rng_state_all
from treadle.torch.cuda.draws import initial_seed as initial_seed
from treadle.torch.cuda.draws import manual_seed as manual_seed
from treadle.torch.cuda.draws import manual_seed_all as manual_seed_all
from treadle.torch.cuda.draws import seed as seed
from treadle.torch.cuda.draws import seed_all as seed_all
from treadle.torch.cuda.draws import set_rng_state as set_rng_state
from treadle.torch.cuda.draws import set_rng_state_all as set_rng_state_all
from treadle.torch.cuda.streams import Event as Event
from treadle.torch.cuda.streams import Stream as Stream
from treadle.torch.devices import set_stand_in as set_stand_in
from treadle.torch.errors import OutOfMemoryError as OutOfMemoryError

__all__ = [
    "Event",
    "OutOfMemoryError",
    "Stream",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stand_in",
    "set_stream",
    "stream",
    "synchronize",
    "utilization",
]
