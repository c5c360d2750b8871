"""From a `Program` to a kernel in IR: one file for each way of spreading the work.

`body` computes a program's steps at one point; `maps` run it over every point, `reductions` gather
values over axes, `rows` do so and go on with the results. Loops of a CPU and threads of a GPU have
forms of their own where that makes them fast.
"""
