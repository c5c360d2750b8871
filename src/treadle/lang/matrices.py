"""Small matrices: `td.mat3x3[td.f32]`, their values outside kernels, and what is computed of them.

A matrix is a struct of its rows, which are vectors (`ir.types.matrix_type`): it lies in memory row
by row. The formulas are written once, for numbers of any kind: `do(op, x, y)` computes with those
of a kernel that is lowered, of one that is interpreted, or with NumPy's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, as_number_dtype
from treadle.ir import types as t
from treadle.lang.types import TypeFamily, Vector, VectorType, is_struct, struct_from

Do = Callable[[str, Any, Any], Any]

# The methods that kernels and Python can call on a matrix.
METHODS = ("determinant", "inverse")

# NumPy's functions of the same meaning.
FUNCTIONS: dict[Any, str] = {np.linalg.det: "determinant", np.linalg.inv: "inverse"}

# --- formulas ------------------------------------------------------------------------------------


def product(left: Sequence[Sequence[Any]], right: Sequence[Any], do: Do) -> list[Any]:
    """The matrix product. `left` has the numbers of each row, `right` a row in each item, or a
    number if it is a column."""
    found = []
    for numbers in left:
        total = do("*", numbers[0], right[0])
        for number, row in zip(numbers[1:], right[1:], strict=True):
            total = do("+", total, do("*", number, row))
        found.append(total)
    return found


def _crossed(m: Sequence[Sequence[Any]], one: int, other: int, i: int, j: int, do: Do) -> Any:
    """The determinant of two rows in two columns."""
    return do("-", do("*", m[one][i], m[other][j]), do("*", m[one][j], m[other][i]))


def _signed_sum(terms: Sequence[tuple[str, Any]], do: Do) -> Any:
    total = terms[0][1]
    for sign, term in terms[1:]:
        total = do(sign, total, term)
    return total


def _pairs(m: Sequence[Sequence[Any]], one: int, other: int, do: Do) -> dict[tuple[int, int], Any]:
    """The determinants of two rows in each two columns."""
    columns = range(len(m[0]))
    return {(i, j): _crossed(m, one, other, i, j, do) for i in columns for j in columns if i < j}


def determinant(m: Sequence[Sequence[Any]], do: Do) -> Any:
    """The determinant of two to four rows of as many numbers."""
    if len(m) == 2:
        return _crossed(m, 0, 1, 0, 1, do)
    low = _pairs(m, len(m) - 2, len(m) - 1, do)
    if len(m) == 3:
        return _of_three(m[0], low, do)
    return _of_four(_pairs(m, 0, 1, do), low, do)


def _of_three(row: Sequence[Any], low: dict[tuple[int, int], Any], do: Do) -> Any:
    terms = [("+", do("*", row[0], low[1, 2])), ("-", do("*", row[1], low[0, 2])),
             ("+", do("*", row[2], low[0, 1]))]  # fmt: skip
    return _signed_sum(terms, do)


def _of_four(high: dict[tuple[int, int], Any], low: dict[tuple[int, int], Any], do: Do) -> Any:
    terms = [("+", (0, 1), (2, 3)), ("-", (0, 2), (1, 3)), ("+", (0, 3), (1, 2)),
             ("+", (1, 2), (0, 3)), ("-", (1, 3), (0, 2)), ("+", (2, 3), (0, 1))]  # fmt: skip
    return _signed_sum([(sign, do("*", high[a], low[b])) for sign, a, b in terms], do)


def inverse(m: Sequence[Sequence[Any]], do: Do) -> list[list[Any]]:
    """The rows of the inverse, by cofactors; infinities and NaN if there is none."""
    size = len(m)
    if size == 2:
        whole = determinant(m, do)
        (a, b), (c, d) = m
        return [
            [do("/", d, whole), do("/", _with_sign(b, 1, do), whole)],
            [do("/", _with_sign(c, 1, do), whole), do("/", a, whole)],
        ]
    if size == 3:
        low = {row: _pairs(m, *rows, do) for row, rows in enumerate(((1, 2), (0, 2), (0, 1)))}
        whole = _of_three(m[0], low[0], do)
        columns = ((1, 2), (0, 2), (0, 1))
        # The cofactor of row j and column i is that of the others, with the sign of i + j.
        return [
            [do("/", _with_sign(low[j][columns[i]], i + j, do), whole) for j in range(3)]
            for i in range(3)
        ]
    high, low_pairs = _pairs(m, 0, 1, do), _pairs(m, 2, 3, do)
    whole = _of_four(high, low_pairs, do)
    found = []
    for i in range(4):
        others = [column for column in range(4) if column != i]
        line = []
        for j in range(4):
            # Of the three other rows, one is in the half of row j, and two in the other half.
            pairs = low_pairs if j < 2 else high
            kept = {(a, b): pairs[others[a], others[b]] for a, b in ((0, 1), (0, 2), (1, 2))}
            row = [m[j ^ 1][column] for column in others]
            minor = _of_three(row, kept, do)
            line.append(do("/", _with_sign(minor, i + j, do), whole))
        found.append(line)
    return found


def _with_sign(value: Any, power: int, do: Do) -> Any:
    return do("*", value, -1) if power % 2 else value


# --- values outside kernels ----------------------------------------------------------------------


class MatrixFamily(TypeFamily):
    """`td.mat3x3`, which indexed with a dtype gives a type."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        self.example = f"td.mat{rows}x{columns}[td.f32]"

    def __getitem__(self, dtype: Any) -> Any:
        return matrix_class(self.rows, self.columns, as_number_dtype(dtype))

    def __repr__(self) -> str:
        return f"treadle.mat{self.rows}x{self.columns}"


