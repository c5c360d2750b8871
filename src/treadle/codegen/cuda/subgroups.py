"""Values exchanged among the threads of a warp.

The last warp of a block may have fewer than 32 threads; a lane without a thread takes no part.
"""

from __future__ import annotations

from treadle.codegen.c_family.module import Module
from treadle.codegen.c_family.places import place_text
from treadle.codegen.c_family.scope import Scope
from treadle.codegen.nvidia import MULTIPLIED
from treadle.ir import nodes as n
from treadle.ir.matrices import EXCHANGED, EXCHANGES, FIRST, PRODUCTS
from treadle.ir.types import BOOL, COMPONENTS, I32, Scalar

NAMES = (
    "shuffle", "shuffle_up", "shuffle_down", "shuffle_xor", "warp_sum", "warp_min", "warp_max",
    "warp_prefix_sum", "from_lane", "warp_mask", "warp_size", "lane", "thread_number",
    "__shfl_sync", "__all_sync", "__any_sync", "__ballot_sync", "__syncwarp", "__syncthreads",
    "__threadfence", "__threadfence_block", "__threadfence_system", "__activemask",
    "__match_any_sync", "__match_all_sync", "match_any", "match_all", "warp_and", "warp_or",
    "warp_xor", "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync",
    "__reduce_and_sync", "__reduce_or_sync", "__reduce_xor_sync", "copy_later_4",
    "copy_later_8", "copy_later_16",
    "end_copies", "wait_copies", *PRODUCTS, *EXCHANGES,
    *(f"{name}_{count}" for name in EXCHANGES for count in (1, 2)),
)  # fmt: skip

_VOTES = {"vote_all": "__all_sync", "vote_any": "__any_sync", "ballot": "__ballot_sync"}
_SOURCES = {
    "shuffle_up": "(int)({lane} - (unsigned int)delta)",
    "shuffle_down": "(int)({lane} + (unsigned int)delta)",
    "shuffle_xor": "(int){lane} ^ delta",
}
_COMBINED = {
    "sum": "add", "prefix_sum": "add", "min": "min", "max": "max", "and": "and", "or": "or",
    "xor": "xor",
}  # fmt: skip
_MATCHES = {"match_any": "__match_any_sync", "match_all": "__match_all_sync"}
_SIGNS = {"and": "&", "or": "|", "xor": "^"}


def subgroup(scope: Scope, node: n.Subgroup) -> str:
    """The value of a subgroup operation."""
    module = scope.module
    module.required.add("subgroups")
    if node.op == "active":
        return "__activemask()"
    if node.op in EXCHANGES:
        (row,) = node.operands
        assert isinstance(row, n.Load)
        return f"{_rows(module, node)}(&{place_text(scope, row.place)})"
    if node.op in n.MATRIX_OPERATIONS:
        given = ", ".join(scope.text(operand) for operand in node.operands)
        return f"{_multiply(module, node)}({given})"
    operand = scope.text(node.operands[0])
    named = None if node.mask is None else scope.text(node.mask)
    if node.op in _VOTES:
        value = f"{_VOTES[node.op]}({named or mask(module)}, {operand})"
        return value if node.op == "ballot" else f"{value} != 0"
    type = node.operands[0].type
    assert isinstance(type, Scalar)
    if node.op in _MATCHES:
        return f"{_match(module, node.op, type)}({named or mask(module)}, {operand})"
    if node.op in _COMBINED and named is not None:
        return _native_reduction(module, node.op, type, named, operand)
    if node.op in _COMBINED:
        return f"{_reduction(module, node.op, type)}({operand})"
    name = _shuffle(module, node.op, type, named is not None)
    first = "" if named is None else f"{named}, "
    return f"{name}({first}{operand}, {scope.text(node.operands[1])})"


def _multiply(module: Module, node: n.Subgroup) -> str:
    """The function that multiplies matrices which the lanes of a warp hold together."""
    key = ("matrices", node.op)
    if key not in module.helpers:
        first, second, sums = (module.register(operand.type) for operand in node.operands)
        fn = module.language.function
        letter = "f" if PRODUCTS[node.op].sums.is_float else "r"
        parts = COMPONENTS[:4]
        results = ", ".join(f'"+{letter}"(sums.{part})' for part in parts)
        words = [*(f"a.{part}" for part in parts), *(f"b.{part}" for part in parts[:2])]
        given = ", ".join(f'"r"({word})' for word in words)
        module.helpers[key] = (
            f"{fn} {sums} {node.op}({first} a, {second} b, {sums} sums) {{\n"
            f'    asm volatile("mma.sync.aligned.{MULTIPLIED[node.op]} "\n'
            '        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"\n'
            f"        : {results}\n        : {given});\n    return sums;\n}}"
        )
    return node.op


