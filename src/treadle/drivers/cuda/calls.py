"""How the driver is called: small functions in machine code around its own.

Each makes the device's context current in the calling thread if it is not, calls, and leaves the
thread as it was; so any thread may use any device, and other libraries find their own context
where they left it. Compiled, that costs some tens of nanoseconds; a launch is one call from Python
instead of the conversion of eleven arguments and two arrays.

    place    context, keep, cuCtxGetCurrent, cuCtxSetCurrent, cuLaunchKernel, cuEventRecord,
             cuMemcpyDtoHAsync, cuStreamSynchronize, stream, event, the events before and after:
             twelve words, for each stream
    record   function, bytes of parameters (8 each); grid, block (3 of 4 each), shared bytes (4)

Without llvmlite the same functions exist in Python (`calls_in_python`).

With `keep` a thread that had no context keeps the device's: other libraries would choose the same
one for it.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from treadle.core.once import once
from treadle.drivers.cuda import calls_in_python
from treadle.drivers.cuda.library import Library

pack_record = struct.Struct("<QQ7I4x").pack
_EVENT, _BEFORE, _AFTER, _WORDS = 9, 10, 11, 12  # of a place
_MOST_ARGUMENTS, _FEW_ARGUMENTS = 8, 4

# In C:
#   enter(place, old): *old = 0; cuCtxGetCurrent(old); return *old == context ? 0 : set(context)
#   leave(place, old): if (old != context && !(old == 0 && keep)) set(old)
#   launch(place, record, parameters): if (before) cuEventRecord; cuLaunchKernel;
#     if (event) cuEventRecord; if (after) cuEventRecord; before = after = 0
#   read(place, target, source, size): cuMemcpyDtoHAsync; cuStreamSynchronize
#   call(place, function, a, … h): function(a, … h), which ignores those that it does not have;
#   call_few: the same with four
_ASSEMBLY = """
define private i32 @enter(ptr %place, ptr %old) {
  store ptr null, ptr %old
  %get.at = getelementptr i64, ptr %place, i64 2
  %get = load ptr, ptr %get.at
  %ignored = call i32 %get(ptr %old)
  %context = load ptr, ptr %place
  %current = load ptr, ptr %old
  %same = icmp eq ptr %current, %context
  br i1 %same, label %done, label %set
set:
  %set.at = getelementptr i64, ptr %place, i64 3
  %setter = load ptr, ptr %set.at
  %code = call i32 %setter(ptr %context)
  ret i32 %code
done:
  ret i32 0
}

define private void @leave(ptr %place, ptr %old) {
  %context = load ptr, ptr %place
  %current = load ptr, ptr %old
  %same = icmp eq ptr %current, %context
  br i1 %same, label %done, label %other
other:
  %keep.at = getelementptr i64, ptr %place, i64 1
  %keep = load i64, ptr %keep.at
  %kept = icmp ne i64 %keep, 0
  %none = icmp eq ptr %current, null
  %stay = and i1 %kept, %none
  br i1 %stay, label %done, label %back
back:
  %set.at = getelementptr i64, ptr %place, i64 3
  %setter = load ptr, ptr %set.at
  %ignored = call i32 %setter(ptr %current)
  br label %done
done:
  ret void
}

define private i32 @mark_once(ptr %place, i64 %word) {
  %event.at = getelementptr i64, ptr %place, i64 %word
  %event = load ptr, ptr %event.at
  %none = icmp eq ptr %event, null
  br i1 %none, label %done, label %mark
mark:
  store ptr null, ptr %event.at
  %stream.at = getelementptr i64, ptr %place, i64 8
  %stream = load ptr, ptr %stream.at
  %record.at = getelementptr i64, ptr %place, i64 5
  %recorder = load ptr, ptr %record.at
  %marked = call i32 %recorder(ptr %event, ptr %stream)
  ret i32 %marked
done:
  ret i32 0
}

