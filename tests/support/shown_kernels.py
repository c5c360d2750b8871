"""Kernels in IR text whose printed form is shown in tests, one language beside the other."""

SAXPY = """
kernel saxpy block(256, 1, 1) {
  buffer x: f32
  buffer y: f32
  parameter a: f32 from ("value", "a")
  parameter x.size: i32 from ("size", "x")
  parameter y.size: i32 from ("size", "y")

  var i: i32 = (block_idx.x * block_dim.x) + thread_idx.x
  if (i < y.size) {
    y[i; i in y.size] = y[i; i in y.size] + (a * x[i; i in x.size])
  }
}
"""
BLOCK_SUM = """
kernel block_sum block(64, 1, 1) {
  buffer x: f16
  buffer total: f32
  parameter x.size: i32 from ("size", "x")
  shared part: f32[64]

  var t: i32 = thread_idx.x
  part[t] = f32(x[(block_idx.x * 64) + t; (block_idx.x * 64) + t in x.size])
  barrier block
  var stride: i32 = 32
  while (stride > 0) {
    if (t < stride) {
      part[t] = part[t] + part[t + stride]
    }
    barrier block
  } update {
    stride = stride // 2
  }
  if (t == 0) {
    atomic max total[0], part[0]
  }
}
"""
WARPS = """
kernel warps block(40, 1, 1) {
  buffer x: i32
  parameter n: i32 from ("value", "n")

  var t: i32 = thread_idx.x
  var v: i32 = x[t]
  var s: i32
  s = subgroup shuffle_down v, 1
  v = subgroup sum v + s
  x[t] = (v %% n) + ((v * n) >> 3)
}
"""