def _rows(module: Module, node: n.Subgroup) -> str:
    """The function that loads rows of matrices from shared memory."""
    count = EXCHANGED[node.result.type]
    name = node.op if count == 4 else f"{node.op}_{count}"
    key = ("matrices", name)
    if key not in module.helpers:
        row, words = module.register(FIRST), module.register(node.result.type)
        parts = ["words"] if count == 1 else [f"words.{part}" for part in COMPONENTS[:count]]
        results = ", ".join(f'"=r"({part})' for part in parts)
        places = ", ".join(f"%{at}" for at in range(count))
        turned = ".trans" if node.op == "matrix_columns" else ""
        module.helpers[key] = (
            f"{module.language.function} {words} {name}(const {row}* row) {{\n"
            f"    {words} words;\n"
            f'    asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 "\n'
            f'        "{{{places}}}, [%{count}];"\n'
            f"        : {results}\n"
            '        : "r"((unsigned int)__cvta_generic_to_shared(row)) : "memory");\n'
            "    return words;\n}"
        )
    return name


# --- which threads -------------------------------------------------------------------------------


def thread_number(module: Module) -> str:
    """The number of a thread in its block, x fastest."""
    block = module.block
    if block.count == block.x:
        return "threadIdx.x"
    if "thread_number" not in module.helpers:
        module.helpers["thread_number"] = (
            f"{module.language.function} unsigned int thread_number() {{\n"
            f"    return threadIdx.x + {block.x} * (threadIdx.y + {block.y} * threadIdx.z);\n}}"
        )
    return "thread_number()"


def lane(module: Module) -> str:
    """The lane of a thread in its warp, as an unsigned number."""
    number = thread_number(module)
    if "lane" not in module.helpers:
        module.helpers["lane"] = (
            f"{module.language.function} unsigned int lane() {{\n    return {number} % 32;\n}}"
        )
    return "lane()"


def mask(module: Module) -> str:
    """The lanes of this warp that have a thread, as bits."""
    rest = module.block.count % 32
    if rest == 0:
        return "0xffffffff"
    last = f"0x{(1 << rest) - 1:x}"
    if module.block.count < 32:
        return last
    return _last_warp(module, "warp_mask", last, "0xffffffff", "The lanes that have a thread.")


def _size(module: Module) -> str:
    """How many lanes of this warp have a thread."""
    rest = module.block.count % 32
    if rest == 0 or module.block.count < 32:
        return f"{rest or 32}u"
    return _last_warp(module, "warp_size", f"{rest}u", "32u", "The number of its threads.")


def _last_warp(module: Module, name: str, last: str, others: str, comment: str) -> str:
    number = thread_number(module)
    if name not in module.helpers:
        module.helpers[name] = (
            f"// Of the last warp of a block, which is not full. {comment}\n"
            f"{module.language.function} unsigned int {name}() {{\n"
            f"    return {number} < {module.block.count // 32 * 32} ? {others} : {last};\n}}"
        )
    return f"{name}()"


# --- functions -----------------------------------------------------------------------------------


def _from_lane(module: Module, type: Scalar, masked: bool = False) -> str:
    """The function that gives another lane's value, if there is such a thread. One that is masked
    takes the threads that take part."""
    key = ("from_lane", type, masked)
    if key in module.helpers:
        return "from_lane"
    register = module.scalar(type)
    fetch = f"__shfl_sync({'mask' if masked else mask(module)}, {{}}, source & 31)"
    if type.name in module.language.structs:
        value = f"{register}{{(unsigned short){fetch.format('(int)value.bits')}}}"
    elif type == BOOL:
        value = f"{fetch.format('(int)value')} != 0"
    elif type.bits < 32:
        value = f"({register}){fetch.format('(int)value')}"
    else:
        value = fetch.format("value")
    module.helpers[key] = (
        f"{module.language.function} {register} "
        f"from_lane({_MASK if masked else ''}{register} value, int source) {{\n"
        f"    return {value};\n}}"
    )
    return "from_lane"


_MASK = "unsigned int mask, "


