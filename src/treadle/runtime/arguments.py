"""The arguments of a call as a signature, and packed into bytes at each launch.

The first launch with arguments of given classes binds them: it checks them against the kernel's
parameters and generates a small Python function that packs exactly these. Later launches only call
that function.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from treadle.core import dtypes
from treadle.core.errors import CompileError, DtypeError, LaunchError
from treadle.core.sizes import is_size
from treadle.ir.definition import KernelDefinition, label_of
from treadle.ir.signature import (
    Argument,
    ArrayArgument,
    Declared,
    DeclaredArray,
    DeclaredPointer,
    ScalarArgument,
    ValueArgument,
)
from treadle.ir.types import (
    BITS,
    COMPONENTS,
    NAMELESS,
    SCALARS,
    U8,
    Array,
    Scalar,
    Struct,
    Type,
    Vector,
    Void,
    field_offset,
    leaves,
    named_leaves,
    numbers_in,
    size_of,
)
from treadle.runtime.arrays import ArrayClass, DeviceArray

if TYPE_CHECKING:
    from treadle.codegen.records import ParameterLayout

# The type that an unannotated parameter gets from a number of a Python or NumPy type.
NUMBER_TYPES: dict[type, Scalar] = {
    bool: SCALARS["bool"], int: SCALARS["i32"], float: SCALARS["f32"],
} | {
    dtype.numpy.type: SCALARS[dtype.short] for dtype in dtypes.DTYPES if dtype.name != "bfloat16"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoundArray:
    """How an array argument maps to its parameter: `per` elements of the array are one element of
    the parameter (4 for a float32 array seen as float4), or one is `parts` of the parameter's."""

    argument: ArrayArgument
    per: int = 1
    parts: int = 1


Bound = BoundArray | ScalarArgument | ValueArgument


def check_count(definition: KernelDefinition, count: int) -> None:
    """LaunchError unless there is one argument for each parameter."""
    if count != len(definition.parameters):
        names = [parameter.name for parameter in definition.parameters]
        raise LaunchError(
            f"kernel {definition.name} takes {len(names)} argument{'' if len(names) == 1 else 's'} "
            f"({', '.join(names)}), not {count}"
            + (": a kernel cannot be a method: leave self out" if names[:1] == ["self"] else "")
        )


def bind(definition: KernelDefinition, position: int, key: Any, value: Any) -> Bound:
    """Bind argument `position` to its parameter. `key` is the argument's class: an ArrayClass, a
    number's type, or the IR type of a struct, vector or array value.

    The DtypeError names the argument, the expected type and the given one.
    """
    parameter = definition.parameters[position]
    where = f"{label_of(definition.parameters, position)} of kernel {definition.name}"
    if isinstance(key, ArrayClass):
        return _bind_array(parameter.declared, key, value, where)
    if isinstance(key, (Vector, Struct, Array)):
        return _bind_value(parameter.declared, key, where)
    return _bind_number(parameter.declared, key, where)


def _bind_array(declared: Declared, key: ArrayClass, array: DeviceArray, where: str) -> BoundArray:
    if isinstance(declared, DeclaredPointer):
        return _bind_pointer(declared, key, array, where)
    if declared is not None and not isinstance(declared, DeclaredArray):
        raise DtypeError(
            f"{where} is {declared}, but an array was given: pass one number, as x.item() is, or "
            "annotate the parameter as td.Array[…]"
        )
    element, ndim, per = key.element, key.ndim, 1
    if declared is not None:
        per, ndim = _as_declared(declared, key, array, where)
        element = declared.element
    elif ndim == 0:
        ndim = 1
    argument = ArrayArgument(element, ndim, key.contiguous, key.has_offset, key.big)
    return BoundArray(argument, per)


