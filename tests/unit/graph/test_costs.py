"""What operations are said to cost follows from the code that they are."""

import pytest

from treadle.graph import operations
from treadle.ir.types import SCALARS, Vector
from treadle.tensor.elementwise_functions import RULES

_SHORTEST = 12  # operations of the IR for one that is counted, at most
_NO_OPERATION = ("conj", "positive", "real")  # of real numbers: the function gives its operand
_TYPES = {
    "f32": SCALARS["f32"],
    "f64": SCALARS["f64"],
    "c64": Vector(SCALARS["f32"], 2),
}


@pytest.mark.parametrize("short", _TYPES)
def test_functions_cost_what_their_code_does(short):
    seen = 0
    for name, rule in RULES.items():
        kind = "complex" if short == "c64" else "float"
        types = (_TYPES[short],) * rule.operands
        if (
            name in _NO_OPERATION
            or kind not in rule.kinds
            or operations.direct_of(name, types) is not None
        ):
            continue
        functions = operations.functions_of(name, None, types)
        size = operations.size_of_functions(functions)
        cost = operations.cost_of(name, short)
        assert size <= _SHORTEST * max(cost, 1), (
            f"{name} of {short}: {size} operations cost {cost}: add it to COSTS of "
            "graph/operations.py"
        )
        seen += 1
    assert seen > 15


def test_a_function_of_the_users_costs_what_its_code_does():
    types = (SCALARS["f32"],) * 2
    functions = operations.functions_of("pow", None, types)
    applied = operations.Applied("power", functions)
    assert operations.cost_of("apply", "f32", applied) >= operations.cost_of("pow") // 2
