"""Instructions of PTX on memory: loads, stores, atomics, copies, mbarriers."""

from __future__ import annotations

from treadle.cuda_cpp.syntax.ptx_formulas import CPP_TYPES
from treadle.cuda_cpp.syntax.ptx_text import (
    Argument,
    Instruction,
    NotTranslated,
    Registers,
    take,
)

_SPACES = ("global", "shared", "local", "const", "param")
_SCOPES = {"cta": "__threadfence_block()", "cluster": "__threadfence()", "gpu": "__threadfence()",
           "sys": "__threadfence()"}  # fmt: skip
# Words about caches, which change no value.
_CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak", "volatile", "relaxed", "noftz")


def _access(one: Instruction) -> tuple[str, int, str, str]:
    """Of a load or store: the type, how many, the order and the scope of it."""
    count, order, scope, type = 1, "", "sys", one.parts[-1]
    for part in one.parts[1:-1]:
        if part in ("v2", "v4", "v8"):
            count = int(part[1])
        elif part in ("acquire", "release"):
            order = part
        elif part in _SCOPES:
            scope = part
        elif part.split("::")[0] not in (*_SPACES, *_CACHES, "L1", "L2"):
            raise NotTranslated(f"{one.name} is not translated")
    if type not in CPP_TYPES or type in ("f16", "bf16"):
        raise NotTranslated(f"{one.name} is not translated")
    return type, count, order, scope


_VECTORS = {
    ("32", 2): "uint2", ("32", 4): "uint4", ("64", 2): "ulonglong2", ("16", 2): "ushort2",
    ("16", 4): "ushort4", ("8", 2): "uchar2", ("8", 4): "uchar4",
}  # fmt: skip


def load(r: Registers, one: Instruction) -> str:
    type, count, order, scope = _access(one)
    to, address = take(one, 2, 3)[:2]
    targets = to.parts or (to,)
    if len(targets) != count:
        raise NotTranslated(f"{one.name} takes {count} registers")
    volatile = "volatile " if {"volatile", "relaxed", "acquire"} & set(one.parts) else ""
    after = f"{_SCOPES[scope]};" if order == "acquire" else ""
    if count == 1:
        pointer = r.address(address, f"const {volatile}{CPP_TYPES[type]}")
        return r.assign(to, type, f"*{pointer}") + after
    vector = _VECTORS.get((type[1:3].rstrip("x"), count))
    name, plain = r.fresh(), f"u{type[1:]}"
    # A volatile vector is read by its components, and one of more than 16 bytes.
    at, pointer = r.fresh(), r.address(address, f"const {volatile}{CPP_TYPES[plain]}")
    if volatile or vector is None:
        lines = f"auto {at} = {pointer};"
        reads = [f"{at}[{place}]" for place in range(count)]
    else:
        lines = f"{vector} {name} = *{r.address(address, f'const {vector}')};"
        reads = [f"{name}.{'xyzw'[place]}" for place in range(count)]
    pairs = zip(targets, reads, strict=True)
    return lines + "".join(r.assign(target, plain, read) for target, read in pairs) + after


def _store_async(r: Registers, one: Instruction) -> str:
    """`st.async`: a store whose bytes an mbarrier counts; it is done at once."""
    address, given, barrier = take(one, 3)
    words = [w for w in one.parts[2:] if w.split("::")[0] not in ("mbarrier", "weak", "shared")]
    plain = Instruction(("st", "shared", *words), (address, given))
    type, count, *_ = _access(plain)
    size = count * int(type[1:3].rstrip("x")) // 8
    return f"{store(r, plain)} __treadle_mbarrier_complete({r.barrier(barrier)}, {size}u);"


