"""What the printers of CUDA C++ and of the Metal Shading Language share.

`printer` lays out functions and heads, `statements`, `expressions` and what they use
(`casts`, `intrinsics`, `vectors`, `places`) print a body, `facts` finds where C++'s own operators
are safe, `helpers` holds the functions that say what C++ leaves undefined, `module` collects all
of it. What differs between the languages is a `Language`: tables, and a few functions.
"""

from treadle.codegen.c_family.language import Helper, Language

__all__ = ["Helper", "Language"]
