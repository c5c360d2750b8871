"""LLVM's functions in llvmlite's library, called without llvmlite's lock.

llvmlite lets one thread at a time into LLVM, as its own users share one context. LLVM itself works
for several threads at once as long as each has its own context and target machine, which is how
these functions are used. What takes long releases Python's lock; what does not keeps it, because
each release may cost a thread milliseconds until it has the lock again, while another one runs
Python code.
"""

from __future__ import annotations

import ctypes
from typing import Any

_LONG = (
    "ParseAssembly", "VerifyModule", "RunNewModulePassManager", "TargetMachineEmitToMemory",
)  # fmt: skip
_SHORT = (
    "ContextCreate", "ContextDispose", "DisposeModule", "SetTarget", "SetDataLayout",
    "PrintModuleToString", "DisposeString", "GetBufferStart", "GetBufferSize",
    "DisposeMemoryBuffer", "CreatePipelineTuningOptions", "DisposePipelineTuningOptions",
    "PTOSetLoopVectorization", "PTOSetSLPVectorization", "PTOSetLoopInterleaving",
    "PTOSetLoopUnrolling", "CreatePassBuilder", "DisposePassBuilder",
    "buildPerModuleDefaultPipeline", "CreateNewModulePassManager", "DisposeNewModulePassManger",
    "module_AddAlwaysInlinerPass", "module_AddSROAPass", "module_AddSimplifyCFGPass",
    "module_AddInstCombinePass", "module_AddLoopRotatePass",
)  # fmt: skip
_SPEED_LEVEL = 3


class Calls:
    """The functions by their names in llvmlite, without its prefix."""

    def __init__(self) -> None:
        from llvmlite.binding import ffi

        self._functions: dict[str, Any] = {}
        for names, library in (
            (_LONG, ctypes.CDLL(ffi.lib._name)),
            (_SHORT, ctypes.PyDLL(ffi.lib._name)),
        ):
            for name in names:
                declared = getattr(ffi.lib, f"LLVMPY_{name}")
                function = library[f"LLVMPY_{name}"]  # another one at each look-up
                if declared.argtypes is not None:
                    function.argtypes = declared.argtypes
                function.restype = declared.restype
                self._functions[name] = function

    def __getattr__(self, name: str) -> Any:
        return self._functions[name]


class Module:
    """A module in a context of its own. Close it."""

    def __init__(self, calls: Calls, source: str) -> None:
        """RuntimeError has LLVM's reason if the source is not valid."""
        self._calls = calls
        self.pointer: Any = None
        self._context = calls.ContextCreate()
        reason = ctypes.c_char_p()
        try:
            pointer = calls.ParseAssembly(self._context, source.encode(), ctypes.byref(reason))
            if pointer:
                self.pointer = pointer
            if reason.value is not None or not pointer:
                raise RuntimeError(f"LLVM IR parsing error\n{_taken(calls, reason)}")
            if calls.VerifyModule(pointer, ctypes.byref(reason)):
                raise RuntimeError(_taken(calls, reason))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the module's memory back."""
        if self.pointer is not None:
            self._calls.DisposeModule(self.pointer)
            self.pointer = None
        if self._context is not None:
            self._calls.ContextDispose(self._context)
            self._context = None

    def set_target(self, triple: str, layout: str) -> None:
        """What machine the module is for."""
        self._calls.SetTarget(self.pointer, triple.encode())
        self._calls.SetDataLayout(self.pointer, layout.encode())

    def optimize(self, machine: Any, vectorized: bool) -> None:
        """Run the passes for kernels on the module.

        What the printer vectorized needs its variables in registers and a clean up: a sixth of the
        time that LLVM's own list takes, which makes it no faster. The other modules get that list,
        as they need LLVM's vectorizer; unrolling and interleaving are left to what a kernel asks
        for, because they double the time once more.
        """
        calls = self._calls
        options = calls.CreatePipelineTuningOptions(_SPEED_LEVEL)
        calls.PTOSetLoopVectorization(options, True)
        calls.PTOSetSLPVectorization(options, True)
        calls.PTOSetLoopInterleaving(options, False)
        calls.PTOSetLoopUnrolling(options, False)
        builder = calls.CreatePassBuilder(machine, options)
        if vectorized:
            passes = calls.CreateNewModulePassManager()
            calls.module_AddAlwaysInlinerPass(passes)
            calls.module_AddSROAPass(passes)
            calls.module_AddSimplifyCFGPass(passes)
            calls.module_AddInstCombinePass(passes)
            calls.module_AddLoopRotatePass(passes)
            calls.module_AddInstCombinePass(passes)
            calls.module_AddSimplifyCFGPass(passes)
        else:
            passes = calls.buildPerModuleDefaultPipeline(builder, _SPEED_LEVEL)
        calls.RunNewModulePassManager(passes, self.pointer, builder)
        calls.DisposeNewModulePassManger(passes)
        calls.DisposePassBuilder(builder)
        calls.DisposePipelineTuningOptions(options)

    def emit(self, machine: Any, as_object: bool) -> bytes:
        """Machine code, or assembly for people. RuntimeError has LLVM's reason."""
        calls = self._calls
        reason = ctypes.c_char_p()
        memory = calls.TargetMachineEmitToMemory(
            machine, self.pointer, int(as_object), ctypes.byref(reason)
        )
        if not memory:
            raise RuntimeError(_taken(calls, reason))
        try:
            return ctypes.string_at(calls.GetBufferStart(memory), calls.GetBufferSize(memory))
        finally:
            calls.DisposeMemoryBuffer(memory)

    def text(self) -> str:
        """The module as LLVM assembly."""
        text = ctypes.c_char_p()
        self._calls.PrintModuleToString(self.pointer, ctypes.byref(text))
        return _taken(self._calls, text)


def _taken(calls: Calls, text: ctypes.c_char_p) -> str:
    """A text of LLVM's, which is then freed."""
    if text.value is None:
        return ""
    words = text.value.decode(errors="replace")
    calls.DisposeString(text)
    return words
