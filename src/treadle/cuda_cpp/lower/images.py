"""Textures and surfaces: arrays with a shape, read at coordinates.

A texture object is a pointer to an image, so everything that pointers do (fields of structs, arrays
of textures, a choice at run time) works for them. The image's layout and its filter and address
modes are known when a kernel is lowered; `source/library/texture.cuh` has the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from treadle.cuda_cpp.lower.arithmetic import cast, constant, over, zero_of
from treadle.cuda_cpp.lower.builtin_calls import Handler, number_argument
from treadle.cuda_cpp.lower.choices import choose
from treadle.cuda_cpp.lower.context import Context, LowerAgain
from treadle.cuda_cpp.lower.conversions import rvalue
from treadle.cuda_cpp.lower.objects import load
from treadle.cuda_cpp.lower.overloads import resolve_overload
from treadle.cuda_cpp.lower.pointers import follow, moved, pointer_of
from treadle.cuda_cpp.lower.values import (
    MemoryTarget,
    PointerValue,
    Rvalue,
    Value,
    describe,
)
from treadle.cuda_cpp.program import Sampling
from treadle.cuda_cpp.semantics.scopes import Functions
from treadle.cuda_cpp.semantics.types import (
    FLOAT,
    IMAGE,
    INT,
    OF_SCALAR,
    VECTORS,
    Arithmetic,
    CppType,
    VectorType,
    ir_type,
)
from treadle.cuda_cpp.syntax import tree
from treadle.ir import nodes as n
from treadle.ir import types as ir

_ADDRESS_MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
_SAMPLED = {"point": "__treadle_nearest", "linear": "__treadle_interpolated"}
_BETWEEN = {"point": "at", "linear": "between"}  # levels
NO_SAMPLING = Sampling()
_EXTENTS = VECTORS["int3"]


@dataclass(frozen=True, slots=True)
class Image:
    """An array that a texture or surface object refers to: the parameter's name, the extents of
    its axes, and how it is sampled. `known` is False without a launch: the array is then what the
    first access expects."""

    name: str
    extents: tuple[n.Expression, ...]
    sampling: Sampling
    known: bool


@dataclass(frozen=True, slots=True)
class _Texels:
    """An image as an access sees it: a pointer to its texels, and their number on each axis, the
    slowest first."""

    pointer: PointerValue
    extents: tuple[n.Expression, ...]


def _number_and_count(cx: Context, name: str, type: CppType) -> tuple[Arithmetic, int]:
    """The numbers in a texel."""
    if isinstance(type, Arithmetic):
        return type, 1
    if isinstance(type, VectorType) and type.count != 3:
        return type.element, type.count
    raise cx.error(f"{name} reads numbers, or vectors of 1, 2 or 4 of them, not {type}")


def _accessed(
    cx: Context,
    value: Value,
    access: Callable[[PointerValue, MemoryTarget, Image], Value],
    type: CppType,
) -> Value:
    """The result of an access to an image; to the one that the object refers to at run time, if
    there are several."""
    pointer = pointer_of(cx, value)
    if pointer is None or pointer.to != IMAGE:
        raise cx.error(f"a texture or surface object is expected here, not {describe(value)}")
    choices = [
        (target, cx.lowering.images[target.memory]) if isinstance(target, MemoryTarget) else None
        for target in pointer.targets
    ]
    nothing = Rvalue(zero_of(ir_type(type), cx.span), type)  # of a null object

    def one(choice: tuple[MemoryTarget, Image] | None) -> Value:
        if choice is None:
            return nothing
        start = PointerValue((choice[0],), pointer.offset, pointer.unit, IMAGE)
        return access(start, *choice)

    if len(choices) == 1:
        return one(choices[0])
    assert pointer.tag is not None
    result = cx.variable("texel", ir_type(type))

    def keep(choice: tuple[MemoryTarget, Image] | None) -> None:
        found = rvalue(cx, one(choice), cx.span)
        cx.emit(n.Assign(result, found.expression, cx.span))

    choose(cx, pointer.tag, list(enumerate(choices)), keep, cx.span)
    return Rvalue(result, type)


def _layout(cx: Context, image: Image, element: ir.Scalar, axes: int) -> None:
    """Note how the array of an object that no launch gave is accessed."""
    known = cx.lowering.facts.images
    if not image.known and image.name not in known:
        known[image.name] = (element, axes)
        raise LowerAgain


def _texel_type(
    cx: Context, name: str, image: Image, element: ir.Type, type: CppType, channels: int
) -> CppType:
    """The type of texels in memory; `channels` elements of the array are one of them."""
    number, count = _number_and_count(cx, name, type)
    if element == number.scalar and channels == count:
        return type
    converts = isinstance(element, ir.Scalar) and channels == count and number.scalar == ir.F32
    if converts and (element == ir.F16 or (element.is_integer and element.bits < 32)):  # type: ignore[union-attr]
        own = OF_SCALAR[element]  # type: ignore[index]
        return own if count == 1 else VectorType(f"{own}{count}", own, count)
    if ir.size_of(element) * channels == ir.size_of(ir_type(type)):
        return type  # the same bytes, such as a double as int2
    raise cx.error(
        f"{name} reads a {type} as a texel, but {channels} × {element} is one of {image.name}: "
        "pass an array of the texels' numbers (8 and 16-bit integers are read as floats from 0 or "
        "-1 to 1)"
    )


def _viewed(
    cx: Context,
    name: str,
    start: PointerValue,
    target: MemoryTarget,
    image: Image,
    type: CppType,
    axes: int,
) -> _Texels:
    """The texels of an image with some axes; an array with one axis more has a texel's numbers
    there."""
    number, count = _number_and_count(cx, name, type)
    _layout(cx, image, number.scalar, axes + (count > 1))
    given = len(image.extents)
    outer = ("levels",) if image.sampling.levels > 1 else ()
    own = axes - len(outer)
    names = ("layers", "depth", "height", "width") if own > 3 else ("depth", "height", "width")
    listed = ", ".join((*outer, *names[-own:]))
    if given not in (axes, axes + 1):
        raise cx.error(
            f"{name} reads an array of shape ({listed}), or with the numbers of a texel as the last"
            f" axis, but {image.name} has {given} dimension{'s' * (given != 1)}"
        )
    channels = 1
    if given > axes:
        channels = image.sampling.channels or count
    texel = _texel_type(cx, name, image, target.element, type, channels)
    extents = tuple(cx.let(cast(one, ir.I32)) for one in image.extents[:axes])
    return _Texels(_as_texels(start, texel), extents)


def _as_texels(start: PointerValue, texel: CppType) -> PointerValue:
    return PointerValue(start.targets, start.offset, start.unit, texel)


def _called(cx: Context, name: str, values: Sequence[Value]) -> Value:
    """A call of a function of the library."""
    group = cx.scope.find(name)
    assert isinstance(group, Functions), name
    chosen = resolve_overload(cx, name, group.overloads, values, None, cx.span)
    return cx.rules.call_chosen(cx, chosen, values, None, cx.span)


def _integer(value: n.Expression | int) -> Rvalue:
    return Rvalue(constant(value, ir.I32) if isinstance(value, int) else value, INT)


def _extents(cx: Context, texels: _Texels) -> Rvalue:
    """The extents as an int3 (width, height, depth)."""
    inner = texels.extents[::-1][:3]
    made = (*inner, *[constant(1, ir.I32)] * (3 - len(inner)))
    return Rvalue(cx.let(n.Construct(made, ir_type(_EXTENTS), cx.span)), _EXTENTS)


def _constant(value: Value) -> int:
    assert isinstance(value, Rvalue) or hasattr(value, "place")
    return int(value.expression.value)  # type: ignore[union-attr]


# --- textures ------------------------------------------------------------------------------------


def _sample(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_sample(T(), texture, dimensions, layered, layer, level, x, y, z)`"""
    level = Rvalue(cx.let(number_argument(cx, values[5], ir.F32, cx.span)), FLOAT)
    return _sampled(cx, values[:5], values[6:], lambda texels, sampling: level)


