"""More steps of optimizers, as `optimizer_steps` has them: Adadelta, Adamax, NAdam, RAdam, ASGD and
Rprop."""

from __future__ import annotations

import functools
from typing import Any

from treadle import lang as td
from treadle.core.dtypes import DType, float64
from treadle.kernels.device_code.optimizer_steps import (
    DERIVED,
    SKIPPED,
    Form,
    forms,
    gradient_of,
)
from treadle.lang.decorators import Function, Kernel

# Where rows of `now` have what is remembered, from DERIVED on: NAdam's product of momenta, ASGD's
# rate and weight of averages.
MU_PRODUCT = 3
ETA, MU = 2, 3

# --- before a step -------------------------------------------------------------------------------


@functools.cache
def adamax_rate(work: DType) -> Function:
    """How far a step of Adamax goes: lr / (1 - beta1 ** step)."""

    @td.func
    def derive(given, now, row, step):
        now[row] = -given[0] / td.expm1(work(step) * given[1])

    return derive


@functools.cache
def nadam_factors(work: DType) -> Function:
    """What NAdam multiplies gradients and their average with, and the root of the second moment."""

    @td.func
    def derive(given, now, row, step):
        count = work(step)
        mu = given[8] * (1.0 - 0.5 * td.exp(count * given[9]))
        following = given[8] * (1.0 - 0.5 * td.exp((count + 1.0) * given[9]))
        product = now[row + MU_PRODUCT] * mu
        now[row + MU_PRODUCT] = product
        now[row] = given[0] * (1.0 - mu) / (1.0 - product)
        now[row + 1] = given[0] * following / (1.0 - product * following)
        now[row + 2] = 1.0 / td.sqrt(-td.expm1(count * given[2]))

    return derive


@functools.cache
def radam_factors(work: DType) -> Function:
    """How far a step of RAdam goes, and what rectifies it; 0 for a step that is not adaptive yet.

    rho = rho_inf - 2 * t * q / (1 - q) with q = beta2 ** t is a small difference of large numbers
    at first: in single precision it is summed from the series of x / (exp(x) - 1).
    """
    is_exact = work is float64

    @td.func
    def derive(given, now, row, step):
        count = work(step)
        x = -count * given[2]
        rho = given[8] + 2.0 * count / td.expm1(-x) * td.exp(-x)
        if not is_exact and x < 0.5:
            y = x * x
            series = x * (-1.0 / 6.0 + y * (1.0 / 360.0 - y * (1.0 / 15120.0)))
            rho = given[9] + count + count * series
        now[row] = -given[0] / td.expm1(count * given[1])
        now[row + 1] = 0.0
        if rho > 5.0:
            by = (given[8] - 4.0) * (given[8] - 2.0) * rho
            rect = (rho - 4.0) * (rho - 2.0) * given[8] / by
            now[row + 1] = td.sqrt(rect) * td.sqrt(-td.expm1(-x))

    return derive


@functools.cache
def asgd_rates(work: DType) -> Function:
    """ASGD's rate and weight of averages, which the step before has left, and those of the next."""

    @td.func
    def derive(given, now, row, step):
        count = work(step)
        now[row] = now[row + ETA]
        now[row + 1] = now[row + MU]
        now[row + ETA] = given[0] / td.pow(1.0 + given[1] * given[0] * count, given[2])
        now[row + MU] = 1.0 / td.maximum(work(1.0), count - given[3])

    return derive


# --- steps ---------------------------------------------------------------------------------------


