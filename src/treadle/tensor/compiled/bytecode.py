"""The names that a Python function's bytecode reads from its environment, and how it uses them."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

# Methods that change a container and return nothing of its content.
_CHANGES = frozenset(
    {"add", "append", "appendleft", "clear", "extend", "extendleft", "insert", "update"}
)
# Names of functions that read attributes whose names are not in the code.
_ANY_NAME = frozenset(
    {"vars", "dir", "__dict__", "__getattribute__", "__getstate__", "__reduce_ex__", "__slots__"}
)
_BY_NAME = frozenset({"getattr", "hasattr"})
# Names with which code reads class attributes that the object or a derived class overrides.
_OVERRIDDEN = frozenset({"super", "__bases__", "__class__", "__mro__", "mro", "type"})
_CALLS = ("PRECALL", "CALL", "CALL_KW")
_VARIABLES = ("LOAD_GLOBAL", "LOAD_NAME")
_CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_SETS = ("STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")
_NO_READS = ("STORE", "DELETE", "IMPORT_NAME")


class Chain(NamedTuple):
    """A chain of attributes such as `np.random.rand`, read from a variable or from a module that
    the code imports."""

    module: str | None
    names: tuple[str, ...]
    is_called: bool


class Reads(NamedTuple):
    """The names that code reads. For variables and attributes it says whether their value is used,
    or only changed, as a list is by `append`."""

    variables: dict[str, bool]  # of the module
    cells: dict[str, bool]  # of enclosing functions
    attributes: dict[str, bool]
    optional: frozenset[str]  # attributes that may be missing without an error
    modules: tuple[str, ...]  # that are imported
    any_name: bool  # whether attributes are read by unknown names
    all_names: bool  # whether it reads which attributes there are
    overridden: bool  # whether it reads overridden attributes of classes
    chains: tuple[Chain, ...] = ()
    stores: frozenset[str] = frozenset()  # variables and attributes that it sets


NOTHING = Reads({}, {}, {}, frozenset(), (), False, False, False)


@lru_cache(maxsize=4096)
def reads_of(code: types.CodeType) -> Reads:
    """The names that code reads. Of functions defined in it only their closure variables count:
    they have bytecode of their own."""
    steps = [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "NOP")]
    variables: dict[str, bool] = {}
    cells: dict[str, bool] = {}
    attributes: dict[str, bool] = {}
    modules: list[str] = []
    imported: dict[str, Chain] = {}  # by the variable
    chains: dict[Chain, None] = {}
    stores: set[str] = set()
    all_names = any_name = bool(_ANY_NAME.intersection(code.co_names))
    overridden = bool(_OVERRIDDEN.intersection((*code.co_names, *code.co_freevars)))
    for at, step in enumerate(steps):
        name, op = step.argval, step.opname
        last = name[-1] if type(name) is tuple and name else name  # a pair
        if op in _VARIABLES or op in _CELLS or (op.startswith("LOAD_FAST") and last in imported):
            chains[_chain(steps, at, last, imported)] = None
        if op in _CELLS:
            cells[name] = cells.get(name, False) or _is_used(steps, at)
        elif step.opcode in dis.hasname and not op.startswith(_NO_READS):
            known = variables if op in _VARIABLES else attributes
            known[name] = known.get(name, False) or _is_used(steps, at)
            if op in _VARIABLES and name in _BY_NAME:
                any_name = any_name or not _has_constant_name(steps, at)
        elif op == "IMPORT_NAME":
            modules.append(name)
            imported.update(_imported(steps, at))
        elif op in _SETS:
            stores.add(name)
        elif op == "MATCH_CLASS":
            any_name = True
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            passed = reads_of(inner).cells
            for name in set(inner.co_freevars).intersection(code.co_freevars):
                cells[name] = cells.get(name, False) or passed.get(name, True)
    texts = {part for text in _texts(code.co_consts) for part in text.split(".")}
    texts = {each for each in texts if each.isidentifier()}
    for each in texts:
        attributes[each] = True
    optional = texts
    if "AttributeError" in variables:
        optional = optional | attributes.keys()
    return Reads(
        variables, cells, attributes, frozenset(optional), tuple(modules), any_name, all_names,
        overridden, tuple(chains), frozenset(stores),
    )  # fmt: skip


def _imported(steps: Sequence[dis.Instruction], at: int) -> Iterator[tuple[str, Chain]]:
    """The variables that an import sets, each with the chain that it stands for."""
    module, names = steps[at].argval, steps[at - 1].argval  # of `from module import names`
    part: tuple[str, ...] = ()
    is_whole = bool(names)
    for step in steps[at + 1 :]:
        if step.opname == "IMPORT_FROM":
            is_whole = True  # of `import a.b as c`, too
            part = (step.argval,) if names else ()
        elif step.opname.startswith("STORE"):
            yield step.argval, Chain(module if is_whole else module.split(".")[0], part, False)
            if not names:
                return
        elif names or step.opname not in ("SWAP", "POP_TOP"):
            return


def _chain(
    steps: Sequence[dis.Instruction], at: int, name: str, imported: dict[str, Chain]
) -> Chain:
    """The chain of attributes read from the variable that an instruction loads."""
    start = imported.get(name, Chain(None, (name,), False))
    names = list(start.names)
    end = at
    while end + 1 < len(steps) and steps[end + 1].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        end += 1
        names.append(steps[end].argval)
    last, after = steps[end], steps[end + 1 : end + 2]
    is_called = (
        last.opname == "LOAD_METHOD"
        or "NULL" in steps[at].argrepr + last.argrepr
        or steps[max(at - 1, 0)].opname == "PUSH_NULL"
        or any(each.opname == "PUSH_NULL" for each in after)
    )
    return Chain(start.module, tuple(names), is_called)


def _is_used(steps: Sequence[dis.Instruction], at: int) -> bool:
    """Whether the value that an instruction loads is used, and not only changed."""
    after = steps[at + 1 : at + 3]
    if not after:
        return True
    if after[0].opname in ("LOAD_METHOD", "LOAD_ATTR") and after[0].argval in _CHANGES:
        return False
    return not (len(after) == 2 and after[1].opname == "STORE_SUBSCR")


def _has_constant_name(steps: Sequence[dis.Instruction], at: int) -> bool:
    """Whether the second argument of the `getattr` that an instruction loads is a constant."""
    depth, is_constant = 0, False
    for step in steps[at + 1 :]:
        if step.opname in _CALLS and depth in (2, 3):
            return is_constant
        if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
            return False
        try:
            change = dis.stack_effect(step.opcode, step.arg, jump=False)
        except ValueError:
            return False
        depth += change
        if depth < 0 or (depth == 2 and is_constant):  # the argument was computed from the constant
            return False
        if depth == 2:
            is_constant = step.opname == "LOAD_CONST" and change == 1
    return False


def _texts(constants: Sequence[Any]) -> Iterator[str]:
    for each in constants:
        if isinstance(each, str):
            yield each
        elif isinstance(each, (tuple, frozenset)):
            yield from _texts(tuple(each))
