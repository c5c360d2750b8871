"""From IR to source text: one package a target, and what they share.

`records` is what printers hand to drivers; `lowering` is the order of passes before printing.
"""
