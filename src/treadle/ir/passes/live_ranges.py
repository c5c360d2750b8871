"""One variable for each region, where no region reads what another one assigned.

A name that a program uses again is one variable, and a variable that several regions mention has a
slot for each thread (`storage`). If each region assigns it before it reads it, no value is carried
from one to another, and each gets a variable of its own, which can stay in a register:

    at = row[k]                    at = row[k]
    s += x[at + i]                 s += x[at + i]
    barrier                        barrier
    at = row[k] + 1                at.1 = row[k] + 1
    s += x[at + i]                 s += x[at.1 + i]

That is more than a load saved: what is in slots may differ from thread to thread for all that is
known, so vectors of neighbouring elements would be gathered one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from treadle.ir import nodes as n
from treadle.ir.passes.names import Names
from treadle.ir.passes.regions import Leaf, Region, Unit, leaves_of, names_in
from treadle.ir.traverse import rewrite_block


def split_live_ranges(units: list[Unit], kept: Iterable[str], names: Names) -> None:
    """Rename in the regions of a kernel the variables that none of them reads before it assigns
    them; those in `kept` stay as they are."""
    mentioning: dict[str, list[Leaf]] = {}
    carried = set(kept)
    for leaf in leaves_of(units):
        for name in leaf.names:
            mentioning.setdefault(name, []).append(leaf)
        if isinstance(leaf.unit, Region):
            carried |= read_early(leaf.unit.statements)
        else:
            carried |= leaf.names
    for name, leaves in sorted(mentioning.items()):
        if name in carried or len(leaves) == 1:
            continue
        for leaf in leaves:
            if name not in leaf.declared:
                _rename(leaf.unit, name, names.fresh(name))


def _rename(unit: Unit, name: str, own: str) -> None:
    assert isinstance(unit, Region)
    found: list[n.Variable] = []

    def change(node: object) -> object:
        if isinstance(node, n.Variable) and node.name == name:
            found.append(replace(node, name=own))
            return found[-1]
        return node

    statements = rewrite_block(tuple(unit.statements), change)
    unit.statements = [n.Declare(found[0], None, found[0].span), *statements]


def read_early(block: Iterable[n.Statement], *, zeroed: bool = False) -> set[str]:
    """The variables that statements may read before they have assigned them. A declaration without
    a value counts as an assignment if it is `zeroed`."""
    found: set[str] = set()
    _scan(block, set(), found, zeroed)
    return found


def _scan(
    block: Iterable[n.Statement], assigned: set[str], found: set[str], zeroed: bool
) -> set[str] | None:
    """Add what is read early, given what is assigned before. What is assigned at the end, or None
    if no thread comes there."""

    def read(*parts: object) -> None:
        for part in parts:
            if part is not None:
                found.update(names_in(part) - assigned)

    for node in block:
        match node:
            case n.Declare(variable, value):
                read(value)
                assigned.discard(variable.name)
                if value is not None or zeroed:
                    assigned.add(variable.name)
            case n.Assign(n.Variable(name), value):
                read(value)
                assigned.add(name)
            case n.If(condition, then, otherwise):
                read(condition)
                ends = [_scan(part, set(assigned), found, zeroed) for part in (then, otherwise)]
                reached = [end for end in ends if end is not None]
                if not reached:
                    return None
                assigned = set.intersection(*reached)
            case n.For():
                read(node.start, node.stop, node.by)
                _scan(node.body, assigned | {node.variable.name}, found, zeroed)
            case n.While():
                read(node.condition)
                _scan(node.body, set(assigned), found, zeroed)
                _scan(node.update, set(assigned), found, zeroed)
            case n.Break() | n.Continue() | n.Return():
                read(node)
                return None
            case n.Atomic() | n.Subgroup() | n.Clock() | n.CallStatement():
                read(*_given(node))
                if node.result is not None:
                    assigned.add(node.result.name)
            case _:
                read(node)
    return assigned


def _given(node: n.Atomic | n.Subgroup | n.Clock | n.CallStatement) -> tuple[object, ...]:
    """What a statement with a result reads."""
    match node:
        case n.Atomic(_, place, operands):
            return place, operands
        case n.Subgroup():
            return node.operands, node.mask
        case n.CallStatement(_, arguments):
            return (arguments,)
    return ()
