"""LLVM assembly to machine code in this process, through llvmlite (loaded at first use)."""

from __future__ import annotations

import ctypes
import itertools
import re
from dataclasses import dataclass
from typing import Any

from treadle.core import forks
from treadle.core.errors import CompileError, refused_by_compiler
from treadle.core.once import once
from treadle.drivers.cpu.halves import with_conversions

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
    """The host's code generator and linker. One thread at a time uses it."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm
        from llvmlite.binding import ffi

        # Every call of llvmlite's takes a lock of its own, also when machine code is let go of.
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
        target = llvm.Target.from_triple(self.triple)
        self._machine, self._without_vl = (
            target.create_target_machine(
                cpu=self.processor, features=features, opt=2, reloc="pic", codemodel="small"
            )
            for features in (self.features, f"{self.features},-avx512vl")
        )
        self._jit = llvm.create_lljit_compiler(self._machine, use_jit_link=True)

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
        and the module."""
        llvm = self._llvm
        source = with_conversions(source, self.triple, self.features)
        with self._lock:
            try:
                module = llvm.parse_assembly(source)
                module.verify()
            except RuntimeError as error:
                raise refused_by_compiler("LLVM", name, str(error), source) from None
            module.triple = self.triple
            module.data_layout = str(self._machine.target_data)
            optimize(llvm, self._machine, module, source)
            return bytes(self._machine_for(module).emit_object(module))

    def assembly(self, source: str) -> str:
        """The machine's assembly of a module, for people."""
        llvm = self._llvm
        with self._lock:
            module = llvm.parse_assembly(source)
            module.triple = self.triple
            module.data_layout = str(self._machine.target_data)
            optimize(llvm, self._machine, module, source)
            return str(self._machine_for(module).emit_assembly(module))

    def _machine_for(self, module: Any) -> Any:
        """The code generator for an optimized module: without AVX-512VL where LLVM is wrong with
        it (`codegen.faults`)."""
        if "+avx512vl" in self.features and takes_bits_of_moved_conditions(str(module)):
            return self._without_vl
        return self._machine

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


def optimize(llvm: Any, machine: Any, module: Any, source: str) -> None:
    """The passes that run on a kernel's module.

    What the printer vectorized needs its variables in registers and a clean up: a sixth of the
    time that LLVM's own list takes, which makes it no faster. The other modules get that list, as
    they need LLVM's vectorizer; unrolling and interleaving are left to what a kernel asks for,
    because they double the time once more.
    """
    from treadle.codegen.llvm import VECTORIZED

    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_interleaving = False
    options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    if source.startswith(VECTORIZED) and "llvm.loop.unroll" not in source:
        passes = llvm.create_new_module_pass_manager()
        passes.add_always_inliner_pass()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.add_loop_rotate_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
    else:
        passes = builder.getModulePassManager()
    passes.run(module, builder)


def _features(llvm: Any) -> str:
    """The processor's features. Where there are 512-bit vectors we use them: on the processors
    that slowed down for them, kernels bound by memory gained all the same."""
    features = str(llvm.get_host_cpu_features().flatten())
    return features + ",-prefer-256-bit" if "+avx512f" in features else features


@once
def compiler() -> Compiler:
    """The process's compiler, made at first use."""
    return Compiler()