def store(r: Registers, one: Instruction) -> str:
    if one.parts[1:2] == ("async",):
        return _store_async(r, one)
    type, count, order, scope = _access(one)
    address, given = take(one, 2, 3)[:2]
    values = given.parts or (given,)
    if len(values) != count:
        raise NotTranslated(f"{one.name} takes {count} registers")
    before = f"{_SCOPES[scope]};" if order == "release" else ""
    if count == 1:
        return f"{before}*{r.address(address, CPP_TYPES[type])} = {r.value(given, type)};"
    vector = _VECTORS.get((type[1:3].rstrip("x"), count))
    if vector is None:
        at, plain = r.fresh(), f"u{type[1:]}"
        writes = "".join(
            f"{at}[{place}] = {r.value(each, plain)};" for place, each in enumerate(values)
        )
        return f"{before}auto {at} = {r.address(address, CPP_TYPES[plain])};{writes}"
    parts = ", ".join(r.value(each, f"u{type[1:]}") for each in values)
    return f"{before}*{r.address(address, vector)} = make_{vector}({parts});"


_ATOMICS = {
    "add": "atomicAdd", "exch": "atomicExch", "cas": "atomicCAS", "min": "atomicMin",
    "max": "atomicMax", "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor",
    "inc": "atomicInc", "dec": "atomicDec",
}  # fmt: skip


def atomic(r: Registers, one: Instruction) -> str:
    """`atom d, [a], b[, c]` and `red [a], b`."""
    is_red = one.parts[0] == "red"
    arguments = list(one.arguments)
    to = Argument("_") if is_red else arguments.pop(0)
    words = [w for w in one.parts[1:] if w.split("::")[0] not in (*_SPACES, "noftz", "L2")]
    type = next((w for w in reversed(words) if w in CPP_TYPES), "")  # `add.f32`, `v2.f32.add`
    order, scope, op, count = "", "gpu", "", 1
    for word in words:
        if word == type:
            continue
        if word in ("relaxed", "acquire", "release", "acq_rel"):
            order = word
        elif word in _SCOPES:
            scope = word
        elif word in ("v2", "v4", "v8"):
            count = int(word[1])
        else:
            op = word
    function = _ATOMICS.get(op)
    if function is None or type not in CPP_TYPES or not arguments:
        raise NotTranslated(f"{one.name} is not translated")
    cpp = f"u{type[1:]}" if type[0] == "b" and type != "bf16x2" and type != "bf16" else type
    before = f"{_SCOPES[scope]};" if order in ("release", "acq_rel") else ""
    after = f"{_SCOPES[scope]};" if order in ("acquire", "acq_rel") else ""
    pointer = r.address(arguments[0], CPP_TYPES[cpp])
    parts = [each.parts or (each,) for each in (to, *arguments[1:])]
    if any(len(each) != count for each in parts[is_red:]):
        raise NotTranslated(f"{one.name} takes {count} registers")
    made, results = "", []
    for at in range(count):  # each number of a vector by itself, as on CUDA
        values = ", ".join(r.value(each[at], cpp) for each in parts[1:])
        call = f"{function}({pointer} + {at}, {values})"
        if is_red or parts[0][at].text == "_":
            made += f"{call};"
        else:
            name = r.fresh()
            made += f"auto {name} = {call};"
            results.append(r.assign(parts[0][at], cpp, name))
    return before + made + "".join(results) + after


