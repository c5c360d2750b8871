"""From IR to source text: one package a target, and what they share.

`records` is what printers hand to drivers; `target` says what a target is; `pipeline` is the
order of passes, for all of them.
"""
