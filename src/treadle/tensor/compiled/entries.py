"""The traces of a function with their guards, and how they are explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from treadle.graph.explain import Explanation
from treadle.tensor.compiled.guards import MISSING, PASSED, Guard, is_alive
from treadle.tensor.compiled.size_guards import SizeGuards
from treadle.tensor.compiled.trace import Trace
from treadle.tensor.compiled.tracing import Split


class Entry(NamedTuple):
    """A trace, or a `Split` that says why there is none, with the guards that must hold; `sizes`
    are those of sizes, of one that was found with symbols."""

    check: Callable[[], int]
    guards: list[Guard]
    found: Trace | Split
    sizes: SizeGuards | None = None

    def fits(self) -> bool:
        """Whether the guards hold and gradients are as they were."""
        found = self.found
        return self.check() == PASSED and (type(found) is Split or found.is_current())  # type: ignore[union-attr]

    def changed(self) -> Guard | None:
        """The guard that does not hold; None if a gradient has changed."""
        failed = self.check()
        return None if failed == PASSED else self.guards[failed]

    def held(self) -> int:
        """The number of guards before the first that does not hold."""
        failed = self.check()
        return len(self.guards) if failed == PASSED else failed

    def is_over(self) -> bool:
        """Whether it can never fit again, since a gradient or an object that it expects is gone."""
        changed = self.changed()
        if changed is None or not changed.is_replaced:
            return changed is None
        return changed.value is MISSING or not is_alive(changed, self.guards)

    def release(self) -> None:
        """Release the memory."""
        if isinstance(self.found, Trace):
            self.found.release()


def explained(
    name: str, fixed: str, traces: Mapping[tuple[Any, ...], Sequence[Entry]]
) -> Explanation:
    """Traces and their guards of sizes, as text; `fixed` says why sizes get no symbols."""
    lines = [name]
    if fixed:
        lines.append(f"each size has a trace, since {fixed}")
    for key, entries in traces.items():
        for entry in entries:
            what = "a trace" if isinstance(entry.found, Trace) else f"Python: {entry.found}"
            if entry.sizes is None:
                lines.append(f"- {what} for sizes {key[0]}")
                continue
            lines.append(f"- {what} for all sizes with")
            lines += [f"    {guard}" for guard in entry.sizes.described()]
    return Explanation("\n".join(lines))