def mbarrier(r: Registers, one: Instruction) -> str:
    words = [w for w in one.parts[1:-1] if w.split("::")[0] not in (*_SPACES, *_ORDERS, *_SCOPES)]
    name, *kinds = words or [""]
    if name == "inval":
        return ""
    if name == "pending_count":
        to, state = take(one, 2)
        return r.assign(to, "u32", f"(unsigned int)({r.value(state, 'u64')} & 0x7fffull)")
    if name in ("init", "expect_tx", "complete_tx") and not kinds:
        address, count = take(one, 2)
        function = {"init": "init", "expect_tx": "expect", "complete_tx": "complete"}[name]
        given = f"{r.barrier(address)}, {r.value(count, 'u32')}"
        return f"__treadle_mbarrier_{function}({given});"
    if name in ("arrive", "arrive_drop") and set(kinds) <= {"expect_tx", "noComplete"}:
        arguments = list(one.arguments)
        to = Argument("_") if arguments[0].offset is not None else arguments.pop(0)
        address, *rest = arguments
        pointer, many, lines = r.barrier(address), "1u", ""
        if "expect_tx" in kinds:
            lines = f"__treadle_mbarrier_expect({pointer}, {r.value(rest[0], 'u32')});"
        elif rest:
            many = r.value(rest[0], "u32")
        dropped = many if name == "arrive_drop" else "0u"
        call = f"__treadle_mbarrier_arrive({pointer}, {many}, {dropped})"
        return lines + (f"{call};" if to.text == "_" else r.assign(to, "u64", call))
    if name in ("test_wait", "try_wait") and kinds in ([], ["parity"]):
        to, address, state, *_ = take(one, 3, 4)
        parity = (
            r.value(state, "u32") if kinds else f"(unsigned int)({r.value(state, 'u64')} >> 31)"
        )
        return r.assign(to, "pred", f"__treadle_mbarrier_test({r.barrier(address)}, {parity})")
    raise NotTranslated(f"{one.name} is not translated")


_ORDERS = ("release", "acquire", "relaxed", "acq_rel")


def _copy_bulk(r: Registers, one: Instruction) -> str:
    """cp.async.bulk of adjacent bytes: done at once, by the thread that asks for it."""
    words = [word.split("::")[0] for word in one.parts[3:] if not word.startswith("L2")]
    match words:
        case ["commit_group"] | ["wait_group", *_] | ["prefetch", *_]:
            return ""
        case ["shared", "global", "mbarrier"]:
            to, given, size, barrier, *_ = one.arguments
            bytes_ = r.value(size, "u32")
            return (
                f"__treadle_copy_bulk({r.address(to, 'char')}, {r.address(given, 'const char')}, "
                f"{bytes_}); __treadle_mbarrier_complete({r.barrier(barrier)}, {bytes_});"
            )
        case ["global", "shared", "bulk_group"]:
            to, given, size, *_ = one.arguments
            return (
                f"__treadle_copy_bulk({r.address(to, 'char')}, {r.address(given, 'const char')}, "
                f"{r.value(size, 'u32')});"
            )
    raise NotTranslated(f"{one.name} is not translated")


def copy(r: Registers, one: Instruction) -> str:
    """cp.async: copies that a target may do later."""
    if one.parts[1] == "async" and "bulk" in one.parts[2:3]:
        return _copy_bulk(r, one)
    words = one.parts[2:]
    match words[:1]:
        case ("mbarrier",):
            (address,) = take(one, 1)
            waits = "__treadle_end_copies(); __treadle_wait_copies(0u);"
            arrives = f"__treadle_mbarrier_arrive({r.barrier(address)}, 1u, 0u);"
            return waits + (arrives if "noinc" in words else "")
        case ("commit_group",):
            return "__treadle_end_copies();"
        case ("wait_all",):
            return "__treadle_end_copies(); __treadle_wait_copies(0u);"
        case ("wait_group",):
            return f"__treadle_wait_copies({r.value(take(one, 1)[0], 'u32')});"
    if words[0] not in ("ca", "cg") or "bulk" in words:
        raise NotTranslated(f"{one.name} is not translated")
    to, given, size, *rest = one.arguments
    pointers = f"{r.address(to, 'char')}, {r.address(given, 'const char')}"
    if r.kind(size):  # an operand that is a constant
        whole = r.value(size, "u32")
    else:
        whole = size.text
    taken = whole
    if rest and r.kind(rest[0]) == "p":  # whether the source is left out
        ignored = r.value(Argument(rest[0].text, negated=not rest[0].negated), "pred")
        return f"__treadle_copy_later({pointers}, {whole}, {ignored});"
    elif rest and r.kind(rest[0]) != "l":  # not a policy of the cache
        taken = r.value(rest[0], "u32")
    return f"__treadle_copy_async<{whole}>({pointers}, {taken});"
