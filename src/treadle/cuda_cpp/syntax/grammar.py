"""The grammar rules that modules below their own call, as one record."""

from __future__ import annotations

from treadle.cuda_cpp.syntax import (
    constraints,
    expressions,
    functions,
    lambdas,
    statements,
    templates,
    types,
)
from treadle.cuda_cpp.syntax.cursor import Grammar

GRAMMAR = Grammar(
    assignment=expressions.assignment,
    bracketed=expressions.bracketed,
    unary=expressions.unary,
    specifiers=types.specifiers,
    type_name=types.type_name,
    conversion_type=types.conversion_type,
    template=templates.template,
    function=functions.function,
    block=statements.block,
    lambda_expression=lambdas.lambda_expression,
    requires_expression=constraints.requires_expression,
)
