"""Steps of optimizers: each updates parameters in one stretch of memory, and their state.

Everything that changes from step to step is read from memory, so that a recorded step uses new
numbers when it is replayed. `given` has a group's numbers as the user set them, `now` what follows
from them and from the number of steps: a row of `WIDTH` for each parameter, in which an algorithm
may also remember numbers from step to step. More algorithms are in `adaptive_steps`.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from treadle import lang as td
from treadle.core.dtypes import DType
from treadle.kernels.device_code.keys import wide
from treadle.lang.decorators import Function, Kernel

# What a row of `now` begins with; what an algorithm derives follows.
SKIPPED = 0  # not 0: this step is not taken
SCALE = 1  # gradients are multiplied by it
FIRST = 2  # not 0: the first step
DERIVED = 3
WIDTH = 8


class Form(NamedTuple):
    """What the code of a step depends on: the elements' dtype, how many a thread updates, whether
    the objective is maximized, and whether gradients are scaled (then they are stored unscaled)."""

    dtype: DType
    lanes: int = 1
    maximize: bool = False
    scaled: bool = False


# --- before a step -------------------------------------------------------------------------------


@functools.cache
def advancer(derive: Function) -> Kernel:
    """A kernel that counts a step for `count` parameters from `first` on, unless an infinity or NaN
    was found in their gradients, and writes their rows of `now`."""

    @td.kernel(checked=False)
    def advance_steps(
        steps: td.Array[td.f32], given, now, found: td.Array[td.f32], scale: td.Array[td.f32],
        first: td.i32, count: td.i32,
    ):  # fmt: skip
        i = td.grid(1)
        if i < count:
            skipped = found[0] != 0.0
            step = steps[first + i]
            if not skipped:
                step += 1.0
                steps[first + i] = step
            row = (first + i) * WIDTH
            now[row + SKIPPED] = 1.0 if skipped else 0.0
            now[row + SCALE] = 1.0 / scale[0]
            now[row + FIRST] = 1.0 if step <= 1.0 else 0.0
            if not skipped:
                derive(given, now, row + DERIVED, step)

    return advance_steps


@functools.cache
def nothing(work: DType) -> Function:
    """Nothing depends on the number of steps."""

    @td.func
    def derive(given, now, row, step):
        pass

    return derive


@functools.cache
def corrections(work: DType) -> Function:
    """Adam's: how far a step goes, and what the root of the second moment is multiplied by. Powers
    of decays are near 1 at first, so that their distance from 1 is computed as such."""

    @td.func
    def derive(given, now, row, step):
        count = work(step)
        now[row] = -given[0] / td.expm1(count * given[1])
        now[row + 1] = 1.0 / td.sqrt(-td.expm1(count * given[2]))

    return derive


@functools.cache
def falling(work: DType) -> Function:
    """Adagrad's: how far a step goes, which falls with the steps."""

    @td.func
    def derive(given, now, row, step):
        now[row] = given[0] / (1.0 + (work(step) - 1.0) * given[1])

    return derive


# --- steps ---------------------------------------------------------------------------------------


def forms(form: Form) -> tuple[Any, Any]:
    """The types that elements are stored as, and computed with."""
    if form.lanes == 1:
        return form.dtype, wide(form.dtype)
    return td.vec4[form.dtype], td.vec4[wide(form.dtype)]


@functools.cache
def gradient_of(form: Form) -> Function:
    """A function that reads a gradient, so that a step against it is wanted."""
    stored, work = forms(form)
    maximize, scaled = form.maximize, form.scaled

    @td.func
    def gradient(g, now, row, i):
        value = work(g[i])
        if scaled:
            value = value * now[row + SCALE]
            g[i] = stored(value)
        if maximize:
            value = -value
        return value

    return gradient


