"""Writing, adding and folding at indices. An index outside of the target is dropped."""

from __future__ import annotations

import functools

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.lang.decorators import Kernel


@td.kernel
def put(target, index, values, step: td.i32):
    """For distinct indices, or a single value for all of them (step 0)."""
    i = td.grid(1)
    target[index[i]] = values[i * step]


@td.kernel
def find_last(last: td.Array[td.i32], index):
    """The last place of each index, counted from 1."""
    i = td.grid(1)
    td.atomic_max(last, index[i], i + 1)


@td.kernel
def put_last(target, index, values, last: td.Array[td.i32]):
    """Of several values for an element, only the last is written."""
    i = td.grid(1)
    at = index[i]
    if last[at] == i + 1:
        target[at] = values[i]


@functools.cache
def adder(form: DType, parts: int) -> Kernel:
    """A kernel that adds numbers as `form`, by atomics; elements have so many parts."""

    @td.kernel
    def add(target, index, values, step: td.i32):
        i = td.grid(1)
        element = i // parts
        part = i - element * parts
        at = index[element] * parts + part
        td.atomic_add(target, at, form(values[element * step * parts + part]))

    return add


@functools.cache
def private_adder(form: DType, slots: int, threads: int, counted: bool) -> Kernel:
    """A kernel for targets of up to so many elements: each block adds its stretch of the values in
    shared memory, and then its sums to the target, so that threads seldom meet at one address.
    `counted` is for a single value: blocks count the indices, and multiply."""
    kept = td.i32 if counted else form
    nothing = -0.0 if form.is_float and not counted else 0  # changes no number, nor a zero's sign

    @td.kernel(checked=False)
    def add_in_blocks(target, index, values, size: td.i32, stretch: td.i32, count: td.i32):
        t = td.thread_idx.x
        sums = td.shared(slots, kept)
        for slot in range(t, size, threads):
            sums[slot] = kept(nothing)
        td.sync_threads()
        begin = td.block_idx.x * stretch
        for i in range(begin + t, begin + td.minimum(stretch, count - begin), threads):
            at = index[i]
            if at >= 0 and at < size:
                td.atomic_add(sums, td.i32(at), 1 if counted else form(values[i]))
        td.sync_threads()
        for slot in range(t, size, threads):
            found = sums[slot]
            if counted:
                if found != 0:
                    td.atomic_add(target, slot, form(found) * form(values[0]))
            else:
                td.atomic_add(target, slot, found)

    return add_in_blocks


@functools.cache
def converter(dtype: DType, form: DType) -> Kernel:
    """A kernel that adds sums which were made in a wider dtype."""

    @td.kernel
    def add_sums(target, sums):
        i = td.grid(1)
        target[i] = dtype(form(target[i]) + sums[i])

    return add_sums


@functools.cache
def range_writer(form: DType, parts: int, how: str, place: DType) -> Kernel:
    """A kernel for the CPU, without atomics: each thread owns a range of the target's elements and
    goes through all indices in order. Elements have so many parts and are counted as `place`."""
    function = FUNCTIONS.get(how)
    most = parts

    @td.kernel(checked=False)
    def write_range(target, index, values, step: td.i32, size: place, chunk: place):
        low = place(td.grid(1)) * chunk
        high = td.minimum(low + chunk, size)
        for i in range(index.size):
            at = index[i]
            if low <= at and at < high:
                for part in td.static_range(most):
                    value = form(values[i * step * most + part])
                    to = place(at) * most + part
                    if how == "put":
                        target[to] = value
                    else:
                        target[to] = function(target[to], value)

    return write_range


@functools.cache
def caster(dtype: DType) -> Kernel:
    """A kernel that copies numbers as another dtype."""

    @td.kernel
    def cast_all(target, source):
        i = td.grid(1)
        target[i] = dtype(source[i])

    return cast_all


@functools.cache
def folder(form: DType, bits: DType, how: str) -> Kernel:
    """A kernel that folds values into elements of `form` with a function of two of them (a key of
    `FUNCTIONS`), by compare-and-swap of their bits as integers of the same size, which is repeated
    where another thread has changed the element."""
    function = FUNCTIONS[how]

    @td.kernel
    def fold(target, index, values, step: td.i32):
        i = td.grid(1)
        at = index[i]
        value = form(values[i * step])
        seen = td.atomic_cas(target, at, bits(0), bits(0))
        inside = 0 <= at < target.size
        while inside:
            wanted = td.bitcast(function(td.bitcast(seen, form), value), bits)
            found = td.atomic_cas(target, at, seen, wanted)
            inside = found != seen
            seen = found

    return fold


@functools.cache
def segment_folder(how: str) -> Kernel:
    """A kernel for sorted indices: the thread of the first of equal ones folds all their values."""
    function = FUNCTIONS[how]

    @td.kernel
    def fold_segments(target, index, order: td.Array[td.i32], values, step: td.i32):
        i = td.grid(1)
        at = index[i]
        if i == 0 or index[td.maximum(i - 1, 0)] != at:
            total = target[at]
            j = i
            while j < index.size and index[j] == at:
                total = function(total, values[order[j] * step])
                j += 1
            target[at] = total

    return fold_segments


@td.func
def _sum(a, b):
    return a + b


@td.func
def _product(a, b):
    return a * b


@td.func
def _last(a, b):
    return b


@td.func
def _least(a, b):
    return td.minimum(a, b)


@td.func
def _greatest(a, b):
    return td.maximum(a, b)


FUNCTIONS = {"put": _last, "sum": _sum, "prod": _product, "min": _least, "max": _greatest}