def _sample_changing(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_sample_changing(T(), texture, dimensions, layered, layer, change along one axis,
    along the other one, x, y, z)`, with the level that the changes of the coordinates give."""
    changes = [rvalue(cx, one, cx.span) for one in values[5:7]]
    dimensions = _integer(_constant(values[2]))

    def level(texels: _Texels, sampling: Sampling) -> Value:
        normalized = _integer(int(sampling.normalized))
        extents = _extents(cx, texels)
        return _called(cx, "__treadle_level_of", [extents, dimensions, normalized, *changes])

    return _sampled(cx, values[:5], values[7:], level)


def _sampled(
    cx: Context,
    head: Sequence[Value],
    coordinates: Sequence[Value],
    level: Callable[[_Texels, Sampling], Value],
) -> Value:
    """A texture at some coordinates. `head` are T(), the texture, the number of dimensions, whether
    there are layers (2: the faces of cubes), and the layer."""
    zero = rvalue(cx, head[0], cx.span)
    dimensions, layered = _constant(head[2]), _constant(head[3])
    layer = cx.let(number_argument(cx, head[4], ir.I32, cx.span))
    at = [Rvalue(cx.let(number_argument(cx, one, ir.F32, cx.span)), FLOAT) for one in coordinates]
    name = "texCubemap" if layered > 1 else f"tex{dimensions}D{'Layered' * layered}"

    def access(start: PointerValue, target: MemoryTarget, image: Image) -> Value:
        sampling = image.sampling
        several = sampling.levels > 1
        axes = dimensions + bool(layered) + several
        texels = _viewed(cx, name, start, target, image, zero.type, axes)
        if sampling.filter == "linear" and _number_and_count(cx, name, zero.type)[0].scalar != (
            ir.F32
        ):
            raise cx.error(
                f"{name} reads a {zero.type} from {image.name}, whose filter is linear: only floats"
                ' are interpolated, on CUDA too. Pass td.texture(…, filter="point")'
            )
        step: n.Expression = constant(1, ir.I32)
        if several:
            texels = _Texels(texels.pointer, texels.extents[1:])
            for extent in texels.extents:
                step = n.Binary("mul", step, extent, ir.I32)
        if layered > 1 and sampling.seamless and sampling.filter == "linear":
            return _seamless(cx, zero, texels, sampling, layer, at)
        if layered:
            texels = _layer(cx, texels, layer, layered > 1)
        size = _extents(cx, texels)
        modes = [_integer(_ADDRESS_MODES[mode]) for mode in sampling.address]
        normalized = _integer(int(sampling.normalized or layered > 1))
        rest: list[Value] = [_integer(dimensions), *modes, normalized, *at]
        first: list[Value] = [zero, texels.pointer, size]
        outer, cx.lowering.srgb = cx.lowering.srgb, sampling.srgb
        try:
            if not several:
                return _called(cx, _SAMPLED[sampling.filter], [*first, size, *rest])
            found = Rvalue(cx.let(rvalue(cx, level(texels, sampling), cx.span).expression), FLOAT)
            function = f"__treadle_{sampling.filter}_{_BETWEEN[sampling.between]}"
            counted = _integer(cx.let(step)), _integer(sampling.levels), found
            return _called(cx, function, [*first, *counted, *rest])
        finally:
            cx.lowering.srgb = outer

    cx.note("emulated", name, "reads of an array, with the arithmetic of the filter", cx.span)
    return _accessed(cx, head[1], access, zero.type)


def _seamless(
    cx: Context,
    zero: Rvalue,
    texels: _Texels,
    sampling: Sampling,
    layer: n.Expression,
    at: Sequence[Rvalue],
) -> Value:
    """A cube that is interpolated across the edges of its faces."""
    if sampling.levels > 1:
        raise cx.error(
            "a seamless cube with smaller copies: pass td.texture(…, seamless=False), or one array"
        )
    face = cx.let(n.Binary("mod", layer, constant(6, ir.I32), ir.I32))
    cube = _layer(cx, texels, cx.let(n.Binary("sub", layer, face, ir.I32)), True)
    outer, cx.lowering.srgb = cx.lowering.srgb, sampling.srgb
    try:
        given: list[Value] = [
            zero,
            cube.pointer,
            _integer(cube.extents[-1]),
            _integer(face),
            *at[:2],
        ]
        return _called(cx, "__treadle_seamless", given)
    finally:
        cx.lowering.srgb = outer


def _gather(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_gather(T(), texture, component, x, y)`: a number of each of four texels."""
    zero = rvalue(cx, values[0], cx.span)
    component = _integer(cx.let(number_argument(cx, values[2], ir.I32, cx.span)))
    at = [Rvalue(cx.let(number_argument(cx, one, ir.F32, cx.span)), FLOAT) for one in values[3:]]
    number, four = _number_and_count(cx, "tex2Dgather", zero.type)
    if four != 4:
        raise cx.error(f"tex2Dgather gives four numbers, not a {zero.type}")

    def access(start: PointerValue, target: MemoryTarget, image: Image) -> Value:
        sampling = image.sampling
        count = sampling.channels if len(image.extents) > 2 and sampling.channels else 1
        wanted: CppType = number if count == 1 else _vector_of(number, count)
        texels = _viewed(cx, "tex2Dgather", start, target, image, wanted, 2)
        empty = Rvalue(zero_of(ir_type(wanted), cx.span), wanted)
        modes = [_integer(_ADDRESS_MODES[mode]) for mode in sampling.address[:2]]
        normalized = _integer(int(sampling.normalized))
        size = _extents(cx, texels)
        outer, cx.lowering.srgb = cx.lowering.srgb, sampling.srgb
        try:
            return _called(
                cx,
                "__treadle_gathered",
                [zero, empty, texels.pointer, size, component, *modes, normalized, *at],
            )
        finally:
            cx.lowering.srgb = outer

    cx.note("emulated", "tex2Dgather", "four reads of an array", cx.span)
    return _accessed(cx, values[1], access, zero.type)


def _vector_of(number: Arithmetic, count: int) -> VectorType:
    found = next(
        (
            one
            for one in VECTORS.values()
            if one.count == count and one.element.scalar == number.scalar
        ),
        None,
    )
    return found or VectorType(f"{number}{count}", number, count)


def _component(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_component(texel, index)`: a number of a texel, 0 for one that it does not have."""
    texel = rvalue(cx, values[0], cx.span)
    index = cx.let(number_argument(cx, values[1], ir.I32, cx.span))
    number, count = _number_and_count(cx, "tex2Dgather", texel.type)
    whole = cx.let(texel.expression)
    found: n.Expression = zero_of(number.scalar, cx.span)
    for at in reversed(range(count)):
        part = whole
        if isinstance(texel.type, VectorType):
            part = n.Extract(whole, ir.COMPONENTS[at], number.scalar, cx.span)
        here = n.Binary("eq", index, constant(at, ir.I32), ir.BOOL)
        found = n.Select(here, part, found, number.scalar)
    return Rvalue(found, number)


def _layer(cx: Context, texels: _Texels, layer: n.Expression, is_cube: bool) -> _Texels:
    """One layer of an image, the nearest one; of cubes the face of the nearest one."""
    layers, *inner = texels.extents
    last = n.Binary("sub", layers, constant(1, ir.I32), ir.I32)
    above = n.Binary("gt", layer, last, ir.BOOL)
    if is_cube:
        six = constant(6, ir.I32)
        face = n.Binary("mod", layer, six, ir.I32)
        last = n.Binary("add", n.Binary("sub", layers, six, ir.I32), face, ir.I32)
    least = cx.let(n.Select(above, last, layer, ir.I32))
    below = n.Binary("lt", least, constant(0, ir.I32), ir.BOOL)
    step: n.Expression = n.Select(below, constant(0, ir.I32), least, ir.I32)
    for extent in inner:
        step = n.Binary("mul", step, extent, ir.I32)
    return _Texels(moved(cx, texels.pointer, cx.let(step), cx.span), tuple(inner))


def _fetch(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_fetch(T(), texture, index)`: of an array of any shape, as linear memory."""
    zero = rvalue(cx, values[0], cx.span)
    at = _integer(cx.let(number_argument(cx, values[2], ir.I32, cx.span)))

    def access(start: PointerValue, target: MemoryTarget, image: Image) -> Value:
        number, count = _number_and_count(cx, "tex1Dfetch", zero.type)
        _layout(cx, image, number.scalar, 1)
        own, wanted = ir.size_of(target.element), ir.size_of(ir_type(zero.type))
        small = isinstance(target.element, ir.Scalar) and target.element.bits < 32
        if number.scalar == ir.F32 and small:
            channels = count
        elif max(own, wanted) % min(own, wanted) == 0:
            channels = max(wanted // own, 1)
        else:
            channels = 1
        texel = _texel_type(cx, "tex1Dfetch", image, target.element, zero.type, channels)
        size = image.extents[0]
        for extent in image.extents[1:]:
            size = n.Binary("mul", size, extent, size.type)
        texels = _integer(cx.let(over(cast(size, ir.I32), channels)))
        return _called(cx, "__treadle_fetched", [zero, _as_texels(start, texel), texels, at])

    cx.note("emulated", "tex1Dfetch", "a read of an array, 0 outside", cx.span)
    return _accessed(cx, values[1], access, zero.type)


def _texel(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
    """`__treadle_texel(T(), texels, index)`: a texel as a T."""
    type: CppType = values[0].type  # type: ignore[union-attr]
    pointer = pointer_of(cx, values[1])
    assert pointer is not None
    index = number_argument(cx, values[2], ir.I32, cx.span)
    found = load(cx, follow(cx, moved(cx, pointer, index, cx.span), cx.span), cx.span)
    if found.type == type:
        return found
    _, count = _number_and_count(cx, "a texture", type)
    whole = cx.let(found.expression)
    if isinstance(found.type, Arithmetic):
        parts = [whole]
    else:
        element = ir_type(found.type)
        assert isinstance(element, ir.Vector)
        names = ir.COMPONENTS[:count]
        parts = [n.Extract(whole, name, element.element, cx.span) for name in names]
    made = tuple(_as_float(one) for one in parts)
    if cx.lowering.srgb:  # of red, green and blue
        made = (*(_as_light(cx, one) for one in made[:3]), *made[3:])
    if isinstance(type, Arithmetic):
        return Rvalue(made[0], type)
    return Rvalue(n.Construct(made, ir_type(type), cx.span), type)


def _as_float(value: n.Expression) -> n.Expression:
    """A number of a texel as a float: integers from 0 or -1 to 1."""
    scalar = value.type
    assert isinstance(scalar, ir.Scalar)
    found = cast(value, ir.F32)
    if not scalar.is_integer:
        return found
    largest = (1 << (scalar.bits - scalar.is_signed)) - 1
    scaled = n.Binary("div", found, constant(float(largest), ir.F32), ir.F32)
    if scalar.is_signed:
        least = constant(-1.0, ir.F32)
        return n.Select(n.Binary("lt", scaled, least, ir.BOOL), least, scaled, ir.F32)
    return scaled


def _as_light(cx: Context, value: n.Expression) -> n.Expression:
    """A number of sRGB, from 0 to 1, as the intensity of light."""
    given = Rvalue(cx.let(value), FLOAT)
    return rvalue(cx, _called(cx, "__treadle_light", [given]), cx.span).expression


# --- surfaces ------------------------------------------------------------------------------------


def _surface(function: str, verb: str) -> Handler:
    """`__treadle_surface_read(T(), surface, dimensions, mode, x, y, z)`, and a write of a value."""

    def handle(cx: Context, values: Sequence[Value], node: tree.Call) -> Value:
        value = rvalue(cx, values[0], cx.span)
        value = Rvalue(cx.let(value.expression), value.type)
        dimensions = _constant(values[2])
        mode, x, y, z = (cx.let(number_argument(cx, one, ir.I32, cx.span)) for one in values[3:])
        size = ir.size_of(ir_type(value.type))
        column = _integer(cx.let(over(x, size) if size > 1 else x))
        name = f"surf{dimensions}D{verb}"

        def access(start: PointerValue, target: MemoryTarget, image: Image) -> Value:
            texels = _viewed(cx, name, start, target, image, value.type, dimensions)
            if texels.pointer.to != value.type:
                raise cx.error(
                    f"{name} accesses a {value.type}, but the elements of {image.name} are "
                    f"{target.element}: surfaces convert no numbers"
                )
            rest = [_integer(mode), column, _integer(y), _integer(z)]
            return _called(
                cx, f"__treadle_{function}", [value, texels.pointer, _extents(cx, texels), *rest]
            )

        cx.note("emulated", name, "an access to an array, none outside", cx.span)
        return _accessed(cx, values[1], access, value.type)

    return handle


HANDLERS: dict[str, Handler] = {
    "__treadle_sample": _sample,
    "__treadle_sample_changing": _sample_changing,
    "__treadle_gather": _gather,
    "__treadle_component": _component,
    "__treadle_fetch": _fetch,
    "__treadle_texel": _texel,
    "__treadle_surface_read": _surface("surface_read_from", "read"),
    "__treadle_surface_write": _surface("surface_written_to", "write"),
}
