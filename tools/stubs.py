"""Write what type checkers and editors see of names that tables make when treadle is imported.

Of which `docs/design/typing.md` tells: the names that packages import when they are first used
(`core/deferred_imports.py`; a stub beside each), the methods of `Tensor`
(`tensor/declarations.pyi`), the names of the kernel language that are functions of tensors as well
(`lang/__init__.pyi`), and the types that annotate kernels (`lang/annotations.pyi`). Signatures and
docstrings are those of the running program. `tests/unit/test_stubs.py` says when they are out of
date.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tools import numpy_stubs, torch_stubs  # noqa: E402
from treadle import lang  # noqa: E402
from treadle.core.dtypes import ALL_DTYPES  # noqa: E402
from treadle.lang import builtins  # noqa: E402
from treadle.lang.builtins import BuiltinFunction, BuiltinVariable  # noqa: E402
from treadle.tensor.axes import OTHER_NAMES  # noqa: E402
from treadle.tensor.method_table import ELSEWHERE  # noqa: E402
from treadle.tensor.operators import BINARY, COMPARISONS, UNARY  # noqa: E402
from treadle.tensor.tensor import Tensor  # noqa: E402

SOURCE = ROOT / "src" / "treadle"
WRITTEN = "# Written by tools/stubs.py: change the tables or docstrings that it reads instead.\n"

# Where a name in a signature comes from.
NAMES = {
    **dict.fromkeys(("Callable", "Iterable", "Iterator", "Sequence"), "collections.abc"),
    **dict.fromkeys(("Any", "Literal", "TypeVar", "overload"), "typing"),
    **dict.fromkeys(
        ("Array", "ArrayLike", "Axes", "DeviceLike", "DTypeLike", "Number", "Shape"),
        "treadle.tensor.annotations",
    ),
    "Device": "treadle.runtime.devices",
    "DType": "treadle.core.dtypes",
    "Generator": "treadle.tensor.generator",
    "Tensor": "treadle.tensor.tensor",
    "TopK": "treadle.tensor.sorting",
    "Fragment": "treadle.lang.values",
    "Value": "treadle.lang.values",
}
_PLAIN = {"None", "Ellipsis", "bool", "int", "float", "complex", "str", "list", "tuple", "dict"}


def doc_of(documented: Any) -> str:
    """A docstring without its indentation."""
    return inspect.getdoc(documented) or ""


def _docstring(text: str, indent: str) -> str:
    lines = text.splitlines()
    closing = '"""' if len(lines) == 1 else f'\n{indent}"""'
    raw = "r" if "\\" in text else ""
    shown = textwrap.indent("\n".join(lines), indent).lstrip()
    return f'{indent}{raw}"""{shown}{closing}\n'


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        raise AssertionError("a public function has a parameter or result without a type")
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text if "Literal" in text else re.sub("['\"]", "", text)


def _default(value: Any) -> str:
    plain = value is None or isinstance(value, (bool, int, str))
    return repr(value) if plain or (isinstance(value, float) and abs(value) < 1e300) else "..."


def _parameters(function: Callable[..., Any], renamed: dict[str, str]) -> list[str]:
    """The parameters as they are written, with `/` and `*` between them."""
    found: list[str] = []
    before = None
    for each in inspect.signature(function).parameters.values():
        if before is each.POSITIONAL_ONLY and each.kind is not each.POSITIONAL_ONLY:
            found.append("/")
        if each.kind is each.KEYWORD_ONLY and before not in (
            each.KEYWORD_ONLY,
            each.VAR_POSITIONAL,
        ):
            found.append("*")
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        text = f"{stars}{renamed.get(each.name, each.name)}: {_annotation(each.annotation)}"
        if each.default is not each.empty:
            text += f" = {_default(each.default)}"
        found.append(text)
        before = each.kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        found.append("/")
    return found


def _result(function: Callable[..., Any]) -> str:
    return _annotation(inspect.signature(function).return_annotation)


def _define(name: str, parameters: list[str], result: str, doc: str, indent: str = "") -> str:
    """The text of one declaration."""
    head = f"{indent}def {name}({', '.join(parameters)}) -> {result}:"
    if len(head) > 96:
        inside = "".join(f"{indent}    {each},\n" for each in parameters)
        head = f"{indent}def {name}(\n{inside}{indent}) -> {result}:"
    return f"{head}\n{_docstring(doc, indent + '    ')}" if doc else f"{head} ...\n"