def _as_declared(
    declared: DeclaredArray, key: ArrayClass, array: DeviceArray, where: str
) -> tuple[int, int]:
    mine = (size_of(key.element), leaves(key.element))
    wanted = (size_of(declared.element), leaves(declared.element))
    if mine == wanted:
        if key.ndim != declared.ndim and (key.ndim, declared.ndim) != (0, 1):
            raise LaunchError(
                f"{where} has {declared.ndim} dimensions, but the given array has shape "
                f"{array.shape}"
            )
        return 1, declared.ndim
    inner = numbers_in(declared.element)
    if inner is not None and key.element == inner[1]:
        axes, count = inner[0], math.prod(inner[0])
        rows = array.shape[declared.ndim :] == axes or (declared.ndim == 1 and len(axes) == 1)
        if not key.contiguous or not rows or array.size % count or array.offset % count:
            last = f"last axis is {count}" if len(axes) == 1 else f"last axes are {axes}"
            raise LaunchError(
                f"{where} is an array of {declared.element}: it takes a contiguous {key.dtype} "
                f"array whose {last}, not one of shape {array.shape}"
            )
        return count, declared.ndim
    raise DtypeError(
        f"{where} is {declared}, but an array of {key.dtype} was given: "
        f"{_converted(declared.element)}"
    )


def _converted(element: Type) -> str:
    """Advice on how to convert an array to another dtype, for messages."""
    if not isinstance(element, Scalar):
        return "make one of that dtype"
    dtype = dtypes.BY_SHORT_NAME[element.name].name
    return f'convert it, as in NumPy\'s x.astype("{dtype}"), or td.astype(x, td.{dtype})'


