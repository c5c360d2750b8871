"""Instructions of PTX for tensor cores: products of small matrices, and their loads and stores."""

from __future__ import annotations

from treadle.cuda_cpp.syntax.ptx_text import (
    Instruction,
    NotTranslated,
    Registers,
    take,
)


def matrices(r: Registers, one: Instruction) -> str:
    """The instructions ldmatrix and stmatrix."""
    words = one.parts[1:]
    count = next((int(word[1]) for word in words if word in ("x1", "x2", "x4")), 0)
    if "m8n8" not in words or words[-1] != "b16" or not count:
        raise NotTranslated(f"{one.name} is not translated")
    loads = one.parts[0] == "ldmatrix"
    registers, address = one.arguments if loads else one.arguments[::-1]
    parts = registers.parts or (registers,)
    if len(parts) != count:
        raise NotTranslated(f"{one.name} takes {count} registers")
    row, trans = r.fresh(), "true" if "trans" in words else "false"
    if not loads:
        lines = f"unsigned int {row} = {r.shared_address(address)};"
        return lines + "".join(
            f"__treadle_store_matrix({row}, {at}u, {trans}, {r.value(part, 'b32')});"
            for at, part in enumerate(parts)
        )
    by = "columns" if "trans" in words else "rows"
    lines = f"auto {row} = __treadle_matrix_{by}({r.address(address, 'char')}, {count}u);"
    names = [row] if count == 1 else [f"{row}.{axis}" for axis in "xyzw"[:count]]
    pairs = zip(parts, names, strict=True)
    return lines + "".join(r.assign(part, "b32", name) for part, name in pairs)


def movmatrix(r: Registers, one: Instruction) -> str:
    to, given = take(one, 2)
    return r.assign(to, "b32", f"__treadle_transpose_matrix({r.value(given, 'b32')})")


# By shape and type of the factors: the words of A and B, and the operation that takes 4 and 2.
_PRODUCTS = {
    ("m16n8k16", "f16"): (4, 2, "f16"), ("m16n8k8", "f16"): (2, 1, "f16"),
    ("m16n8k16", "bf16"): (4, 2, "bf16"), ("m16n8k8", "bf16"): (2, 1, "bf16"),
    ("m16n8k8", "tf32"): (4, 2, "tf32"), ("m16n8k4", "tf32"): (2, 1, "tf32"),
    ("m16n8k32", "s8"): (4, 2, "i8"), ("m16n8k16", "s8"): (2, 1, "i8"),
    ("m8n8k16", "s8"): (1, 1, "i8"),
    ("m16n8k32", "u8"): (4, 2, "u8"), ("m16n8k16", "u8"): (2, 1, "u8"),
    ("m8n8k16", "u8"): (1, 1, "u8"),
}  # fmt: skip


def _mma_of_bytes(r: Registers, one: Instruction, types: list[str]) -> str:
    """Products of 8-bit floats, as two of 16-bit ones: the order of a sum's terms does not count,
    so the two lower bytes of each word are one product, and the upper bytes the other."""
    to, a, b, c = (argument.parts or (argument,) for argument in one.arguments)
    if [len(each) for each in (to, a, b, c)] != [4, 4, 2, 4] or types[::3] != ["f32", "f32"]:
        raise NotTranslated(f"{one.name} is not translated")
    lines, sums = "", ", ".join(r.value(each, "f32") for each in c)
    name = r.fresh()
    lines += f"float4 {name} = make_float4({sums});"
    for part in (0, 1):
        left, right = (
            ", ".join(
                f"__treadle_halves_of_bytes({r.value(each, 'b32')} >> {16 * part}u, "
                f"{'true' if type == 'e4m3' else 'false'})"
                for each in words
            )
            for words, type in ((a, types[1]), (b, types[2]))
        )
        lines += (
            f"{name} = __treadle_multiply_f16(make_uint4({left}), make_uint2({right}), {name});"
        )
    return lines + "".join(
        r.assign(target, "f32", f"{name}.{axis}") for target, axis in zip(to, "xyzw", strict=True)
    )


def _mma_of_doubles(r: Registers, one: Instruction) -> str:
    to, a, b, c = (argument.parts or (argument,) for argument in one.arguments)
    if [len(each) for each in (to, a, b, c)] != [2, 1, 1, 2]:
        raise NotTranslated(f"{one.name} is not translated")
    name = r.fresh()
    given = ", ".join(r.value(each, "f64") for each in (*a, *b, *c))
    return f"double2 {name} = __treadle_multiply_f64({given});" + "".join(
        r.assign(target, "f64", f"{name}.{axis}") for target, axis in zip(to, "xy", strict=True)
    )


def mma(r: Registers, one: Instruction) -> str:
    words = [word for word in one.parts[1:] if word not in ("sync", "aligned", "row", "col")]
    shape, *types = words
    if (shape, types) == ("m8n8k4", ["f64"] * 4):
        return _mma_of_doubles(r, one)
    if shape == "m16n8k32" and {*types[1:3]} <= {"e4m3", "e5m2"}:
        return _mma_of_bytes(r, one, types)
    known = _PRODUCTS.get((shape, types[1])) if len(types) == 4 else None
    wrong = known is None or types[1] != types[2] or one.parts.count("col") != 1
    if wrong or known is None or len(one.arguments) != 4:
        raise NotTranslated(f"{one.name} is not translated")
    to, a, b, c = (argument.parts or (argument,) for argument in one.arguments)
    half = types[0] == "f16"
    if types[0] != types[3] or types[0] not in ("f32", "f16", "s32"):
        raise NotTranslated(f"{one.name} is not translated")
    sums = 2 if half or shape.startswith("m8") else 4
    if [len(each) for each in (to, a, b, c)] != [sums, known[0], known[1], sums]:
        raise NotTranslated(f"{one.name} takes {sums}, {known[0]}, {known[1]} and {sums} registers")
    left = [r.value(each, "b32") for each in a] + ["0u"] * (4 - len(a))
    right = [r.value(each, "b32") for each in b] + ["0u"] * (2 - len(b))
    if half:
        before = [
            f"__treadle_half_of({r.value(each, 'b32')}, {at}u)" for each in c for at in (0, 1)
        ]
    else:
        before = [r.value(each, types[0]) for each in c] + ["0"] * (4 - sums)
    vector = "int4" if types[0] == "s32" else "float4"
    name = r.fresh()
    lines = (
        f"{vector} {name} = __treadle_multiply_{known[2]}(make_uint4({', '.join(left)}), "
        f"make_uint2({', '.join(right)}), make_{vector}({', '.join(before)}));"
    )
    if half:
        texts = [f"__treadle_halves({name}.x, {name}.y)", f"__treadle_halves({name}.z, {name}.w)"]
        return lines + "".join(r.assign(t, "b32", x) for t, x in zip(to, texts, strict=True))
    return lines + "".join(
        r.assign(target, types[0], f"{name}.{axis}")
        for target, axis in zip(to, "xyzw", strict=False)
    )
