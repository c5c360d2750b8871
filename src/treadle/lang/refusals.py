"""The table of constructs that the kernel language refuses, with the reason and advice for each.

`docs/limitations.md` is generated from this table. Messages may have {names}, which are filled in
where they are raised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """A construct that kernels can't use."""

    construct: str  # its name in the documentation
    reason: str
    advice: str

    def message(self, **names: object) -> str:
        """The error's text."""
        return f"{self.reason}: {self.advice}".format(**names)


REFUSALS: dict[str, Refusal] = {
    # --- statements ---
    "FunctionDef": Refusal(
        "a function inside a kernel",
        "a kernel can't define a function inside it",
        "move {name} out and decorate it with @td.func",
    ),
    "AsyncFunctionDef": Refusal(
        "async def", "a kernel can't define an async function", "write an ordinary @td.func"
    ),
    "ClassDef": Refusal(
        "a class inside a kernel",
        "a kernel can't define a class",
        "define a @td.struct outside and use it here",
    ),
    "Delete": Refusal("del", "a kernel can't delete a variable", "remove this line"),
    "With": Refusal(
        "with", "a kernel has no context managers", "write the steps out, without with"
    ),
    "Match": Refusal("match", "match is not part of the kernel language", "use if and elif"),
    "Raise": Refusal(
        "raise",
        "a kernel can't raise exceptions",
        "use assert (checked under TREADLE_CHECK=1), or write a flag to an array",
    ),
    "Try": Refusal("try", "a kernel can't catch exceptions", "test the condition first, with if"),
    "TryStar": Refusal(
        "try with except*", "a kernel can't catch exceptions", "test the condition with if"
    ),
    "Import": Refusal("import", "a kernel can't import", "import at the top of the file"),
    "ImportFrom": Refusal(
        "from … import", "a kernel can't import", "import at the top of the file"
    ),
    "Global": Refusal(
        "global",
        "a kernel can't assign to names outside it",
        "values from outside are constants; write results to an array",
    ),
    "Nonlocal": Refusal(
        "nonlocal",
        "a kernel can't assign to names outside it",
        "values from outside are constants; write results to an array",
    ),
    "loop_else": Refusal(
        "else of a loop", "a loop in a kernel has no else", "set a flag before break and test it"
    ),
    # --- expressions ---
    "NamedExpr": Refusal(
        ":=", "a kernel can't assign inside an expression", "assign on a line of its own"
    ),
    "Lambda": Refusal(
        "lambda", "a kernel can't make functions", "write a @td.func outside and call it"
    ),
    "Dict": Refusal("dict", "a kernel has no dictionaries", "use a @td.struct"),
    "Set": Refusal("set", "a kernel has no sets", "use an array of flags"),
    "List": Refusal(
        "list",
        "a kernel has no lists",
        "use a tuple for a few values, td.local(n, dtype) for an array",
    ),
    "ListComp": Refusal(
        "list comprehension", "a kernel has no lists", "fill td.local(n, dtype) in a for loop"
    ),
    "SetComp": Refusal("set comprehension", "a kernel has no sets", "write a for loop"),
    "DictComp": Refusal("dict comprehension", "a kernel has no dictionaries", "write a for loop"),
    "GeneratorExp": Refusal(
        "generator expression", "a kernel has no generators", "write a for loop"
    ),
    "Yield": Refusal("yield", "a kernel can't be a generator", "write results to an array"),
    "YieldFrom": Refusal(
        "yield from", "a kernel can't be a generator", "write results to an array"
    ),
    "JoinedStr": Refusal(
        "f-string outside print",
        "a kernel has no strings",
        "print takes f-strings without format specifications",
    ),
    "Starred": Refusal("* in a call or a target", "a kernel can't unpack with *", "name each part"),
    "Slice": Refusal(
        "slice",
        "a kernel can't slice an array",
        "index single elements, or pass a slice as an argument from outside",
    ),
    "string": Refusal(
        "string",
        "a kernel has no strings",
        "print takes literal text and numbers, as in print('x is', x)",
    ),
    "complex": Refusal(
        "complex number",
        "a kernel has no complex numbers",
        "use td.vec2[td.f32], the real and the imaginary part, as elements of complex arrays are",
    ),
    "bytes": Refusal("bytes", "a kernel has no bytes", "use an array of td.u8"),
    "ellipsis": Refusal("...", "a kernel has no use for ...", "give every index"),
    "MatMult": Refusal(
        "@ of arrays or numbers",
        "@ is the product of small matrices and vectors, as td.mat3x3[td.f32]",
        "write the loops for arrays, or td.dot for two vectors",
    ),
    "identity": Refusal(
        "is, is not",
        "a kernel compares values, not identities",
        "use == and !=",
    ),
    "membership": Refusal("in, not in", "a kernel has no containers to search", "write a loop"),
    # --- functions and parameters ---
    "star_parameters": Refusal(
        "*args, **kwargs", "a kernel's parameters are a fixed list", "name each parameter"
    ),
    "default_value": Refusal(
        "default value of a kernel's parameter that is not a number",
        "the default value of a kernel's parameter is a number, a vector or a struct",
        "pass {name} at the launch",
    ),
    "kernel_result": Refusal(
        "value returned by a kernel",
        "a kernel can't return a value",
        "write it to an array; a bare return ends the thread",
    ),
    "missing_return": Refusal(
        "function that returns a value on some paths only",
        "{name} returns a value, but not on every path",
        "end it with a return",
    ),
    "recursion": Refusal(
        "recursion",
        "{name} calls itself, and devices have no stack for that",
        "write a loop",
    ),
    "kernel_call": Refusal(
        "call of a kernel in a kernel",
        "a kernel can't launch or call the kernel {name}",
        "make the common part a @td.func",
    ),
    "hidden_function": Refusal(
        "call of a function of Python, as abs, in a kernel or @td.func of the same name",
        "{name} names the {kind} here, which hides Python's own function",
        "give the {kind} another name",
    ),
    "foreign_call": Refusal(
        "call of an ordinary Python function",
        "{name} is an ordinary Python function, which devices can't run",
        "decorate it with @td.func, or use one of td's functions",
    ),
    "array_function": Refusal(
        "call of a function of whole arrays, as td.sum, np.zeros",
        "{name} is a function of whole arrays, and a kernel computes single numbers",
        "write a loop over the elements, and td.local(n, dtype) or td.shared(n, dtype) for an "
        "array of the kernel's own",
    ),
    "foreign_builtin": Refusal(
        "call of another function of Python or of a library, as sorted",
        "{name} can't run on a device",
        "write loops, and use td's functions",
    ),
    "number_text": Refusal(
        "float('nan'), int('1')",
        "a kernel has no strings to convert to numbers",
        "write the number; td.nan, td.inf and -td.inf are the special ones",
    ),
    "bare_function": Refusal(
        "function named without a call, as a statement",
        "naming {name} without a call does nothing",
        "call it: {name}()",
    ),
    "not_callable": Refusal(
        "call of something that is not a function",
        "{name} can't be called in a kernel",
        "call a @td.func, a dtype (a cast), a struct, or one of td's functions",
    ),
    # --- names and constants ---
    "unknown_name": Refusal(
        "unknown name",
        "{name} is not defined here or outside the kernel",
        "assign it first, or check the spelling{hint}",
    ),
    "unknown_member": Refusal(
        "unknown name of a module or an object",
        "{owner} has no {name}",
        "check the spelling{hint}",
    ),
    "unassigned": Refusal(
        "variable read before it is assigned",
        "{name} is read before anything is assigned to it",
        "assign it before this line",
    ),
    "captured_array": Refusal(
        "array of a device, or of a library other than NumPy, captured from outside",
        "{name} is an array, and only NumPy's are captured from outside",
        "pass it as an argument",
    ),
    "captured_large_array": Refusal(
        "NumPy array of more than 1,024 elements, or of none, captured from outside",
        "{name} has {size} elements, and an array from outside has 1 to 1,024",
        "pass it as an argument",
    ),
    "constant_array": Refusal(
        "writing a NumPy array captured from outside",
        "an array from outside is a constant",
        "pass it as an argument, or copy it to td.local(shape, dtype)",
    ),
    "captured_object": Refusal(
        "Python object captured from outside",
        "{name} is a {kind}, which a kernel can't use",
        "make it a number or a tuple of numbers, or pass an array as an argument",
    ),
    "unknown_attribute": Refusal(
        "unknown attribute",
        "{owner} has no attribute {name}",
        "it has {choices}",
    ),
    "number_attribute": Refusal(
        "attribute of a number, as x[i].astype",
        "{owner} has no attribute {name}",
        "use an operator, a cast as in td.f32(x), or one of td's functions",
    ),
    # --- types ---
    "changed_type": Refusal(
        "local variable that changes its type",
        "{name} is {old}, set at its first assignment, and this value is {new}",
        "{advice}",
    ),
    "rebound": Refusal(
        "array or tuple variable that is assigned twice",
        "{name} names {kind}, and a name like that is assigned once",
        "use another name",
    ),
    "lossy": Refusal(
        "implicit conversion that may lose information",
        "{what} is {wanted}, and this value is {given}",
        "cast it, as in td.{wanted}(…)",
    ),
    "wide_integer": Refusal(
        "integer constant of more than 1024 bits",
        "this integer has {bits} bits, and the widest type of a kernel has 64",
        "compute with floats, as in 9.0, or use td.inf",
    ),
    "no_value": Refusal(
        "division of constants by 0",
        "{what} divides by zero",
        "write the value that is meant: 0, td.inf or td.nan",
    ),
    "text": Refusal(
        "text that is not Unicode",
        "this text has an unpaired surrogate in it",
        "leave {character} out",
    ),
    "negative_power": Refusal(
        "integer to a constant negative power",
        "an integer to the power {times} is a fraction",
        "write td.f32(x) ** {times}",
    ),
    "condition": Refusal(
        "and, or with numbers",
        "and, or take conditions, not {given}",
        "compare it first, as in x != 0; a choice of two numbers is a if c else b",
    ),
    "whole_variable": Refusal(
        "td.thread_idx and its like without a part",
        "{name} has the parts x, y and z",
        "write {name}.x; td.grid(1) is the thread's index among all",
    ),
    "uncalled": Refusal(
        "function named without a call, where a number is needed",
        "{name} is a function, and a number is needed here",
        "call it: {usage}",
    ),
    "nothing_returned": Refusal(
        "use of the result of a function that returns nothing",
        "{name} returns nothing, and a number is needed here",
        "end it with return and a value, or call it on a line of its own",
    ),
    "value_needed": Refusal(
        "something without a value where a number is needed",
        "{given} is not a number",
        "use a number, a vector or a struct here",
    ),
    # --- arrays ---
    "axes": Refusal(
        "index with too few or too many axes",
        "this array has {ndim} dimension{s}, and the index has {given}",
        "give {ndim}, as in a[{example}]",
    ),
    "whole_array": Refusal(
        "array used as a number",
        "an array can't be used as a number",
        "index it, as in a[i]",
    ),
    "whole_fragment": Refusal(
        "matrix fragment used as a number, returned or chosen",
        "{kind} is a matrix, which is changed where it is: it can't be used as a number, returned, "
        "or chosen by `if`",
        "make it in the kernel and pass it to functions; products are sums.multiply_add(a, b), and "
        "for the numbers of an accumulator write for i in td.static_range(sums.size): sums[i] += 1",
    ),
    "tuple_index": Refusal(
        "tuple of more than 1024 items, indexed with a variable",
        "a tuple of {items} items takes a constant index",
        "pass an array as an argument",
    ),
    "component": Refusal(
        "component that a vector does not have",
        "a {type} has no component {at}",
        "it has v[0] to v[{last}], which are v.{names}",
    ),
    "number_index": Refusal(
        "index of something that has no elements",
        "{given} has no elements",
        "index an array, a vector or a tuple; an element of an array of several dimensions is "
        "a[i, j]",
    ),
    "static": Refusal(
        "variable where a constant is needed",
        "{what} must be known when the kernel is compiled",
        "use a literal or a number from outside the kernel",
    ),
    "array_assignment": Refusal(
        "assignment to an array as a whole",
        "an array's {name} can't be assigned",
        "assign its elements, as in a[i] = x",
    ),
    "swizzle_assignment": Refusal(
        "assignment to a swizzle",
        "the swizzle {name} can't be assigned",
        "assign its components one by one, as in {example} = …",
    ),
    "unrolled_exit": Refusal(
        "break, continue in an unrolled loop",
        "a loop over td.static_range or a tuple is unrolled and can't be left early",
        "use range, or put the body under an if",
    ),
}


def markdown_table() -> str:
    """The table in `docs/limitations.md`, with the names that messages fill in set in italics."""
    lines = ["| refused | message |", "|---|---|"]
    for refusal in REFUSALS.values():
        text = _plain(f"{refusal.reason}: {refusal.advice}")
        text = re.sub(r"\{(\w+)\}", r"*\1*", text.replace("{hint}", "").replace("{s}", "s"))
        lines.append(f"| {_plain(refusal.construct)} | {text} |")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text with Markdown's special characters escaped."""
    return re.sub(r"([*|_\[\]])", r"\\\1", text)