def _bind_pointer(
    declared: DeclaredPointer, key: ArrayClass, array: DeviceArray, where: str
) -> BoundArray:
    if not key.contiguous:
        raise LaunchError(
            f"{where} is {declared}, but the given array of shape {array.shape} is not contiguous: "
            "pass x.contiguous() for a tensor, numpy.ascontiguousarray(x) for NumPy's"
        )
    element = key.element if isinstance(declared.element, Void) else declared.element
    ndim = max(key.ndim, 1) if declared.shaped else 1
    argument = ArrayArgument(element, ndim, True, key.has_offset, key.big)
    wanted, given = _stored(element), _stored(key.element)
    if wanted == given or _has_names_of(element, key.element):
        return BoundArray(argument)
    # Arrays of one scalar type may be grouped in another way: float32 as float4, complex64 as
    # float.
    unit = set(wanted.parts + given.parts)
    if len(unit) == 1 and wanted.packed and given.packed:
        common = math.gcd(len(wanted.parts), len(given.parts))
        return BoundArray(argument, len(wanted.parts) // common, len(given.parts) // common)
    if isinstance(element, Struct):
        raise DtypeError(
            f"{where} is {declared}, but {_difference(element, key)}, and {_layout(element)}"
        )
    raise DtypeError(
        f"{where} is {declared}, but an array of {key.dtype} was given: {_converted(element)}"
    )


def _difference(wanted: Struct, key: ArrayClass) -> str:
    """How the records of an array differ from a struct."""
    given = key.element
    if not isinstance(given, Struct):
        return f"an array of {key.dtype} was given"
    fields = {one.name: one for one in given.fields}
    missing = []
    for one in wanted.fields:
        other = fields.pop(one.name, None)
        if not one.name.isidentifier():  # padding
            continue
        if other is None:
            missing.append(one.name)
        elif _stored(other.type).parts != _stored(one.type).parts:
            return (
                f"the field {one.name} of the given records is {_field(other.type)}, where "
                f"{_field(one.type)} is needed"
            )
        elif (at := field_offset(given, one.name)) != field_offset(wanted, one.name):
            return f"the field {one.name} of the given records begins at byte {at}"
    free = _room_of(wanted)
    more = [name for name in fields if name.isidentifier() and not _lies_in(given, name, free)]
    if more:
        return f"the given records have another field, {more[0]}"
    if missing:
        return f"the given records have no field {missing[0]}"
    return f"the given records have {size_of(given)} bytes"


def _lies_in(type: Struct, name: str, free: set[int]) -> bool:
    """Whether a field of records is an integer where a struct only has room."""
    field, start = type.field_type(name), field_offset(type, name)
    is_integer = all(leaf.is_integer for _, leaf in leaves(field))
    return is_integer and free.issuperset(range(start, start + size_of(field)))


def _field(type: Any) -> str:
    """The type of a field, for messages. A union of CUDA C++ is a struct of its words, whose name
    is not an identifier."""
    words = type.fields[0] if isinstance(type, Struct) and len(type.fields) == 1 else None
    if words is None or words.name.isidentifier() or not isinstance(words.type, Array):
        return str(type)
    count = f"{words.type.length} × " if words.type.length > 1 else ""
    return f"a union, given as {count}{words.type.element}"


def _layout(type: Struct) -> str:
    """The memory layout of a struct, for messages."""
    fields, has_bits = [], False
    for one in type.fields:
        has_bits |= one.name.startswith(BITS)
        if not one.name.startswith(NAMELESS):
            name = one.name if one.name.isidentifier() else "a field of any name"
            fields.append(f"{name} ({_field(one.type)}) at {field_offset(type, one.name)}")
    listed = f"{type.name} is {size_of(type)} bytes: {', '.join(fields)}"
    if has_bits:
        listed += "; bit fields are in bytes between these, in integers of any names"
    return f"{listed}. A NumPy dtype has that layout with align=True, or by offsets and itemsize"


@dataclass(frozen=True, slots=True)
class _Stored:
    """The memory layout of a type as a pointer sees it: its scalars without signedness, and their
    offsets."""

    parts: tuple[str, ...]
    offsets: tuple[int, ...]
    size: int

    @property
    def packed(self) -> bool:
        """Whether its scalars have one width and no padding between them."""
        step = self.size // len(self.parts)
        return self.offsets == tuple(range(0, self.size, step))


def _stored(type: Type) -> _Stored:
    return _as_stored(leaves(type), size_of(type))


def _has_names_of(wanted: Type, given: Type) -> bool:
    """Whether records have a struct's fields. Where it has padding and words with bit fields, they
    may have integers, or no fields."""
    named = tuple((at, leaf) for at, leaf, known in named_leaves(wanted) if known)
    free = _room_of(wanted)
    found = tuple(
        (at, leaf)
        for at, leaf, known in named_leaves(given)
        if known and not (leaf.is_integer and free.issuperset(range(at, at + size_of(leaf))))
    )
    return _as_stored(named, size_of(wanted)) == _as_stored(found, size_of(given))


def _room_of(type: Type) -> set[int]:
    """The bytes of a struct for which records need no fields."""
    return {
        byte
        for at, leaf, known in named_leaves(type)
        if not known
        for byte in range(at, at + size_of(leaf))
    }


def _as_stored(found: Sequence[tuple[int, Scalar]], size: int) -> _Stored:
    parts = tuple(leaf.name if leaf.is_float else str(leaf.bits) for _, leaf in found)
    return _Stored(parts, tuple(offset for offset, _ in found), size)


def _bind_value(declared: Declared, key: Type, where: str) -> ValueArgument:
    assert isinstance(key, (Vector, Struct, Array))
    if declared is None:
        return ValueArgument(key)
    if isinstance(declared, (Vector, Struct, Array)) and leaves(declared) == leaves(key):
        return ValueArgument(declared)
    raise DtypeError(f"{where} is {declared}, but a {key} was given")


def not_taken(kind: type) -> str:
    """The message for an argument of a type that kernels do not take."""
    if issubclass(kind, (list, tuple)):
        return (
            f"a kernel does not take a {kind.__name__}: make an array of it, with td.asarray(x) or "
            "np.array(x, dtype=np.float32)"
        )
    return (
        f"a kernel does not take {kind.__name__}; it takes numbers, treadle and NumPy arrays, "
        "@td.struct values, and arrays that support DLPack"
    )


def _bind_number(declared: Declared, key: type, where: str) -> ScalarArgument:
    mine = NUMBER_TYPES.get(key)
    if mine is None:
        raise DtypeError(f"{where}: {not_taken(key)}")
    if declared is None:
        return ScalarArgument(mine)
    if not isinstance(declared, Scalar):
        raise DtypeError(
            f"{where} is {declared}, but a number was given ({key.__name__}): pass an array, or "
            "annotate the parameter as a number, as in td.f32"
        )
    if mine.is_float and not declared.is_float:
        raise DtypeError(
            f"{where} is {declared}, but a {key.__name__} was given: convert it, with int(x)"
        )
    return ScalarArgument(declared)


def argument_of(bound: Bound) -> Argument:
    """The argument's part of the signature."""
    return bound.argument if isinstance(bound, BoundArray) else bound


def declared_arguments(definition: KernelDefinition) -> tuple[Argument, ...]:
    """The arguments as the annotations declare them, with contiguous arrays. CompileError for a
    parameter without an annotation."""
    found: list[Argument] = []
    for parameter in definition.parameters:
        match parameter.declared:
            case DeclaredArray(element, ndim):
                found.append(ArrayArgument(element, ndim))
            case DeclaredPointer(element, shaped=True):  # not known before a launch
                found.append(ArrayArgument(element, 0))
            case DeclaredPointer(element):
                found.append(ArrayArgument(U8 if isinstance(element, Void) else element, 1))
            case Scalar():
                found.append(ScalarArgument(parameter.declared))
            case Vector() | Struct() | Array():
                found.append(ValueArgument(parameter.declared))
            case _:
                raise CompileError(
                    f"kernel {definition.name}: parameter {parameter.name} has no annotation, so "
                    "its type is not known without arguments; annotate it"
                )
    return tuple(found)


# --- packing -------------------------------------------------------------------------------------

Packer = Callable[[list[Any], Any, Any], bytes]


_OF_NUMBERS = frozenset({"value", "threads", "grid"})


def make_packer(
    layout: ParameterLayout, names: tuple[str, ...], bound: tuple[Bound, ...]
) -> tuple[Packer, bool]:
    """A function (arguments, grid, threads) -> parameter block, generated for exactly these
    arguments, and whether it looks at arrays. Array arguments are DeviceArrays when it is called.
    """
    position = {name: index for index, name in enumerate(names)}
    text = f"lambda a, grid, threads: pack({', '.join(_values(layout, position, bound))})"
    scope: dict[str, Any] = {
        **_HELPERS, "pack": struct.Struct(layout.format).pack,
    }  # fmt: skip
    packer: Packer = eval(text, scope)
    # Not by a generator: an interrupt that ends one is lost.
    of_arrays = not _OF_NUMBERS.issuperset([slot.parameter.origin[0] for slot in layout.slots])
    return packer, of_arrays


Fields = Callable[[list[Any], Any, Any], tuple[Any, ...]]


def make_fields(
    layout: ParameterLayout, names: tuple[str, ...], bound: tuple[Bound, ...]
) -> tuple[Fields, Callable[..., bytes]]:
    """The same in two functions: the numbers of the parameter block, and what packs them. So
    numbers that are sizes are seen before they are bytes."""
    position = {name: index for index, name in enumerate(names)}
    values = "".join([f"{each}, " for each in _values(layout, position, bound)])
    fields: Fields = eval(f"lambda a, grid, threads: ({values})", dict(_HELPERS))
    return fields, struct.Struct(layout.format).pack


def _values(
    layout: ParameterLayout, position: dict[str, int], bound: tuple[Bound, ...]
) -> list[str]:
    """The source of each number of a parameter block."""
    values, listed = [], set[int]()
    for slot in layout.slots:
        origin = slot.parameter.origin
        if origin[0] == "leaf":
            index = position[str(origin[1])]
            values.append(_leaf(index, origin[2:], bound[index], first=index not in listed))
            listed.add(index)
        else:
            values.append(_value_of(origin, slot.parameter.type, position, bound))
    return values


def _value_of(
    origin: tuple[str | int, ...], type: Scalar, position: dict[str, int], bound: tuple[Bound, ...]
) -> str:
    kind = origin[0]
    if kind in ("threads", "grid"):
        return f"{kind}[{origin[1]}]"
    index = position[str(origin[1])]
    name = f"a[{index}]"
    if kind == "value":
        if type.bits < 32 and type.is_integer:
            return f"narrow({name}, {type.name!r})"
        return f"int({name})" if type.kind == "bool" else name
    one = bound[index]
    assert isinstance(one, BoundArray)
    if kind == "buffer":
        return f"buffer_number(a, {index})"
    if kind == "size" or (kind == "shape" and one.argument.ndim == 1):
        return _in_parameters_elements(f"{name}.size", "size", one, origin[1])
    if kind == "offset":
        return _in_parameters_elements(f"{name}.offset", "offset", one, origin[1])
    return f"{name}.{'shape' if kind == 'shape' else 'strides'}[{origin[2]}]"


def _in_parameters_elements(count: str, what: str, bound: BoundArray, name: str | int) -> str:
    """Source of the expression that converts a count of the array's elements to a count of the
    parameter's."""
    if bound.parts > 1:
        count = f"{count} * {bound.parts}"
    if bound.per == 1:
        return count
    return f"whole({count}, {bound.per}, {what!r}, {str(name)!r}, {str(bound.argument.element)!r})"


_UNEVEN = {
    "size": "the given array has {count} elements",
    "offset": "the given slice begins {count} elements into its memory",
}


def _whole(count: int, per: int, what: str, name: str, element: str) -> int:
    """`count` divided by `per`; LaunchError if there is a remainder."""
    found, remainder = divmod(count, per)
    if remainder:
        given = _UNEVEN[what].format(count=count)
        raise LaunchError(
            f"argument {name}: {per} elements of the array are one {element}, but {given}, "
            f"which is not a multiple of {per}"
        )
    return found


def _buffer_number(arguments: list[Any], index: int) -> int:
    """The place of the first argument that is in the same buffer as one of them, from 1."""
    buffer = arguments[index].buffer
    return next(at for at, one in enumerate(arguments, 1) if getattr(one, "buffer", None) is buffer)


def _leaf(index: int, path: tuple[str | int, ...], bound: Bound, first: bool) -> str:
    """Source of a leaf of a struct or vector argument. The `first` one of an argument converts all
    of them to Python's numbers, except those in fields that are arrays or vectors."""
    assert isinstance(bound, ValueArgument)
    type: Type = bound.type
    text = f"(v{index} := a[{index}].tolist())" if first else f"v{index}"
    is_field = is_array = False
    for part in path:
        if isinstance(type, Struct):
            names = [field.name for field in type.fields]
            text += f"[{part!r}]" if is_array else f"[{names.index(str(part))}]"
            type, is_field = type.field_type(str(part)), True
        else:
            assert isinstance(type, (Vector, Array))
            text += f"[{COMPONENTS.index(part) if isinstance(part, str) else part}]"
            type, is_array = type.element, is_field
    return f"{text}.item()" if is_array else text


_RANGE_OF_INTEGERS = dtypes.integer_range(dtypes.BY_SHORT_NAME["i32"])


def _narrow(value: Any, name: str) -> int:
    """An integer for a parameter of 8 or 16 bits; LaunchError if it does not fit."""
    dtype = dtypes.BY_SHORT_NAME[name]
    low, high = dtypes.integer_range(dtype)
    if not low <= value <= high:
        raise LaunchError(f"{value} does not fit {name} (from {low} to {high})")
    return value if is_size(value) else int(value)


def number_out_of_range(
    error: Exception, definition: KernelDefinition, arguments: Any
) -> LaunchError:
    """The LaunchError for a number that did not fit its parameter."""
    numbers: list[str] = []
    for parameter, value in zip(definition.parameters, arguments, strict=True):
        if not isinstance(value, (int, float, np.number)):
            continue
        numbers.append(f"{parameter.name} = {value!r}")
        declared = parameter.declared
        if declared is None:
            low, high = _RANGE_OF_INTEGERS
            how = f"has no type, and is i32 then: annotate it, as in `{parameter.name}: td.i64`"
        elif isinstance(declared, Scalar) and declared.kind in ("int", "uint"):
            low, high = dtypes.integer_range(dtypes.BY_SHORT_NAME[declared.name])
            how = f"is {declared}, from {low} to {high}"
        else:
            continue
        if not isinstance(value, (float, np.floating)) and not low <= value <= high:
            return LaunchError(
                f"{value} does not fit the parameter {parameter.name} of {definition.name}, which "
                f"{how}"
            )
    return LaunchError(
        f"a number does not fit its parameter in a launch of {definition.name} "
        f"({', '.join(numbers)}): {error}"
    )


# What the source of a parameter block's numbers calls.
_HELPERS = {"narrow": _narrow, "whole": _whole, "buffer_number": _buffer_number}