def _shuffle(module: Module, op: str, type: Scalar, masked: bool) -> str:
    key = (op, type, masked)
    if key in module.helpers:
        return op
    register = module.scalar(type)
    fn = module.language.function
    given, handed = (_MASK, "mask, ") if masked else ("", "")
    if op == "shuffle":
        _from_lane(module, type, masked)
        size = _size(module)
        module.helpers[key] = (
            "// A lane's value; the thread's own where there is no such lane.\n"
            f"{fn} {register} shuffle({given}{register} value, int source) {{\n"
            f"    {register} moved = from_lane({handed}value, source);\n"
            f"    return (unsigned int)source < {size} ? moved : value;\n}}"
        )
        return op
    _shuffle(module, "shuffle", type, masked)
    source = _SOURCES[op].format(lane=lane(module))
    module.helpers[key] = (
        f"{fn} {register} {op}({given}{register} value, int delta) {{\n"
        f"    return shuffle({handed}value, {source});\n}}"
    )
    return op


def _match(module: Module, op: str, type: Scalar) -> str:
    """The function that gives the lanes with the same bits."""
    key = (op, type)
    if key in module.helpers:
        return op
    register, fn = module.scalar(type), module.language.function
    bits = "value.bits" if type.name in module.language.structs else "value"
    if type.bits < 32:
        bits = f"(unsigned int){bits}"
    body = f"    return {_MATCHES[op]}(mask, {bits});\n"
    if op == "match_all":
        body = f"    int all;\n    return {_MATCHES[op]}(mask, {bits}, &all);\n"
    module.helpers[key] = f"{fn} unsigned int {op}({_MASK}{register} value) {{\n{body}}}"
    return op


def _native_reduction(module: Module, op: str, type: Scalar, named: str, operand: str) -> str:
    """A reduction of integers of 32 bits over the threads that a mask names."""
    call = f"__reduce_{_COMBINED[op]}_sync({named}, "
    if op in _SIGNS and type.is_signed:  # only for unsigned ones
        return f"({module.scalar(type)}){call}(unsigned int)({operand}))"
    return f"{call}{operand})"


def _reduction(module: Module, op: str, type: Scalar) -> str:
    name = f"warp_{op}"
    key = (name, type)
    if key in module.helpers:
        return name
    _from_lane(module, type)
    register, fn = module.scalar(type), module.language.function
    together = _together(module, _COMBINED[op], type)
    own, size = lane(module), _size(module)
    if op == "prefix_sum":
        module.helpers[key] = (
            "// The sum of the lanes before the thread's own.\n"
            f"{fn} {register} {name}({register} value) {{\n"
            f"    {register} sum = value;\n"
            "    for (unsigned int delta = 1; delta < 32; delta *= 2) {\n"
            f"        {register} other = from_lane(sum, {own} - delta);\n"
            f"        sum = {own} >= delta ? {together.format('sum', 'other')} : sum;\n"
            "    }\n"
            f"    {register} before = from_lane(sum, {own} - 1);\n"
            f"    return {own} > 0 ? before : {module.zero(type)};\n}}"
        )
        return name
    module.helpers[key] = (
        f"{fn} {register} {name}({register} value) {{\n"
        "    for (unsigned int delta = 16; delta > 0; delta /= 2) {\n"
        f"        {register} other = from_lane(value, {own} + delta);\n"
        f"        value = {own} + delta < {size} ? {together.format('value', 'other')} : value;\n"
        "    }\n"
        "    return from_lane(value, 0);\n}"
    )
    return name


def _together(module: Module, op: str, type: Scalar) -> str:
    """Two values as one: a format of both."""
    register = module.scalar(type)
    if op == "add":
        if type.name in module.language.structs:
            module.helper("operator+", type)
        if type.kind == "int" and type.bits >= 32:
            return f"{module.helper('wrap_add', type)}({{}}, {{}})"
        return "{} + {}" if type.bits >= 32 or type.is_float else f"({register})({{}} + {{}})"
    if op in _SIGNS:
        return f"({register})({{}} {_SIGNS[op]} {{}})"
    name = {"min": "minimum", "max": "maximum"}[op]
    if type.is_float and type.bits == 16:
        from treadle.ir.types import F32

        module.helper("to_float", type)
        module.helper(f"to_{register}")
        called = module.helper(name, F32)
        return f"to_{register}({called}(to_float({{}}), to_float({{}})))"
    if type.is_integer and type.bits < 32:
        return f"({register}){module.helper(name, I32)}({{}}, {{}})"
    return f"{module.helper(name, type)}({{}}, {{}})"