define i32 @launch(ptr %place, ptr %record, ptr %parameters) {
  %old = alloca ptr
  %stream.at = getelementptr i64, ptr %place, i64 8
  %stream = load ptr, ptr %stream.at
  %event.at = getelementptr i64, ptr %place, i64 9
  %event = load ptr, ptr %event.at
  %size = alloca i64
  %extra = alloca [5 x ptr]
  %entered = call i32 @enter(ptr %place, ptr %old)
  %ready = icmp eq i32 %entered, 0
  br i1 %ready, label %go, label %refused
go:
  %function = load ptr, ptr %record
  %size.at = getelementptr i8, ptr %record, i64 8
  %bytes = load i64, ptr %size.at, align 1
  store i64 %bytes, ptr %size
  store ptr inttoptr (i64 1 to ptr), ptr %extra
  %extra.1 = getelementptr ptr, ptr %extra, i64 1
  store ptr %parameters, ptr %extra.1
  %extra.2 = getelementptr ptr, ptr %extra, i64 2
  store ptr inttoptr (i64 2 to ptr), ptr %extra.2
  %extra.3 = getelementptr ptr, ptr %extra, i64 3
  store ptr %size, ptr %extra.3
  %extra.4 = getelementptr ptr, ptr %extra, i64 4
  store ptr null, ptr %extra.4
  %none = icmp eq i64 %bytes, 0
  %given = select i1 %none, ptr null, ptr %extra
  %gx.at = getelementptr i8, ptr %record, i64 16
  %gx = load i32, ptr %gx.at, align 1
  %gy.at = getelementptr i8, ptr %record, i64 20
  %gy = load i32, ptr %gy.at, align 1
  %gz.at = getelementptr i8, ptr %record, i64 24
  %gz = load i32, ptr %gz.at, align 1
  %bx.at = getelementptr i8, ptr %record, i64 28
  %bx = load i32, ptr %bx.at, align 1
  %by.at = getelementptr i8, ptr %record, i64 32
  %by = load i32, ptr %by.at, align 1
  %bz.at = getelementptr i8, ptr %record, i64 36
  %bz = load i32, ptr %bz.at, align 1
  %shared.at = getelementptr i8, ptr %record, i64 40
  %shared = load i32, ptr %shared.at, align 1
  %launch.at = getelementptr i64, ptr %place, i64 4
  %launcher = load ptr, ptr %launch.at
  %before = call i32 @mark_once(ptr %place, i64 10)
  %code = call i32 %launcher(
      ptr %function, i32 %gx, i32 %gy, i32 %gz, i32 %bx, i32 %by, i32 %bz, i32 %shared,
      ptr %stream, ptr null, ptr %given)
  %launched = icmp eq i32 %code, 0
  %marking = icmp ne ptr %event, null
  %both = and i1 %launched, %marking
  br i1 %both, label %mark, label %end
mark:
  %record.at = getelementptr i64, ptr %place, i64 5
  %recorder = load ptr, ptr %record.at
  %marked = call i32 %recorder(ptr %event, ptr %stream)
  br label %end
end:
  %result = phi i32 [ %code, %go ], [ %marked, %mark ]
  %after = call i32 @mark_once(ptr %place, i64 11)
  call void @leave(ptr %place, ptr %old)
  ret i32 %result
refused:
  ret i32 %entered
}

define i32 @read(ptr %place, ptr %target, i64 %source, i64 %size) {
  %old = alloca ptr
  %stream.at = getelementptr i64, ptr %place, i64 8
  %stream = load ptr, ptr %stream.at
  %entered = call i32 @enter(ptr %place, ptr %old)
  %ready = icmp eq i32 %entered, 0
  br i1 %ready, label %go, label %refused
go:
  %copy.at = getelementptr i64, ptr %place, i64 6
  %copier = load ptr, ptr %copy.at
  %copied = call i32 %copier(ptr %target, i64 %source, i64 %size, ptr %stream)
  %started = icmp eq i32 %copied, 0
  br i1 %started, label %wait, label %end
wait:
  %wait.at = getelementptr i64, ptr %place, i64 7
  %waiter = load ptr, ptr %wait.at
  %waited = call i32 %waiter(ptr %stream)
  br label %end
end:
  %result = phi i32 [ %copied, %go ], [ %waited, %wait ]
  call void @leave(ptr %place, ptr %old)
  ret i32 %result
refused:
  ret i32 %entered
}