def _imports(text: str, without: tuple[str, ...] = ()) -> str:
    """The imports of the names that a text's annotations use."""
    code = re.sub(r'r?""".*?"""', "", text, flags=re.DOTALL)
    modules: dict[str, list[str]] = {}
    for name in sorted(set(re.findall(r"[A-Za-z_]\w*", code)) & NAMES.keys()):
        if name not in without:
            modules.setdefault(NAMES[name], []).append(name)
    lines = [f"from {module} import {', '.join(names)}\n" for module, names in modules.items()]
    standard = sorted(line for line in lines if "treadle" not in line)
    ours = sorted(line for line in lines if "treadle" in line)
    numpy = ["import numpy as np\n"] if re.search(r"\bnp\.", code) else []
    return "\n".join("".join(part) for part in (standard, numpy, ours) if part)


# --- Tensor --------------------------------------------------------------------------------------


def _own_names() -> set[str]:
    """What the class statement of Tensor defines, which checkers see."""
    tree = ast.parse((SOURCE / "tensor" / "tensor.py").read_text())
    (body,) = (n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    found = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found.update(each.id for each in node.targets if isinstance(each, ast.Name))
    return found


_NOT_DECLARED = {"__module__", "__doc__", "__slots__", "__weakref__", "_seen", "__firstlineno__",
                 "__static_attributes__"}  # fmt: skip
_OPERAND = "ArrayLike"


def given_to_tensor() -> dict[str, Any]:
    """What Tensor has besides what its class statement defines, by name."""
    left = sorted(vars(Tensor).keys() - _own_names() - _NOT_DECLARED - ELSEWHERE.keys())
    for name in left:
        getattr(Tensor, name)  # what is deferred is imported, and takes its place
    return {name: vars(Tensor)[name] for name in left}


def _operators() -> dict[str, tuple[str, str]]:
    """The special methods that are operators: their other parameter, and the result."""
    found = {f"__{short}__": ("", "Tensor") for short in (*UNARY, "pos")}
    for short in (*BINARY, "matmul"):
        for name in (f"__{short}__", f"__r{short}__", f"__i{short}__"):
            found[name] = (_OPERAND, "Tensor")
    for short in COMPARISONS:
        found[f"__{short}__"] = ("object" if short in ("eq", "ne") else _OPERAND, "Tensor")
    return found


def _methods() -> Iterator[str]:
    operators = _operators()
    for name, value in given_to_tensor().items():
        if name in operators:
            other, result = operators[name]
            parameters = ["self", *([f"other: {other}", "/"] if other else [])]
            text = _define(name, parameters, result, "", "    ")
            yield text.rstrip() + "  # type: ignore[override]\n" if other == "object" else text
        elif isinstance(value, property):
            assert value.fget is not None
            result = _result(value.fget)
            yield "    @property\n" + _define(name, ["self"], result, doc_of(value), "    ")
        else:
            yield from _method(name, value)


_OF_SEVERAL = ("flip", "permute", "permute_dims", "roll")  # PyTorch calls their axes dims


def _method(name: str, function: Callable[..., Any]) -> Iterator[str]:
    forms: list[dict[str, str]] = [{}]
    if hasattr(function, "takes_dim"):
        axes = "dims" if name in _OF_SEVERAL else "dim"
        forms.append({**{ours: other for other, ours in OTHER_NAMES.items()}, "axis": axes})
    for at, form in enumerate(forms):
        _, *others = _parameters(function, form)
        if others[:1] == ["/"]:
            others = ["/", *others[1:]]
        if form and any(each.startswith("keepdim:") for each in others):  # either may be said
            others += [*([] if "*" in others else ["*"]), "keepdims: bool = False"]
        mark = "    @overload\n" if len(forms) > 1 else ""
        doc = "" if at else doc_of(function)
        yield mark + _define(name, ["self", *others], _result(function), doc, "    ")


def declared_methods() -> str:
    """The text of `tensor/declarations.pyi`."""
    body = "\n".join(_methods())
    head = '"""The methods, attributes and operators that tables give to `Tensor`."""\n\n'
    text = f'class Declarations:\n    """What `Tensor` has besides its class."""\n\n{body}'
    return f"{WRITTEN}{head}{_imports(text)}\n{text}"


# --- the kernel language -------------------------------------------------------------------------

# By the parameters' names in `usage`; all others are numbers, vectors and structs.
_TYPES = {"lane": "int", "mask": "int", "n": "int", "shape": "Shape | None"}
_RESULTS = {
    "atomic": "Value", "barrier": "None", "math": "Value", "memory": "_Array", "subgroup": "Value",
    "value": "Value",
}  # fmt: skip
_OWN_RESULTS = {
    "ballot": "int", "fragment": "Fragment", "lane": "int", "static_range": "range",
    "subgroup_size": "int",
    "vote_all": "_builtins.bool", "vote_any": "_builtins.bool",
}  # fmt: skip


def _builtin(function: BuiltinFunction) -> Iterator[str]:
    name, doc = function.name, doc_of(function)
    if function.group == "index":
        for axes in (1, 2, 3):
            result = "int" if axes == 1 else f"tuple[{', '.join(['int'] * axes)}]"
            text = _define(name, [f"axes: Literal[{axes}]", "/"], result, doc if axes == 1 else "")
            yield f"@overload\n{text}"
        return
    usage = function.usage.partition("(")[2].rstrip(")")
    names = usage.split(", ") if usage else []
    # What is a function of tensors, too, is chosen by its arguments' types.
    usual = "Any" if function.outside is None else "Value | complex"
    parameters = [f"{each}: {_TYPES.get(each, usual)}" for each in names]
    least, _ = function.arity
    parameters[least:] = [f"{each} = ..." for each in parameters[least:]]
    if name == "static_range":
        names, parameters = [], ["start: int", "stop: int = ...", "step: int = ..."]
    assert least <= len(parameters), name
    if parameters and function.group != "memory":
        parameters.append("/")
    result = _OWN_RESULTS.get(name) or _RESULTS[function.group]
    if function.outside is None:
        yield _define(name, parameters, result, doc)
        return
    yield "@overload\n" + _define(name, parameters, result, doc)
    outside = function.outside
    yield "@overload\n" + _define(name, _parameters(outside, {}), _result(outside), "")


def language() -> str:
    """The text of `lang/__init__.pyi`."""
    tree = ast.parse((SOURCE / "lang" / "namespace.py").read_text())
    taken = {name for name in lang.__all__ if name not in builtins.__all__}
    marked = _annotating()
    imports = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module not in (None, "__future__"):
            kept = [each for each in node.names if (each.asname or each.name) in taken - marked]
            names = ", ".join(f"{each.name} as {each.asname or each.name}" for each in kept)
            imports += [f"from {node.module} import {names}\n"] if kept else []
    for place, names in lang.NAMES.items():
        if place != "treadle.lang.namespace":
            imports += [f"from {place} import {each} as {each}\n" for each in names.split()]
    own = ", ".join(f"{name} as {name}" for name in sorted(marked))
    body = []
    for name in sorted(builtins.__all__):
        value = builtins.NAMES[name]
        if isinstance(value, BuiltinVariable):
            body.append(f"{name}: BuiltinVariable\n{_docstring(doc_of(value), '')}")
        else:
            body += list(_builtin(value))
    text = "\n".join(body)
    every = "".join(f'    "{name}",\n' for name in sorted(lang.__all__))
    return (
        f'{WRITTEN}"""{doc_of(lang)}\n"""\n\nimport builtins as _builtins\n{_imports(text)}\n'
        f"from treadle.lang.annotations import Array as _Array\n"
        f"from treadle.lang.annotations import {own}\n"
        f"from treadle.lang.builtins import BuiltinVariable\n{''.join(imports)}\n"
        f"__all__ = [\n{every}]\n\n{text}"
    )


# --- annotations of kernels ----------------------------------------------------------------------


def _annotating() -> set[str]:
    """The names that annotate kernels' parameters and structs' fields."""
    dtypes = {name for each in ALL_DTYPES for name in (each.name, each.short)}
    families = {"vec2", "vec3", "vec4"} | {f"mat{shape}" for shape in _MATRICES}
    return (dtypes & set(lang.__all__)) | {"Array"} | families


_ANNOTATIONS = '''"""What type checkers see of the types that annotate kernels, like `td.f32`.

mypy has no type that is subscripted with a number, so for it all of these are Any, by the
last line. Pyright sees classes. A dtype is Any there as an annotation, since Python's numbers
go where `td.f32` stands; the elements of an array are values of kernels.
"""

import builtins
from typing import Any

from treadle.lang.values import Value

MYPY: builtins.bool

def _annotation(cls: type[Any]) -> Any: ...

if not MYPY:
'''

_ARRAY = """    class Array:
{doc}
        size: builtins.int
        shape: tuple[builtins.int, ...]
        def __class_getitem__(cls, key: Any) -> Any: ...
        def __getitem__(self, index: Any) -> Value: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

"""


def annotations() -> str:
    """The text of `lang/annotations.pyi`."""
    text = _ANNOTATIONS + _ARRAY.format(doc=_docstring(doc_of(lang.Array), " " * 8).rstrip())
    for count in (2, 3, 4):
        doc = f"`td.vec{count}[dtype]`: a vector of {count} numbers; called, it makes one."
        text += f'    class vec{count}(Value):\n        """{doc}"""\n\n'
        text += "        def __class_getitem__(cls, key: Any) -> Any: ...\n\n"
    for shape in _MATRICES:
        rows, columns = shape.split("x")
        doc = f"`td.mat{shape}[dtype]`: a matrix of {rows} rows and {columns} columns."
        text += f'    class mat{shape}(Value):\n        """{doc}"""\n\n'
        text += "        shape: tuple[builtins.int, builtins.int]\n"
        text += f"        T: mat{columns}x{rows}\n"
        text += "        def __class_getitem__(cls, key: Any) -> Any: ...\n"
        text += "        def determinant(self) -> Value: ...\n"
        text += f"        def inverse(self) -> mat{shape}: ...\n\n"
    for each in ALL_DTYPES:
        for name in dict.fromkeys((each.name, each.short)):
            doc = f"{each.bits}-bit {_KINDS[each.kind]}: a dtype; called, it casts."
            text += f'    @_annotation\n    class {name}:\n        """{doc}"""\n\n'
    return f"{WRITTEN}{text}def __getattr__(name: str) -> Any: ...\n"


_MATRICES = tuple(f"{rows}x{columns}" for rows in (2, 3, 4) for columns in (2, 3, 4))
_KINDS = {
    "bool": "truth values", "int": "integers", "uint": "integers without a sign",
    "float": "floating point numbers", "complex": "complex numbers",
}  # fmt: skip


# --- names that are imported when they are first used --------------------------------------------


def exporting() -> dict[Path, str]:
    """The modules that export names by a table (`core.deferred_imports`), by their stubs' paths."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if re.search(r"(__getattr__|_imported), __dir__ = _?exports\(", path.read_text()):
            parts = path.relative_to(SOURCE.parent).with_suffix("").parts
            found[path.with_suffix(".pyi")] = ".".join(parts).removesuffix(".__init__")
    return found


def _names(module: ModuleType) -> Any:
    """The table of a module; one that exports only modules has none."""
    return vars(module).get("NAMES", {}).items()


def exported(module: ModuleType) -> str:
    """The text of the stub of a module that exports names by a table: imports of all of them."""
    places = {name: place for place, names in _names(module) for name in names.split()}
    lines = []
    for name in module.__all__:
        place = places.get(name, module.__name__)
        if place.startswith("treadle.lang."):
            place = "treadle.lang"  # whose stub says what they are
        lines.append(f"from {place} import {name} as {name}\n")
    every = "".join(f'    "{name}",\n' for name in module.__all__)
    return f'{WRITTEN}"""{doc_of(module)}\n"""\n\n{"".join(lines)}\n__all__ = [\n{every}]\n'


_TORCH, _NUMPY = SOURCE / "torch", SOURCE / "numpy"


def _written(text: Callable[[], str]) -> str:
    return WRITTEN + text()


STUBS: dict[Path, Callable[[], str]] = {
    **{path: partial(exported, import_module(name)) for path, name in exporting().items()},
    SOURCE / "tensor" / "declarations.pyi": declared_methods,
    SOURCE / "lang" / "__init__.pyi": language,
    SOURCE / "lang" / "annotations.pyi": annotations,
    _TORCH / "declarations.pyi": partial(_written, torch_stubs.declarations),
    _TORCH / "functions.pyi": partial(_written, torch_stubs.functions),
    **{
        _TORCH / f"{name.replace('.', '/')}.pyi": partial(
            _written, partial(torch_stubs.namespace, name)
        )
        for name in ("linalg", "fft", "special", "signal.windows")
    },
    _NUMPY / "declarations.pyi": partial(_written, numpy_stubs.declarations),
    _NUMPY / "functions.pyi": partial(_written, numpy_stubs.functions),
    **{
        _NUMPY / f"{name}.pyi": partial(_written, partial(numpy_stubs.namespace, name))
        for name in ("linalg", "fft")
    },
}


def laid_out(text: str, path: Path) -> str:
    """A text as ruff sorts its imports and lays it out."""
    ruff = [sys.executable, "-m", "ruff"]
    for command in (
        ["check", "--quiet", "--fix-only", "--select", "I,RUF022"],
        ["format", "--quiet"],
    ):
        command += ["--stdin-filename", str(path), "-"]
        done = subprocess.run(
            [*ruff, *command], input=text, capture_output=True, text=True, check=True, cwd=ROOT
        )
        text = done.stdout
    return text


def main() -> None:
    for path, written in STUBS.items():
        path.write_text(laid_out(written(), path))
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
