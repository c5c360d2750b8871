"""Recurrent networks: all steps of a sequence in one launch, and their derivative.

Sequences of a batch do not depend on each other. A block has a few of them, their states in shared
memory, and goes step by step; its threads are the columns of the gates, in steps of a product with
the hidden state, and then the elements of the state. On the CPU the threads are lanes of vectors.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Function, Kernel

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}


class Stepping(NamedTuple):
    """What a kernel is made for."""

    kind: str  # of `GATES`
    dtype: DType
    threads: int
    rows: int  # sequences of a block
    room: int  # the most elements of a state
    columns: int  # of the gates, of a thread at a time
    even: bool  # whether these are all, for all threads
    has_bias: bool
    reverse: bool


@functools.cache
def stepper(what: Stepping, keeps: bool) -> Kernel:
    """The kernel: `inputs` and `weight` (of shape (width, gates)) make the gates, of which come the
    `out` of each step and, of an LSTM, its `cells`, the last one alone unless it `keeps` them."""
    kind, dtype, threads, rows, room, columns, even, has_bias, reverse = what
    gates, is_lstm = GATES[kind], kind == "lstm"
    sums = columns * rows
    stepped = _stepped(kind, dtype)

    @td.kernel(checked=False)
    def recur(
        inputs, weight, bias, hidden, cell, out, cells, length: td.i32, batch: td.i32, width: td.i32
    ):
        t = td.thread_idx.x
        first = td.block_idx.x * rows
        state = td.shared(rows * room, dtype)
        inner = td.shared(rows * room if is_lstm else 1, dtype)
        board = td.shared(rows * room * gates, dtype)
        total = td.local(sums, dtype)
        wide = gates * width
        for e in range(0, width, threads):
            if e + t < width:
                for r in td.static_range(rows):
                    state[r * room + e + t] = hidden[(first + r) * width + e + t]
                    if is_lstm:
                        inner[r * room + e + t] = cell[(first + r) * width + e + t]
        td.sync_threads()
        for step in range(length):
            at = (length - 1 - step if reverse else step) * batch + first
            for j in range(0, wide, threads * columns):
                for u in td.static_range(columns):
                    start = dtype(0.0)
                    if has_bias and (even or j + u * threads + t < wide):
                        start = bias[j + u * threads + t]
                    for r in td.static_range(rows):
                        total[r * columns + u] = start
                for k in range(width):
                    for u in td.static_range(columns):
                        entry = dtype(0.0)
                        if even or j + u * threads + t < wide:
                            entry = weight[k * wide + j + u * threads + t]
                        for r in td.static_range(rows):
                            total[r * columns + u] += entry * state[r * room + k]
                for u in td.static_range(columns):
                    if even or j + u * threads + t < wide:
                        for r in td.static_range(rows):
                            board[r * room * gates + j + u * threads + t] = total[r * columns + u]
            td.sync_threads()
            for e in range(0, width, threads):
                if e + t < width:
                    for r in td.static_range(rows):
                        here = r * room + e + t
                        old = inner[here] if is_lstm else state[here]
                        made, shown = stepped(
                            inputs, (at + r) * wide + e + t, board, r * room * gates + e + t, width,
                            old,
                        )  # fmt: skip
                        out[(at + r) * width + e + t] = shown
                        state[here] = shown
                        if is_lstm:
                            inner[here] = made
                            if keeps:
                                cells[(at + r) * width + e + t] = made
            td.sync_threads()
        if is_lstm and not keeps:
            for e in range(0, width, threads):
                if e + t < width:
                    for r in td.static_range(rows):
                        cells[(first + r) * width + e + t] = inner[r * room + e + t]

    return recur


@functools.cache
def back_stepper(what: Stepping) -> Kernel:
    """The kernel of the derivative, from the last step to the first. `parts` are the products with
    the hidden state, with the bias, and of kinds but a GRU `inputs` has them added; `weight` is of
    shape (gates, width). It makes the gradients of inputs, of these products (of a GRU, where they
    differ), and of the first states, those of an LSTM's cell last.

    No kind uses more than eight arrays, which is what every device binds."""
    kind, dtype, threads, rows, room, _, _, _, reverse = what
    gates, is_lstm = GATES[kind], kind == "lstm"
    stepped = _stepped_back(kind, dtype)

    @td.kernel(checked=False)
    def recur_backward(
        of_out, of_cells, inputs, parts, before, cells, cell, weight, of_inputs, of_parts,
        of_states, length: td.i32, batch: td.i32, width: td.i32,
    ):  # fmt: skip
        t = td.thread_idx.x
        first = td.block_idx.x * rows
        flow = td.shared(rows * room, dtype)  # to the hidden state
        inner = td.shared(rows * room if is_lstm else 1, dtype)  # to the cell
        board = td.shared(rows * room * gates, dtype)
        total = td.local(rows, dtype)
        wide = gates * width
        for e in range(0, width, threads):
            if e + t < width:
                for r in td.static_range(rows):
                    flow[r * room + e + t] = dtype(0.0)
                    if is_lstm:
                        inner[r * room + e + t] = dtype(0.0)
        td.sync_threads()
        for step in range(length):
            now = step if reverse else length - 1 - step
            at = now * batch + first
            for e in range(0, width, threads):
                if e + t < width:
                    for r in td.static_range(rows):
                        here = r * room + e + t
                        row = (at + r) * width + e + t
                        g = flow[here] + of_out[row]
                        old, new, of_new = dtype(0.0), dtype(0.0), dtype(0.0)
                        if kind == "gru":
                            old = before[row]
                        if is_lstm:
                            new = cells[row]
                            of_new = inner[here] + of_cells[row]
                            old = cell[(first + r) * width + e + t]
                            if step < length - 1:
                                if reverse:
                                    old = cells[row + batch * width]
                                else:
                                    old = cells[row - batch * width]
                        kept, through = stepped(
                            inputs, parts, (at + r) * wide + e + t, board,
                            r * room * gates + e + t, of_inputs, of_parts, width, g, old, new,
                            of_new,
                        )  # fmt: skip
                        flow[here] = through
                        if is_lstm:
                            inner[here] = kept
            td.sync_threads()
            for e in range(0, width, threads):
                if e + t < width:
                    for r in td.static_range(rows):
                        total[r] = flow[r * room + e + t]
                    for j in range(wide):
                        entry = weight[j * width + e + t]
                        for r in td.static_range(rows):
                            total[r] += entry * board[r * room * gates + j]
                    for r in td.static_range(rows):
                        flow[r * room + e + t] = total[r]
            td.sync_threads()
        for e in range(0, width, threads):
            if e + t < width:
                for r in td.static_range(rows):
                    of_states[(first + r) * width + e + t] = flow[r * room + e + t]
                    if is_lstm:
                        of_states[(batch + first + r) * width + e + t] = inner[r * room + e + t]

    return recur_backward


# --- one element of a step -----------------------------------------------------------------------


@td.func
def _sigmoid(x):
    return 1 / (1 + td.exp(-x))


@functools.cache
def _stepped(kind: str, dtype: DType) -> Function:
    """The new cell (of an LSTM) and the new hidden state."""

    @td.func
    def lstm(inputs, at: td.i32, board, here: td.i32, width: td.i32, old):
        taken = _sigmoid(inputs[at] + board[here])
        kept = _sigmoid(inputs[at + width] + board[here + width])
        new = td.tanh(inputs[at + 2 * width] + board[here + 2 * width])
        shown = _sigmoid(inputs[at + 3 * width] + board[here + 3 * width])
        cell = kept * old + taken * new
        return cell, shown * td.tanh(cell)

    @td.func
    def gru(inputs, at: td.i32, board, here: td.i32, width: td.i32, old):
        reset = _sigmoid(inputs[at] + board[here])
        part = _sigmoid(inputs[at + width] + board[here + width])
        new = td.tanh(inputs[at + 2 * width] + reset * board[here + 2 * width])
        return new, new + part * (old - new)

    @td.func
    def tanh(inputs, at: td.i32, board, here: td.i32, width: td.i32, old):
        made = td.tanh(inputs[at] + board[here])
        return made, made

    @td.func
    def relu(inputs, at: td.i32, board, here: td.i32, width: td.i32, old):
        entry = inputs[at] + board[here]
        made = dtype(0.0) if entry < dtype(0.0) else entry
        return made, made

    return {"lstm": lstm, "gru": gru, "tanh": tanh, "relu": relu}[kind]


@functools.cache
def _stepped_back(kind: str, dtype: DType) -> Function:
    """From the gradients of the hidden state and the cell those of the gates, which are written to
    `of_inputs`, to `of_parts` where they differ, and to `board`; the gradients of the old cell, and
    of the old hidden state but for what flows through the gates."""

    @td.func
    def lstm(
        inputs, parts, at: td.i32, board, here: td.i32, of_inputs, of_parts, width: td.i32, g, old,
        new, of_new,
    ):  # fmt: skip
        taken = _sigmoid(inputs[at])
        kept = _sigmoid(inputs[at + width])
        made = td.tanh(inputs[at + 2 * width])
        shown = _sigmoid(inputs[at + 3 * width])
        bent = td.tanh(new)
        of_cell = of_new + g * shown * (1 - bent * bent)
        one = of_cell * made * taken * (1 - taken)
        two = of_cell * old * kept * (1 - kept)
        three = of_cell * taken * (1 - made * made)
        four = g * bent * shown * (1 - shown)
        board[here] = one
        board[here + width] = two
        board[here + 2 * width] = three
        board[here + 3 * width] = four
        of_inputs[at] = one
        of_inputs[at + width] = two
        of_inputs[at + 2 * width] = three
        of_inputs[at + 3 * width] = four
        return of_cell * kept, dtype(0.0)

    @td.func
    def gru(
        inputs, parts, at: td.i32, board, here: td.i32, of_inputs, of_parts, width: td.i32, g, old,
        new, of_new,
    ):  # fmt: skip
        reset = _sigmoid(inputs[at] + parts[at])
        part = _sigmoid(inputs[at + width] + parts[at + width])
        inner = parts[at + 2 * width]
        made = td.tanh(inputs[at + 2 * width] + reset * inner)
        of_made = g * (1 - part) * (1 - made * made)
        one = of_made * inner * reset * (1 - reset)
        two = g * (old - made) * part * (1 - part)
        three = of_made * reset
        board[here] = one
        board[here + width] = two
        board[here + 2 * width] = three
        of_inputs[at] = one
        of_inputs[at + width] = two
        of_inputs[at + 2 * width] = of_made
        of_parts[at] = one
        of_parts[at + width] = two
        of_parts[at + 2 * width] = three
        return dtype(0.0), g * part

    @td.func
    def tanh(
        inputs, parts, at: td.i32, board, here: td.i32, of_inputs, of_parts, width: td.i32, g, old,
        new, of_new,
    ):  # fmt: skip
        made = td.tanh(inputs[at])
        found = g * (1 - made * made)
        board[here] = found
        of_inputs[at] = found
        return dtype(0.0), dtype(0.0)

    @td.func
    def relu(
        inputs, parts, at: td.i32, board, here: td.i32, of_inputs, of_parts, width: td.i32, g, old,
        new, of_new,
    ):  # fmt: skip
        found = dtype(0.0) if inputs[at] <= dtype(0.0) else g
        board[here] = found
        of_inputs[at] = found
        return dtype(0.0), dtype(0.0)

    return {"lstm": lstm, "gru": gru, "tanh": tanh, "relu": relu}[kind]