class Matrix:
    """A small matrix outside a kernel: an argument, a field of a struct, or a value while
    interpreting.

    It is made of its rows, of all its numbers, row by row, of an array of its shape, of one number,
    which is put on the diagonal, or of nothing (zeros).

    >>> from treadle.core.dtypes import f32
    >>> m = MatrixFamily(2, 2)[f32]([[1, 2], [3, 4]])
    >>> m[0, 1], float(m.determinant())
    (np.float32(2.0), -2.0)
    >>> m @ m.inverse()
    mat2x2[float32]((1.0, 0.0), (0.0, 1.0))
    """

    rows: int
    columns: int
    element: DType

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.rows, self.columns

    @property
    def T(self) -> Matrix:
        """The transpose."""
        return of_rows([[row[j] for row in self] for j in range(self.columns)])

    def determinant(self) -> Any:
        """The determinant. TypeError if the matrix is not square."""
        return self.determinant_by(_do)

    def determinant_by(self, do: Do) -> Any:
        """`determinant`, with other arithmetic."""
        check_square(self.shape, "determinant")
        return determinant(self.numbers, do)

    def inverse(self) -> Matrix:
        """The inverse, of floats; infinities and NaN if there is none. TypeError if the matrix is
        not square, or not of floats."""
        return self.inverse_by(_do)

    def inverse_by(self, do: Do) -> Matrix:
        """`inverse`, with other arithmetic."""
        check_square(self.shape, "inverse")
        check_floats(self.element.kind == "float", self)
        return of_rows(inverse(self.numbers, do))

    @property
    def numbers(self) -> list[list[Any]]:
        """The numbers of each row."""
        return [list(row) for row in self]

    def __iter__(self) -> Iterator[Vector]:
        return (getattr(self, f"row{i}") for i in range(self.rows))

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: Any) -> Any:
        row, column = index if isinstance(index, tuple) else (index, None)
        found = getattr(self, f"row{_inside(row, self.rows)}")
        return found if column is None else found.parts[_inside(column, self.columns)]

    def __setitem__(self, index: Any, value: Any) -> None:
        row, column = index if isinstance(index, tuple) else (index, None)
        name = f"row{_inside(row, self.rows)}"
        if column is None:
            setattr(self, name, value)
        else:
            getattr(self, name).parts[_inside(column, self.columns)] = self.element(value)

    def __matmul__(self, other: Any) -> Any:
        return times(self, other, _do)

    def __rmatmul__(self, other: Any) -> Any:
        return times(other, self, _do)

    def __neg__(self) -> Matrix:
        return of_rows([[-number for number in row] for row in self])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if dtype is not None and np.dtype(dtype).names is not None:
            record: np.ndarray[Any, Any] = self.__treadle_record__(dtype)  # type: ignore[attr-defined]
            return record
        return np.array(self.numbers, dtype or self.element.numpy)

    def __repr__(self) -> str:
        rows = ", ".join(f"({', '.join(map(str, row))})" for row in self)
        return f"mat{self.rows}x{self.columns}[{self.element}]({rows})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.rows, self.columns, self.element, self.numbers)


