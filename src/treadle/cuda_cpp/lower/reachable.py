"""Which names a kernel may use, itself or through the functions that it calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.walk import walk_tree


class Reachable:
    """The names in every declaration of a file, followed from one to the next.

    Names are all that is looked at, so the answer may hold too much (a local variable called like
    one of the file), never too little.
    """

    def __init__(self, unit: tree.TranslationUnit) -> None:
        self._declared: dict[str, list[tree.Declaration]] = {}
        self._names: dict[int, frozenset[str]] = {}
        for one in unit.declarations:
            self._add(one)

    def _add(self, one: tree.Declaration) -> None:
        match one:
            case tree.NamespaceDeclaration(members=members):
                for member in members:
                    self._add(member)
            case tree.FunctionDeclaration(name=name):
                known = name.text if not name.text.startswith("operator") else ""
                self._declared.setdefault(known, []).append(one)
                if name.scope:  # a method: it is used where its class is
                    self._declared.setdefault(name.scope[-1].text, []).append(one)
            case tree.StructDeclaration(name=name):
                self._declared.setdefault(name, []).append(one)
            case tree.VariableDeclaration(name=name) | tree.TypedefDeclaration(name=name):
                self._declared.setdefault(name, []).append(one)

    def names_from(
        self, declaration: tree.Declaration, arguments: Sequence[tree.TemplateArgument] = ()
    ) -> frozenset[str]:
        """The names that may be used by a declaration, of a template with these arguments.
        Operators count as used everywhere."""
        seen: set[str] = set()
        waiting = [declaration, *self._declared.get("", ())]
        for argument in arguments:  # a function, say, or a class with operator()
            for node in walk_tree(argument):
                if isinstance(node, tree.Name):
                    seen.add(node.text)
                    waiting.extend(self._declared.get(node.text, ()))
        done: set[int] = set()
        while waiting:
            one = waiting.pop()
            if id(one) in done:
                continue
            done.add(id(one))
            for name in self._names_in(one):
                if name not in seen:
                    seen.add(name)
                    waiting.extend(self._declared.get(name, ()))
        return frozenset(seen)

    def _names_in(self, one: Any) -> frozenset[str]:
        found = self._names.get(id(one))
        if found is None:
            found = frozenset(node.text for node in walk_tree(one) if isinstance(node, tree.Name))
            self._names[id(one)] = found
        return found
