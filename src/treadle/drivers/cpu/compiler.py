"""LLVM assembly to machine code in this process, through llvmlite (loaded at first use)."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from treadle.core import forks
from treadle.core.errors import CompileError, refused_by_compiler
from treadle.core.once import once
from treadle.drivers.cpu.byte_dots import with_instructions
from treadle.drivers.cpu.halves import with_conversions
from treadle.drivers.cpu.llvm_calls import Calls, Module

# void entry(ptr bindings, ptr parameters, ptr grid, i64 first, i64 last)
ENTRY = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Machine code in memory. It stays there as long as `library` lives."""

    addresses: dict[str, int]
    library: Any


class Compiler:
    """The host's code generator and linker."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm
        from llvmlite.binding import ffi

        # llvmlite's own calls take a lock of its own, also when machine code is let go of.
        inner = getattr(getattr(ffi.lib, "_lock", None), "_lock", None)
        if inner is not None:
            forks.adopt(inner)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._llvm = llvm
        self._lock = forks.lock()
        self._names = itertools.count()
        self.processor = str(llvm.get_host_cpu_name())
        self.features = _features(llvm)
        self.triple = str(llvm.get_process_triple())
        self._target = llvm.Target.from_triple(self.triple)
        self._calls = Calls()
        self._idle: list[tuple[Any, Any]] = []
        machine = self._machine(self.features)
        self._layout = str(machine.target_data)
        self._jit = llvm.create_lljit_compiler(machine, use_jit_link=True)

    def identity(self) -> tuple[str, ...]:
        """What machine code depends on beside its source."""
        return self.triple, self.processor, self.features, self.version

    @property
    def version(self) -> str:
        """LLVM's version and llvmlite's."""
        import llvmlite

        numbers = ".".join(map(str, self._llvm.llvm_version_info))
        return f"LLVM {numbers} (llvmlite {llvmlite.__version__})"

    @property
    def vector_bytes(self) -> int:
        """The width of the processor's vectors."""
        if "+avx512f" in self.features:
            return 64
        return 32 if "+avx" in self.features else 16

    def compile_object(self, source: str, name: str) -> bytes:
        """Optimized machine code of a module, as an object file. CompileError has LLVM's reason
        and the module. Several threads may compile at the same time."""
        source = with_conversions(source, self.triple, self.features)
        chosen = with_instructions(source, self.triple, self.features)
        try:
            module = Module(self._calls, chosen)
        except RuntimeError as error:
            raise refused_by_compiler("LLVM", name, str(error), chosen) from None
        return self._emit(module, source, as_object=True)

    def assembly(self, source: str) -> str:
        """The machine's assembly of a module, for people."""
        source = with_conversions(source, self.triple, self.features)
        chosen = with_instructions(source, self.triple, self.features)
        return self._emit(Module(self._calls, chosen), source, as_object=False).decode()

    def _emit(self, module: Module, source: str, as_object: bool) -> bytes:
        """Machine code of a module, which is closed; `source` is its text, with no instructions
        but those that all processors have."""
        with closing(module), self._machines() as (machine, without_vl):
            module.set_target(self.triple, self._layout)
            optimize(module, machine, source)
            # Without AVX-512VL where LLVM is wrong with it (`codegen.faults`).
            if "+avx512vl" in self.features and takes_bits_of_moved_conditions(module.text()):
                features = self.features.replace("+avx512vl", "-avx512vl")
                chosen = with_instructions(source, self.triple, features)
                with closing(Module(self._calls, chosen)) as other:
                    other.set_target(self.triple, self._layout)
                    optimize(other, without_vl, source)
                    return other.emit(without_vl, as_object)
            return module.emit(machine, as_object)

    @contextmanager
    def _machines(self) -> Iterator[tuple[Any, Any]]:
        """Code generators for this thread: with all of the processor's features, and without
        AVX-512VL."""
        try:
            found = self._idle.pop()
        except IndexError:
            found = self._machine(self.features), self._machine(f"{self.features},-avx512vl")
        try:
            yield found
        finally:
            self._idle.append(found)

    def _machine(self, features: str) -> Any:
        return self._target.create_target_machine(
            cpu=self.processor, features=features, opt=2, reloc="pic", codemodel="small"
        )

    def load_object(self, image: bytes, symbols: tuple[str, ...]) -> Loaded:
        """Link an object file into the process; the addresses of what it defines."""
        builder = self._llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        with self._lock:
            try:
                library = builder.link(self._jit, f"treadle{next(self._names)}")
            except RuntimeError as error:
                raise CompileError(f"machine code could not be loaded: {error}") from None
        return Loaded({symbol: library[symbol] for symbol in symbols}, library)


_AS_BITS = re.compile(r"bitcast <\d+ x i1>")
_MOVED = re.compile(
    r"shufflevector <\d+ x i1>"
    r"|select <\d+ x i1> (?:%\S+|<[^>]*>), <\d+ x i1> %\S+, <\d+ x i1> [%<]"
)


def takes_bits_of_moved_conditions(module: str) -> bool:
    """Whether conditions of lanes are shuffled or blended, and their bits then used as a number.

    For these LLVM 22 uses `vmovmskps`, which names 16 registers, on any of 32.
    """
    return _AS_BITS.search(module) is not None and _MOVED.search(module) is not None


def optimize(module: Module, machine: Any, source: str) -> None:
    """Run the passes for kernels on a module."""
    from treadle.codegen.llvm import VECTORIZED

    module.optimize(machine, source.startswith(VECTORIZED) and "llvm.loop.unroll" not in source)


def _features(llvm: Any) -> str:
    """The processor's features. Where there are 512-bit vectors we use them: on the processors
    that slowed down for them, kernels bound by memory gained all the same."""
    features = str(llvm.get_host_cpu_features().flatten())
    return features + ",-prefer-256-bit" if "+avx512f" in features else features


@once
def compiler() -> Compiler:
    """The process's compiler, made at first use."""
    return Compiler()