def _elementwise(op: str, reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (Matrix, int, float, np.generic)):
            return NotImplemented
        return elementwise(op, other, self, _do) if reflected else elementwise(op, self, other, _do)

    return method


for _op, _name in (("+", "add"), ("-", "sub"), ("*", "mul"), ("/", "truediv")):
    setattr(Matrix, f"__{_name}__", _elementwise(_op, False))
    setattr(Matrix, f"__r{_name}__", _elementwise(_op, True))


@cache
def matrix_class(rows: int, columns: int, dtype: DType) -> Any:
    """`td.mat3x3[td.f32]`: a struct class whose values are `Matrix`."""
    row = VectorType(dtype, columns)
    name = f"mat{rows}x{columns}_{dtype.short}"
    annotations = {f"row{i}": row for i in range(rows)}
    members = {"rows": rows, "columns": columns, "element": dtype, "__module__": __name__}
    made = type(name, (Matrix,), {"__annotations__": annotations, **members})
    cls: Any = struct_from(made)
    assert cls.__treadle_struct__ == t.matrix_type(rows, columns, t.SCALARS[dtype.short])

    def __init__(self: Any, *parts: Any, **named: Any) -> None:
        for place, given in enumerate(_rows_of(cls, parts)):
            vars(self)[f"row{place}"] = Vector(row, *given)
        for field, value in named.items():
            setattr(self, field, value)

    cls.__init__ = __init__
    cls.__treadle_from__ = cls
    cls.__repr__ = Matrix.__repr__
    cls.__array__ = Matrix.__array__
    return cls


def _rows_of(cls: Any, parts: tuple[Any, ...]) -> list[list[Any]]:
    """The rows of a matrix of what it is made of. TypeError for what has another shape."""
    rows, columns = cls.rows, cls.columns
    flat: list[Any] = []
    for part in parts:
        flat += _flat(part, (rows, columns))
    if len(flat) <= 1:
        one = flat[0] if flat else 0
        return [[one if i == j else 0 for j in range(columns)] for i in range(rows)]
    if len(flat) != rows * columns:
        raise TypeError(
            f"mat{rows}x{columns} has {rows * columns} numbers, and {len(flat)} are given: give "
            "all, row by row, or one for the diagonal"
        )
    return [flat[i * columns : (i + 1) * columns] for i in range(rows)]


def _flat(part: Any, shape: tuple[int, int]) -> list[Any]:
    if isinstance(part, Vector):
        return list(part.parts)
    if isinstance(part, (tuple, list)):
        return [number for each in part for number in _flat(each, shape)]
    if hasattr(part, "__array__") and not isinstance(part, np.generic):
        given = np.asarray(part)
        if given.ndim > 1 and given.shape != shape:
            raise TypeError(f"an array of shape {given.shape} is no matrix of shape {shape}")
        return list(given.reshape(-1))
    return [part]


def _again(rows: int, columns: int, dtype: DType, numbers: Any) -> Matrix:
    made: Matrix = matrix_class(rows, columns, dtype)(numbers)
    return made


def is_matrix_class(value: Any) -> bool:
    """Whether a value is a type such as `td.mat3x3[td.f32]`."""
    return is_struct(value) and issubclass(value, Matrix)


def of_rows(rows: Sequence[Any]) -> Matrix:
    """A matrix of rows of typed numbers."""
    parts = [list(row) for row in rows]
    dtype = as_number_dtype(np.result_type(*[number.dtype for row in parts for number in row]))
    made: Matrix = matrix_class(len(parts), len(parts[0]), dtype)(parts)
    return made


