"""LLVM assembly as object files for processors that are not this one, and what is in them."""

from __future__ import annotations

import functools
import struct
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from treadle.drivers.cpu.compiler import optimize
from treadle.drivers.cpu.llvm_calls import Calls, Module

_SYMBOL_TABLE, _AARCH64, _X86_64 = 2, 183, 62  # ELF's numbers


@dataclass(frozen=True)
class Processor:
    """What LLVM generates code for."""

    triple: str
    name: str = "generic"
    features: str = ""


@functools.cache
def _machine(processor: Processor) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(processor.triple).create_target_machine(
        cpu=processor.name, features=processor.features, opt=2, reloc="pic", codemodel="small"
    )


_calls = functools.cache(Calls)


def _module(source: str, processor: Processor) -> Module:
    """The module after the passes that the cpu driver runs."""
    machine = _machine(processor)
    module = Module(_calls(), source)
    module.set_target(processor.triple, str(machine.target_data))
    optimize(module, machine, source)
    return module


def object_file(source: str, processor: Processor) -> bytes:
    """The machine code of a module."""
    with closing(_module(source, processor)) as module:
        return module.emit(_machine(processor), as_object=True)


def assembly(source: str, processor: Processor) -> str:
    """The assembly of a module."""
    with closing(_module(source, processor)) as module:
        return module.emit(_machine(processor), as_object=False).decode()


def architecture(image: bytes) -> str:
    """What an ELF file's code runs on."""
    assert image[:6] == b"\x7fELF\x02\x01", "not a 64-bit little-endian ELF file"
    return {_AARCH64: "aarch64", _X86_64: "x86_64"}[struct.unpack_from("<H", image, 18)[0]]


def undefined_symbols(image: bytes) -> set[str]:
    """The names that an ELF object file wants from whoever links it."""
    (table,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + i * size) for i in range(count)]
    found = set()
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind != _SYMBOL_TABLE:
            continue
        names = sections[link][4]
        for at in range(offset + entry, offset + length, entry):  # the first stands for none
            name, _, _, section = struct.unpack_from("<IBBH", image, at)
            if section == 0:
                start = names + name
                found.add(image[start : image.index(b"\0", start)].decode())
    return found