@functools.cache
def sgd(form: Form, momentum: bool, nesterov: bool) -> Kernel:
    """Stochastic gradient descent. Given: lr, weight decay, momentum, 1 - dampening."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]
    if_kept: Any = array if momentum else td.i32

    @td.kernel(checked=False)
    def update_sgd(p: array, g: array, kept: if_kept, given, now, row: td.i32, n: td.i32):
        i = td.grid(1)
        if i < n and now[row + SKIPPED] == 0.0:
            value = work(p[i])
            change = gradient(g, now, row, i) + value * given[1]
            if momentum:
                average = change
                if now[row + FIRST] == 0.0:
                    average = work(kept[i]) * given[2] + change * given[3]
                kept[i] = stored(average)
                if nesterov:
                    change = change + average * given[2]
                else:
                    change = average
            p[i] = stored(value - change * given[0])

    return update_sgd


@functools.cache
def adam(form: Form, amsgrad: bool, decoupled: bool) -> Kernel:
    """Adam. Given: lr, the logarithms of both decays, 1 - the first decay, the second one, its
    distance from 1, epsilon, and weight decay; if it is decoupled, what it leaves of parameters."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]
    if_greatest: Any = array if amsgrad else td.i32

    @td.kernel(checked=False)
    def update_adam(
        p: array, g: array, first: array, second: array, greatest: if_greatest, given, now,
        row: td.i32, n: td.i32,
    ):  # fmt: skip
        i = td.grid(1)
        if i < n and now[row + SKIPPED] == 0.0:
            value, change = work(p[i]), gradient(g, now, row, i)
            if decoupled:
                value = value * given[7]
            else:
                change = change + value * given[7]
            mean, square = work(first[i]), work(second[i])
            mean = mean + (change - mean) * given[3]
            square = square * given[4] + change * change * given[5]
            first[i] = stored(mean)
            second[i] = stored(square)
            if amsgrad:
                square = td.maximum(work(greatest[i]), square)
                greatest[i] = stored(square)
            root = td.sqrt(square) * now[row + DERIVED + 1] + given[6]
            p[i] = stored(value - mean / root * now[row + DERIVED])

    return update_adam


@functools.cache
def rmsprop(form: Form, momentum: bool, centered: bool) -> Kernel:
    """RMSprop. Given: lr, weight decay, the decay of averages, its distance from 1, epsilon,
    momentum."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]
    if_kept: Any = array if momentum else td.i32
    if_mean: Any = array if centered else td.i32

    @td.kernel(checked=False)
    def update_rmsprop(
        p: array, g: array, squares: array, kept: if_kept, means: if_mean, given, now, row: td.i32,
        n: td.i32,
    ):  # fmt: skip
        i = td.grid(1)
        if i < n and now[row + SKIPPED] == 0.0:
            value = work(p[i])
            change = gradient(g, now, row, i) + value * given[1]
            square = work(squares[i]) * given[2] + change * change * given[3]
            squares[i] = stored(square)
            if centered:
                mean = work(means[i])
                mean = mean + (change - mean) * given[3]
                means[i] = stored(mean)
                square = square - mean * mean
            change = change / (td.sqrt(square) + given[4])
            if momentum:
                change = work(kept[i]) * given[5] + change
                kept[i] = stored(change)
            p[i] = stored(value - change * given[0])

    return update_rmsprop


@functools.cache
def adagrad(form: Form) -> Kernel:
    """Adagrad. Given: lr, its decay, weight decay, epsilon."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]

    @td.kernel(checked=False)
    def update_adagrad(p: array, g: array, sums: array, given, now, row: td.i32, n: td.i32):
        i = td.grid(1)
        if i < n and now[row + SKIPPED] == 0.0:
            value = work(p[i])
            change = gradient(g, now, row, i) + value * given[2]
            total = work(sums[i]) + change * change
            sums[i] = stored(total)
            change = change / (td.sqrt(total) + given[3])
            p[i] = stored(value - change * now[row + DERIVED])

    return update_adagrad


@functools.cache
def lion(form: Form) -> Kernel:
    """Lion. Given: lr, both decays, their distances from 1, what weight decay leaves of
    parameters."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]

    @td.kernel(checked=False)
    def update_lion(p: array, g: array, means: array, given, now, row: td.i32, n: td.i32):
        i = td.grid(1)
        if i < n and now[row + SKIPPED] == 0.0:
            change, mean = gradient(g, now, row, i), work(means[i])
            direction = td.sign(mean * given[1] + change * given[3])
            means[i] = stored(mean * given[2] + change * given[4])
            p[i] = stored(work(p[i]) * given[5] - direction * given[0])

    return update_lion
