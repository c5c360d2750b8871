"""The intermediate representation: what both front ends and the fuser make and every target prints.

`types` and `nodes` say what a kernel is, `builder` helps to make one, `verify` says what is wrong
with one, `printer` and `parser` are its readable text, and `passes` rewrite it.
"""
