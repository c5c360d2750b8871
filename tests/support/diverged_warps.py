"""Kernels with masks whose warps part around subgroup operations: each ends by writing `y`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BLOCK = 40
NUMBER = 21  # of the parameter n

HEAD = """\
kernel k {
  buffer x: i32
  buffer y: i32
  parameter n: i32 from ("value", "n")

  var i: i32 = thread_idx.x
  var v: i32 = x[i]
  var w: i32 = 0
  var m: u32 = 0:u32
  var p: bool = false
"""
ALL = "4294967295:u32"
EVEN, ODD = "1431655765:u32", "2863311530:u32"

BODIES = {
    "shuffles under a condition": """
  if (i < n) {
    w = subgroup shuffle_down v, 2 mask 2097151:u32
    v = subgroup shuffle_xor v, 1 mask 2097151:u32
    w = select(i < (n - 2), w, 0)
    v = select(i < (n - 1), v, 0)
  }
""",
    "after an early return": f"""
  if (i >= n) {{
    return
  }}
  m = subgroup ballot v > 0 mask {ALL}
  v = subgroup sum v mask {ALL}
  w = i32(m)
""",
    "two sides": f"""
  if ((i & 1) == 0) {{
    m = subgroup ballot v > 0 mask {EVEN}
    w = i32(m)
  }} else {{
    v = subgroup max v mask {ODD}
    w = subgroup min i mask {ODD}
  }}
""",
    "a loop of its own length": f"""
  m = subgroup ballot v > 0 mask {ALL}
  while (v > 0) {{
    p = subgroup vote_any v == 4 mask m
    if (p) {{
      w = w + 1
    }}
    barrier subgroup mask m
    v = v - 2
    m = subgroup ballot v > 0 mask m
  }}
""",
    "a return in a loop": f"""
  for k: i32 in range(0, 6) {{
    if (k == (v & 7)) {{
      y[i] = k
      return
    }}
    m = subgroup ballot true mask {ALL}
    w = w + i32(m)
  }}
""",
    "groups that match": f"""
  m = subgroup match_any v & 3 mask {ALL}
  w = subgroup sum v mask m
""",
    "bits of groups": """
  m = select((i & 4) == 0, 252645135:u32, 4042322160:u32)
  w = subgroup xor v mask m
  v = subgroup and v mask m
""",
    "the least and the most": """
  m = select((i & 4) == 0, 252645135:u32, 4042322160:u32)
  if ((i & 4) == 0) {
    w = subgroup min v mask m
  } else {
    w = subgroup max v mask m
    v = subgroup or v mask m
  }
""",
    "all alike": f"""
  m = subgroup match_all v & 3 mask {ALL}
  w = i32(m)
  m = subgroup match_all n mask {ALL}
  v = i32(m)
""",
    "a barrier of the block afterwards": """
  if (v > 0) {
    m = subgroup active
    w = subgroup sum 1 mask m
  }
  part[i] = w
  barrier block
  w = part[(i + 1) % 40]
""",
    "a return before a barrier of the block": """
  part[i] = 5
  if (i >= n) {
    return
  }
  m = subgroup ballot v > 0 mask 2097151:u32
  barrier block
  w = part[i] + i32(m)
""",
}


def text_of(name: str, block: bool = False) -> str:
    """One of the kernels, with its block in the text if asked for."""
    shared = f"  shared part: i32[{BLOCK}]\n\n" if "part[" in BODIES[name] else "\n"
    head = HEAD.replace("\n\n", f"\n{shared}", 1)
    if block:
        head = head.replace("kernel k {", f"kernel k block({BLOCK}, 1, 1) {{")
    return f"{head}{BODIES[name]}  y[i] = (v * 31) + w\n}}\n"


def arrays() -> dict[str, npt.NDArray[np.int32]]:
    """What the kernels work on."""
    x = np.random.default_rng(3).integers(-9, 9, BLOCK).astype(np.int32)
    return {"x": x, "y": np.full(BLOCK, -1, np.int32)}