define i32 @call(ptr %place, ptr %function, i64 %a, i64 %b, i64 %c, i64 %d,
                 i64 %e, i64 %f, i64 %g, i64 %h) {
  %old = alloca ptr
  %entered = call i32 @enter(ptr %place, ptr %old)
  %ready = icmp eq i32 %entered, 0
  br i1 %ready, label %go, label %refused
go:
  %code = call i32 %function(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h)
  call void @leave(ptr %place, ptr %old)
  ret i32 %code
refused:
  ret i32 %entered
}

define i32 @call_few(ptr %place, ptr %function, i64 %a, i64 %b, i64 %c, i64 %d) {
  %code = call i32 @call(ptr %place, ptr %function, i64 %a, i64 %b, i64 %c, i64 %d,
                         i64 0, i64 0, i64 0, i64 0)
  ret i32 %code
}
"""


class Place:
    """What the functions know of a context, and of one stream in it."""

    __slots__ = ("_words", "address")

    def __init__(self, words: tuple[int, ...], stream: int) -> None:
        self._words = (ctypes.c_uint64 * _WORDS)(*words, stream)
        self.address = ctypes.addressof(self._words)

    def mark(self, event: int) -> None:
        """Record this event after each launch from here on; 0 for none."""
        self._words[_EVENT] = event

    def mark_around(self, before: int, after: int) -> None:
        """Record these events right before and after the next launch; 0 for none."""
        self._words[_BEFORE], self._words[_AFTER] = before, after

    @property
    def around(self) -> bool:
        """Whether the launch that `mark_around` waits for has not come."""
        return bool(self._words[_AFTER])


class Calls:
    """The driver's functions, called within one context."""

    def __init__(self, library: Library, context: int, *, keep: bool) -> None:
        _, self.launch, self.read, self._call, self._call_few = _compiled()
        # launch: (place, record, parameters) -> code
        # read: (place, host address, device address, size) -> code
        self._addresses = dict(library.addresses())
        self._words = (context, int(keep), *(self._addresses[name] for name in _PLACE_FUNCTIONS))
        self._place = self.place(0)

    def place(self, stream: int) -> Place:
        """The place of a stream."""
        return Place(self._words, stream)

    def has(self, name: str) -> bool:
        """Whether this driver has a function."""
        return bool(self._addresses[name])

    def __call__(self, name: str, *arguments: int) -> int:
        """Call a function of the driver with integers and addresses; its code."""
        count = len(arguments)
        call, most = (
            (self._call_few, _FEW_ARGUMENTS)
            if count <= _FEW_ARGUMENTS
            else (self._call, _MOST_ARGUMENTS)
        )
        rest = _ZEROS[most - count]
        return call(self._place.address, self._addresses[name], *arguments, *rest)  # type: ignore[no-any-return]


_PLACE_FUNCTIONS = (
    "cuCtxGetCurrent", "cuCtxSetCurrent", "cuLaunchKernel", "cuEventRecord", "cuMemcpyDtoHAsync",
    "cuStreamSynchronize",
)  # fmt: skip
_ZEROS = tuple((0,) * count for count in range(_MOST_ARGUMENTS + 1))


@once
def _compiled() -> tuple[Any, ...]:
    """The machine code's owner, and its functions for Python. They run without the GIL."""
    try:
        from llvmlite import binding
    except ImportError:
        plain = calls_in_python
        return None, plain.launch, plain.read, plain.call, plain.call
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(_ASSEMBLY)
    machine = binding.Target.from_default_triple().create_target_machine(opt=2)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    # Pointers for all words: ctypes converts those in half the time of its integers.
    word, data = ctypes.c_void_p, ctypes.c_char_p
    types = {
        "launch": (word, data, data),
        "read": (word,) * 4,
        "call": (word,) * (2 + _MOST_ARGUMENTS),
        "call_few": (word,) * (2 + _FEW_ARGUMENTS),
    }
    functions = (
        ctypes.CFUNCTYPE(ctypes.c_int, *taken)(engine.get_function_address(name))
        for name, taken in types.items()
    )
    return engine, *functions