@functools.cache
def adadelta(form: Form) -> Kernel:
    """Adadelta. Given: lr, rho, its distance from 1, epsilon, weight decay."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]

    @td.kernel(checked=False)
    def update_adadelta(
        p: array, g: array, squares: array, deltas: array, given, now, row: td.i32, n: td.i32
    ):  # fmt: skip
        i = td.grid(1)
        if i < n and now[row + SKIPPED] == 0.0:
            value = work(p[i])
            change = gradient(g, now, row, i) + value * given[4]
            square = work(squares[i]) * given[1] + change * change * given[2]
            squares[i] = stored(square)
            before = work(deltas[i])
            delta = td.sqrt(before + given[3]) / td.sqrt(square + given[3]) * change
            deltas[i] = stored(before * given[1] + delta * delta * given[2])
            p[i] = stored(value - delta * given[0])

    return update_adadelta


@functools.cache
def adamax(form: Form) -> Kernel:
    """Adamax. Given: lr, the logarithm of the first decay, its distance from 1, the second decay,
    epsilon, weight decay."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]

    @td.kernel(checked=False)
    def update_adamax(
        p: array, g: array, first: array, greatest: array, given, now, row: td.i32, n: td.i32
    ):  # fmt: skip
        i = td.grid(1)
        if i < n and now[row + SKIPPED] == 0.0:
            value = work(p[i])
            change = gradient(g, now, row, i) + value * given[5]
            mean = work(first[i])
            mean = mean + (change - mean) * given[2]
            first[i] = stored(mean)
            norm = td.maximum(work(greatest[i]) * given[3], td.abs(change) + given[4])
            greatest[i] = stored(norm)
            p[i] = stored(value - mean / norm * now[row + DERIVED])

    return update_adamax


@functools.cache
def nadam(form: Form, decoupled: bool) -> Kernel:
    """NAdam. Given: lr, the logarithms of both decays, 1 - the first decay, the second one, its
    distance from 1, epsilon, weight decay (if it is decoupled, what it leaves of parameters), the
    first decay, the logarithm of the momentum's decay."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]

    @td.kernel(checked=False)
    def update_nadam(
        p: array, g: array, first: array, second: array, given, now, row: td.i32, n: td.i32
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
            root = td.sqrt(square) * now[row + DERIVED + 2] + given[6]
            ahead = change * now[row + DERIVED] + mean * now[row + DERIVED + 1]
            p[i] = stored(value - ahead / root)

    return update_nadam


@functools.cache
def radam(form: Form, decoupled: bool) -> Kernel:
    """RAdam. Given: as NAdam's up to weight decay, then the greatest length of the average, and its
    part that the logarithm of the second decay does not have."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]

    @td.kernel(checked=False)
    def update_radam(
        p: array, g: array, first: array, second: array, given, now, row: td.i32, n: td.i32
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
            rectified = now[row + DERIVED + 1]
            if rectified > 0.0:
                mean = mean * rectified / (td.sqrt(square) + given[6])
            p[i] = stored(value - mean * now[row + DERIVED])

    return update_radam


@functools.cache
def asgd(form: Form) -> Kernel:
    """Averaged stochastic gradient descent. Given: lr, lambda, alpha, t0, weight decay."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]

    @td.kernel(checked=False)
    def update_asgd(p: array, g: array, averages: array, given, now, row: td.i32, n: td.i32):
        i = td.grid(1)
        if i < n and now[row + SKIPPED] == 0.0:
            value = work(p[i])
            change = gradient(g, now, row, i) + value * given[4]
            rate, weight = now[row + DERIVED], now[row + DERIVED + 1]
            value = value * (1.0 - given[1] * rate) - change * rate
            average = value
            if weight != 1.0:
                average = work(averages[i])
                average = average + (value - average) * weight
            averages[i] = stored(average)
            p[i] = stored(value)

    return update_asgd


@functools.cache
def rprop(form: Form) -> Kernel:
    """Rprop. Given: what steps are multiplied with after a change of sign and without one, the
    least and the greatest step."""
    stored, work = forms(form)
    gradient = gradient_of(form)
    array: Any = td.Array[stored]

    @td.kernel(checked=False)
    def update_rprop(
        p: array, g: array, before: array, sizes: array, given, now, row: td.i32, n: td.i32
    ):  # fmt: skip
        i = td.grid(1)
        if i < n and now[row + SKIPPED] == 0.0:
            change = gradient(g, now, row, i)
            agrees = td.sign(change * work(before[i]))
            # 1 for a sign of 0; the factors for 1 and -1.
            up, down = td.maximum(agrees, work(0.0)), td.maximum(-agrees, work(0.0))
            factor = 1.0 + up * (given[1] - 1.0) + down * (given[0] - 1.0)
            size = td.minimum(td.maximum(work(sizes[i]) * factor, work(given[2])), work(given[3]))
            change = change * (1.0 - down)
            sizes[i] = stored(size)
            before[i] = stored(change)
            p[i] = stored(work(p[i]) - td.sign(change) * size)

    return update_rprop
