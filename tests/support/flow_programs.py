"""Random kernels whose threads share memory, meet at barriers and return early, without races.

Between two barriers one of two shared arrays may be written, each thread its own element, and the
other read anywhere. Barriers stand in uniform flow, subgroup operations in flow that is uniform
over the warp; whatever a thread computes it mixes into its own elements of `out` and `fout`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Pick = Callable[[int], int]  # a number below the given one

HEAD = """\
kernel drawn block({x}, {y}, {z}) {{
  buffer x: i32
  buffer few: i32
  buffer out: i32
  buffer fout: f32
  buffer counts: i32
  parameter n: i32 from ("value", "n")
  parameter k: i32 from ("value", "k")
  shared a: i32[{count}]
  shared b: i32[{count}]
  local m: i32[4]
  local words: f32[3]

  var tid: i32 = thread_idx.x + ({x} * (thread_idx.y + ({y} * thread_idx.z)))
  var gid: i32 = (block_idx.x * {count}) + tid
  a[tid] = gid
  b[tid] = x[gid]
  for i0: i32 in range(0, 4) {{
    m[i0] = i0 + tid
  }}
  words[0] = 1.5
  words[1] = f32(tid)
  words[2] = 0.25
  var acc: i32 = gid
  var facc: f32 = f32(tid)
"""


@dataclass
class Scope:
    """What may be named at a point of the program."""

    mine: list[str] = field(default_factory=lambda: ["tid", "gid", "acc"])  # differ by thread
    ours: list[str] = field(default_factory=lambda: ["n", "k"])  # the same for the block
    fixed: set[str] = field(default_factory=lambda: {"tid", "gid", "n", "k"})  # not assigned
    depth: int = 1
    sync: bool = True  # barriers may stand here
    warp: bool = True  # subgroup operations may stand here
    loop: str = ""  # "ours": break by conditions of the block; "mine": by any
    readable: str = "b"

    def inside(self, **changes: object) -> Scope:
        new = Scope(
            list(self.mine), list(self.ours), self.fixed, self.depth + 1,
            self.sync, self.warp, self.loop, self.readable,
        )  # fmt: skip
        for name, value in changes.items():
            setattr(new, name, value)
        return new


class Program:
    """One random kernel as text."""

    def __init__(
        self, pick: Pick, block: tuple[int, int, int], *, sync: bool, warps: bool, returns: bool
    ) -> None:
        self.pick = pick
        self.block = block
        self.count = block[0] * block[1] * block[2]
        self.sync = sync
        self.warps = warps
        self.returns = returns
        self.returned = False
        self.budget = 14
        self.names = 0
        self.lines: list[str] = []

    def text(self) -> str:
        x, y, z = self.block
        self.lines = [HEAD.format(x=x, y=y, z=z, count=self.count).rstrip("\n")]
        scope = Scope(sync=self.sync, warp=self.warps)
        if self.sync:
            self.barrier(scope)
        else:
            scope.readable = ""
        self.block_of(scope, 3 + self.pick(5))
        self.line(scope, "out[gid] = (acc ^ (m[0] * 7)) + (m[2] - m[3])")
        self.line(scope, "fout[gid] = (facc + words[1]) * words[2]")
        return "\n".join([*self.lines, "}\n"])

    # --- pieces ---

    def line(self, scope: Scope, text: str) -> None:
        self.lines.append("  " * scope.depth + text)

    def one(self, choices: list[str]) -> str:
        return choices[self.pick(len(choices))]

    def fresh(self, name: str) -> str:
        self.names += 1
        return f"{name}{self.names}"

    def barrier(self, scope: Scope) -> None:
        self.line(scope, "barrier block")
        scope.readable = "a" if self.pick(2) else "b"

    def our_value(self, scope: Scope, depth: int = 2) -> str:
        choice = self.pick(6 if depth else 3)
        if choice == 0:
            return str(self.pick(5))
        if choice <= 2:
            return self.one(scope.ours)
        if choice == 3:
            return f"few[{self.our_value(scope, 0)} & 7]"
        if choice == 4:
            return f"({self.our_value(scope, depth - 1)} + block_idx.x)"
        op = self.one(["+", "-", "*", "//", "%%", "^", "&"])
        return f"({self.our_value(scope, depth - 1)} {op} {self.our_value(scope, depth - 1)})"

    def value(self, scope: Scope, depth: int = 2) -> str:
        choice = self.pick(9 if depth else 3)
        if choice == 0:
            return str(self.pick(9))
        if choice == 1:
            return self.one(scope.mine)
        if choice == 2:
            return self.one(scope.ours)
        inner = self.value(scope, depth - 1)
        if choice == 3:
            return f"m[{inner} & 3]"
        if choice == 4:
            return f"x[{inner}; {inner} in {8 + self.pick(40)}]"
        if choice == 5 and scope.readable:
            return f"{scope.readable}[({inner} %% {self.count})]"
        if choice == 6:
            return f"select({self.condition(scope)}, {inner}, {self.one(scope.mine)})"
        op = self.one(["+", "-", "*", "//", "%%", "^", "&", "|"])
        return f"({inner} {op} {self.value(scope, depth - 1)})"

    def condition(self, scope: Scope) -> str:
        sign = self.one(["<", ">", "==", "<=", "!="])
        return f"(({self.value(scope, 1)} & 15) {sign} {self.value(scope, 0)})"

    def our_condition(self, scope: Scope) -> str:
        return (
            f"({self.our_value(scope, 1)} {self.one(['<', '>', '!='])} {self.our_value(scope, 1)})"
        )

    def warp_condition(self, scope: Scope) -> str:
        linear = self.one(["tid", f"((block_idx.x * {-(-self.count // 32) * 32}) + tid)"])
        split = self.one([f"{linear} // 32", f"{linear} >> 5"])
        if not self.returned and self.pick(3) == 0:
            return f"(({split}) == {self.our_value(scope, 0)})"
        return f"(({split}) {self.one(['==', '!=', '<'])} {self.pick(3)})"

    # --- statements ---

    def block_of(self, scope: Scope, length: int) -> None:
        for _ in range(length):
            if self.budget <= 0:
                return
            self.budget -= 1
            makers = [
                self.declare, self.assign, self.assign, self.store, self.divergent_if,
                self.our_if, self.divergent_loop, self.our_declare, self.our_assign, self.atomic,
                self.our_loop, self.our_loop,
            ]  # fmt: skip
            if scope.sync:
                makers += [self.phase, self.phase, self.our_loop]
            if scope.warp:
                makers += [self.warp_operation] * 3 + [self.warp_if]
            if self.returns:
                makers += [self.leave]
            if scope.loop:
                makers += [self.jump]
            makers[self.pick(len(makers))](scope)

    def phase(self, scope: Scope) -> None:
        self.barrier(scope)

    def declare(self, scope: Scope) -> None:
        name = self.fresh("v")
        self.line(scope, f"var {name}: i32 = {self.value(scope)}")
        scope.mine.append(name)

    def our_declare(self, scope: Scope) -> None:
        name = self.fresh("our")
        self.line(scope, f"var {name}: i32 = {self.our_value(scope)}")
        scope.ours.append(name)

    def assign(self, scope: Scope) -> None:
        choices = [name for name in scope.mine if name not in scope.fixed]
        if self.pick(4) == 0:
            self.line(scope, f"m[{self.value(scope, 0)} & 3] = {self.value(scope)}")
        elif self.pick(4) == 0:
            self.line(
                scope, f"facc = (facc * words[{self.pick(3)}]) + f32({self.value(scope)} & 63)"
            )
        else:
            self.line(scope, f"{self.one(choices)} = {self.value(scope)}")

    def our_assign(self, scope: Scope) -> None:
        choices = [name for name in scope.ours if name not in scope.fixed]
        divergent = not (scope.sync or scope.warp) and (self.sync or self.warps)
        if choices and not divergent and scope.loop != "mine":
            self.line(scope, f"{self.one(choices)} = {self.our_value(scope)}")
        else:
            self.assign(scope)

    def store(self, scope: Scope) -> None:
        other = {"a": "b", "b": "a", "": "a"}[scope.readable]
        self.line(scope, f"{other}[tid] = {self.value(scope)}")

    def atomic(self, scope: Scope) -> None:
        self.line(scope, f"atomic add counts[{self.value(scope, 0)} & 3], {self.value(scope, 1)}")

    def divergent_if(self, scope: Scope) -> None:
        loop = scope.loop if scope.loop != "ours" or not (self.sync or self.warps) else ""
        for part in range(1 + self.pick(2)):
            self.line(scope, "} else {" if part else f"if ({self.condition(scope)}) {{")
            inside = scope.inside(sync=False, warp=False, ours=["n", "k"], loop=loop)
            self.block_of(inside, 1 + self.pick(3))
        self.line(scope, "}")

    def our_if(self, scope: Scope) -> None:
        self.line(scope, f"if ({self.our_condition(scope)}) {{")
        for part in range(1 + self.pick(2)):
            if part:
                self.line(scope, "} else {")
            inside = scope.inside(sync=scope.sync)
            if scope.sync:
                self.barrier(inside)
            self.block_of(inside, 1 + self.pick(4))
            if scope.sync:
                self.barrier(inside)
        self.line(scope, "}")
        if scope.sync:
            self.barrier(scope)

    def warp_if(self, scope: Scope) -> None:
        self.line(scope, f"if ({self.warp_condition(scope)}) {{")
        self.block_of(scope.inside(sync=False, loop="", ours=["n", "k"]), 1 + self.pick(4))
        self.line(scope, "}")

    def divergent_loop(self, scope: Scope) -> None:
        name = self.fresh("at")
        step = self.one(["1", "2", "-1"])
        bounds = (
            f"{self.value(scope, 1)} & 7, -1, -1" if step == "-1"
            else f"{self.value(scope, 0)} & 3, {self.value(scope, 1)} & 7, {step}"
        )  # fmt: skip
        self.line(scope, f"for {name}: i32 in range({bounds}) {{")
        inside = scope.inside(sync=False, warp=False, loop="mine", ours=["n", "k"])
        inside.mine.append(name)
        inside.fixed = scope.fixed | {name}
        self.block_of(inside, 1 + self.pick(3))
        self.line(scope, "}")

    def our_loop(self, scope: Scope) -> None:
        name = self.fresh("j")
        while_loop = self.pick(3) == 0
        if while_loop:
            self.line(scope, f"var {name}: i32 = 0")
            self.line(scope, f"while ({name} < ({self.our_value(scope, 1)} & 3)) {{")
        else:
            self.line(scope, f"for {name}: i32 in range(0, {self.our_value(scope, 1)} & 3) {{")
        inside = scope.inside(loop="ours")
        inside.ours.append(name)
        inside.fixed = scope.fixed | {name}
        if scope.sync:
            self.barrier(inside)
        self.block_of(inside, 1 + self.pick(4))
        if scope.sync:
            self.barrier(inside)
        if while_loop:
            self.line(scope, "} update {")
            self.line(inside, f"{name} = {name} + 1")
        self.line(scope, "}")
        if scope.sync:
            self.barrier(scope)

    def jump(self, scope: Scope) -> None:
        condition = self.condition(scope) if scope.loop == "mine" else self.our_condition(scope)
        self.line(scope, f"if ({condition}) {{")
        self.line(scope, f"  {self.one(['break', 'continue'])}")
        self.line(scope, "}")

    def leave(self, scope: Scope) -> None:
        divergent = self.pick(2) or not (scope.sync or scope.warp)
        condition = self.condition(scope) if divergent else self.our_condition(scope)
        self.returned = True
        self.line(scope, f"if ({condition}) {{")
        self.line(scope, "  out[gid] = acc - 1")
        self.line(scope, "  return")
        self.line(scope, "}")

    def warp_operation(self, scope: Scope) -> None:
        name = self.fresh("w")
        op = self.one(
            ["sum", "min", "max", "prefix_sum", "ballot", "vote_all", "vote_any"]
            + ["shuffle", "shuffle_up", "shuffle_down", "shuffle_xor"] * (not self.returned)
        )
        if op in ("ballot", "vote_all", "vote_any"):
            got = self.fresh("g")
            self.line(scope, f"var {got}: {'u32' if op == 'ballot' else 'bool'}")
            self.line(scope, f"{got} = subgroup {op} {self.condition(scope)}")
            self.line(scope, f"var {name}: i32 = i32({got})")
        else:
            by = f", ({self.value(scope, 1)} & 33)" if op.startswith("shuffle") else ""
            self.line(scope, f"var {name}: i32")
            self.line(scope, f"{name} = subgroup {op} {self.value(scope, 1)}{by}")
        if self.pick(4) == 0:
            self.line(scope, "barrier subgroup")
        scope.mine.append(name)


def draw(pick: Pick, block: tuple[int, int, int], *, sync: bool, warps: bool, returns: bool) -> str:
    """The text of a random kernel for blocks of this extent."""
    return Program(pick, block, sync=sync, warps=warps, returns=returns).text()