def elementwise(op: str, left: Any, right: Any, do: Do) -> Matrix:
    """`left op right`, of which one is a matrix, and the other one of its shape, or a number."""
    shapes = [each.shape for each in (left, right) if isinstance(each, Matrix)]
    others = [each for each in (left, right) if not isinstance(each, Matrix)]
    fault = elementwise_fault(op, shapes, any(isinstance(each, Vector) for each in others))
    if fault is not None:
        raise TypeError(fault)
    rows = shapes[0][0]
    firsts, seconds = (
        list(each) if isinstance(each, Matrix) else [each] * rows for each in (left, right)
    )
    return of_rows([do(op, a, b) for a, b in zip(firsts, seconds, strict=True)])


def elementwise_fault(op: str, shapes: Sequence[tuple[int, int]], vector: bool) -> str | None:
    """Why an operator does not go with matrices of some shapes, and perhaps a vector."""
    if op not in ("+", "-", "*", "/"):
        return f"{op} does not work on matrices: +, -, *, / and @ do"
    if vector:
        return f"{op} of a matrix and a vector: the product is m @ v"
    if len(set(shapes)) > 1:
        return f"{op} needs two matrices of one shape, not {shapes[0]} and {shapes[1]}"
    return None


def times(left: Any, right: Any, do: Do) -> Any:
    """`left @ right`, of matrices, or a matrix and a vector."""
    if not all(isinstance(each, (Matrix, Vector)) for each in (left, right)):
        return NotImplemented
    fault = product_fault(*(_extents(each) for each in (left, right)))
    if fault is not None:
        raise TypeError(fault)
    numbers = left.numbers if isinstance(left, Matrix) else [list(left)]
    found = product(numbers, list(right), do)
    if isinstance(left, Vector):
        return found[0]
    if isinstance(right, Vector):
        dtype = as_number_dtype(found[0].dtype)
        return Vector(VectorType(dtype, len(found)), *found)
    return of_rows(found)


def _extents(value: Any) -> tuple[int, ...]:
    return value.shape if isinstance(value, Matrix) else (len(value),)


def product_fault(left: tuple[int, ...], right: tuple[int, ...]) -> str | None:
    """Why there is no product of matrices of two shapes, or of a vector."""
    if len(left) == len(right) == 1:
        return "@ of two vectors: td.dot(u, v) is their product"
    if left[-1] != right[0]:
        return f"@ needs as many columns on the left as rows on the right, not {left} and {right}"
    return None


def check_square(shape: tuple[int, int], what: str) -> None:
    """TypeError unless a matrix is square."""
    if shape[0] != shape[1]:
        raise TypeError(f"{what} is of square matrices, and this one is {shape[0]} × {shape[1]}")


def check_floats(are_floats: bool, what: Any) -> None:
    """TypeError unless a matrix has floats."""
    if not are_floats:
        raise TypeError(f"the inverse of {what} has fractions: make a matrix of floats of it")


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


def _do(op: str, left: Any, right: Any) -> Any:
    """An operation on NumPy's numbers, and on vectors component by component."""
    if isinstance(left, Vector) or isinstance(right, Vector):
        count = len(left if isinstance(left, Vector) else right)
        firsts, seconds = (
            list(each) if isinstance(each, Vector) else [each] * count for each in (left, right)
        )
        parts = [_do(op, a, b) for a, b in zip(firsts, seconds, strict=True)]
        return Vector(VectorType(as_number_dtype(parts[0].dtype), count), *parts)
    with np.errstate(all="ignore"):
        return _OPERATORS[op](left, right)


def _inside(index: Any, count: int) -> int:
    at = operator.index(index)
    if not 0 <= at < count:
        raise IndexError(f"index {at} is outside {count} rows or columns")
    return at


mat2x2, mat2x3, mat2x4 = (MatrixFamily(2, columns) for columns in (2, 3, 4))
mat3x2, mat3x3, mat3x4 = (MatrixFamily(3, columns) for columns in (2, 3, 4))
mat4x2, mat4x3, mat4x4 = (MatrixFamily(4, columns) for columns in (2, 3, 4))
