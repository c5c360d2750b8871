"""Rewrites a kernel's Python source so that Python computes the kernel's results.

Operators, assignments to locals and stores become calls of the helper object `_treadle`. Line
numbers and the file's name stay the user's, so that a debugger shows the user's source.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from treadle.core.nesting import deep_nesting
from treadle.lang.lower.operators import SYMBOLS
from treadle.lang.lower.scope import analyze
from treadle.lang.source import Source

HELPER = "_treadle"
# A variable that only some paths assign is zero on the others if the lowering has its type.
_START = """{name} = {helper}.zero("{name}")
if {name} is None:
    del {name}
"""
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}


def python_function(function: FunctionType, source: Source, helper: Any) -> Callable[..., Any]:
    """The rewritten function, with the globals and enclosing names of the original."""
    free = function.__code__.co_freevars
    code = _code(function, source)
    made: dict[str, Any] = {}
    exec(code, function.__globals__, made)
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:
            cells.append(None)
    result: Callable[..., Any] = made["_treadle_factory"](helper, *cells)
    assert len(free) == len(cells)
    return result


_codes: WeakKeyDictionary[FunctionType, tuple[Source, CodeType]] = WeakKeyDictionary()


def _code(function: FunctionType, source: Source) -> CodeType:
    known = _codes.get(function)
    if known is None or known[0] is not source:
        with deep_nesting(function.__name__, source.span(source.tree), source.text):
            known = _codes[function] = source, _compile(function, source)
    return known[1]


def _compile(function: FunctionType, source: Source) -> CodeType:
    # A new tree, since the lowering relies on the identity of nodes in its own.
    tree = _copy(source.tree)
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    tree.returns = None
    arguments = tree.args
    arguments.args += arguments.kwonlyargs  # all are given by position here
    arguments.defaults, arguments.kwonlyargs, arguments.kw_defaults = [], [], []
    for each in arguments.posonlyargs + arguments.args:
        each.annotation = None
    body: list[ast.stmt] = []
    for name in sorted(analyze(source.tree).partly):
        body += ast.parse(_START.format(helper=HELPER, name=name)).body
    for statement in body:
        ast.increment_lineno(statement, tree.lineno - 1)
    for statement in tree.body:
        done = _Rewriter().visit(statement)
        body += done if isinstance(done, list) else [done]
    tree.body = body
    names = [HELPER, *function.__code__.co_freevars]
    factory = ast.parse(f"def _treadle_factory({', '.join(names)}): pass").body[0]
    assert isinstance(factory, ast.FunctionDef)
    factory.body = [tree, ast.Return(ast.Name(tree.name, ast.Load()))]
    ast.copy_location(factory, tree)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    ast.increment_lineno(module, source.line_offset)
    return compile(module, source.file, "exec")


def _copy(node: Any) -> Any:
    if isinstance(node, list):
        return [_copy(each) for each in node]
    if not isinstance(node, ast.AST):
        return node
    fields = {name: _copy(value) for name, value in ast.iter_fields(node)}
    return ast.copy_location(type(node)(**fields), node)


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(
        ast.Attribute(ast.Name(HELPER, ast.Load()), name, ast.Load()), list(arguments), []
    )


class _Rewriter(ast.NodeTransformer):
    def __init__(self) -> None:
        self.count = 0

    def visit(self, node: ast.AST) -> Any:
        done = super().visit(node)
        for each in done if isinstance(done, list) else [done]:
            if isinstance(each, ast.AST) and hasattr(node, "lineno"):
                ast.copy_location(each, node)
        return done

    # --- expressions ---

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        symbol = ast.Constant(SYMBOLS[type(node.op)])
        return _call("binary", symbol, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, operand)
        return _call("unary", ast.Constant(_UNARY[type(node.op)]), operand)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if not all(type(op) in SYMBOLS for op in node.ops):
            self.generic_visit(node)
            return node
        symbols = ast.Constant(" ".join(SYMBOLS[type(op)] for op in node.ops))
        operands = [self.visit(each) for each in (node.left, *node.comparators)]
        return _call("compare", symbols, *operands)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return _call("item", self.visit(node.value), self.visit(node.slice))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return _call("attribute", self.visit(node.value), ast.Constant(node.attr))

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        self.generic_visit(node)
        node.value = _call("shown", node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        node.func = _call("function", node.func)
        return node

    # --- statements ---

    def visit_Assign(self, node: ast.Assign) -> Any:
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self._assign(node.targets[0], value)
        name = self._temporary()
        statements: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], value)]
        for target in node.targets:
            statements += self._assign(target, ast.Name(name, ast.Load()))
        return statements

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.Pass()
        return self._assign(node.target, self.visit(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        symbol = ast.Constant(SYMBOLS[type(node.op)])
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            old = ast.Name(node.target.id, ast.Load())
            return self._assign(node.target, _call("binary", symbol, old, value))
        opened = _call("opened", self._slot(node.target))
        return ast.Expr(_call("update", opened, symbol, value))

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        value = ast.Constant(None) if node.value is None else self.visit(node.value)
        return ast.Return(_call("result", value))

    def _temporary(self) -> str:
        self.count += 1
        return f"{HELPER}_{self.count}"

    def _assign(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Name):
            kept = _call("local", ast.Constant(target.id), value)
            return [ast.Assign([ast.Name(target.id, ast.Store())], kept)]
        if isinstance(target, (ast.Tuple, ast.List)):
            name = self._temporary()
            unpacked = _call("unpacked", value, ast.Constant(len(target.elts)))
            statements: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], unpacked)]
            for at, each in enumerate(target.elts):
                part = ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(at), ast.Load())
                statements += self._assign(each, part)
            return statements
        return [ast.Expr(_call("store", value, self._slot(target)))]

    def _slot(self, target: ast.expr) -> ast.expr:
        """An expression for the place of a target, an object with `load` and `store`."""
        if isinstance(target, ast.Subscript):
            return _call("element", self._slot(target.value), self.visit(target.slice))
        if isinstance(target, ast.Attribute):
            return _call("member", self._slot(target.value), ast.Constant(target.attr))
        load = _copy(target)
        if isinstance(load, ast.Name):
            load.ctx = ast.Load()
            return load
        visited: ast.expr = self.visit(load)
        return visited
