"""Random numbers of other distributions for arrays, by rejection: functions as those of `draws`.

An attempt takes one evaluation of Philox (two in double precision), whose counter has the number of
the attempt above the number of the element, so that elements and attempts are independent. At most
`ATTEMPTS` are made: each succeeds with a probability above 1/2.

Probabilities are compared with their parts of the same size cancelled on paper: written as they are
found in books, differences of numbers near mean * log(mean) would leave nothing in float32.

G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables", 2000; W. Hörmann,
"The transformed rejection method for generating Poisson random variables", 1993, and "The
generation of binomial random variates", 1993; C. Loader, "Fast and accurate computation of binomial
probabilities", 2000; L. Devroye, "Non-uniform random variate generation", 1986, for few events.
"""

from __future__ import annotations

from treadle.lang import namespace as td
from treadle.lang.math.bits import exact_root
from treadle.lang.math.draws import cosine_of_turn_f64, positive_f32, positive_f64
from treadle.lang.math.exponential import exp
from treadle.lang.math.formats import Bits, Float
from treadle.lang.math.generic import generic
from treadle.lang.math.logarithm import log, log1p
from treadle.lang.math.pi_multiples import cospi, sinpi
from treadle.lang.math.random import cosine_of_turn, philox

ATTEMPTS = 255
THIRD = 0.3333333333333333
FEW = 10.0  # below this mean, events are counted one by one
NEAR = 0.125  # where sums of powers are better than differences of logarithms


# --- words ---------------------------------------------------------------------------------------


@generic
def two_words(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32, attempt: td.u32
) -> td.vec2[td.u32]:
    """Two words of as many bits as the floats have, for an attempt at an element."""
    words = philox(index, above | (attempt << 24), d0, d1, k0, k1)
    return td.vec2[td.u32](words.x, words.y)


@two_words.double
def two_words(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32, attempt: td.u32
) -> td.vec2[td.u64]:
    """Two words of 64 bits."""
    words = philox(index, above | (attempt << 24), d0, d1, k0, k1)
    first = (td.u64(words.y) << 32) | td.u64(words.x)
    return td.vec2[td.u64](first, (td.u64(words.w) << 32) | td.u64(words.z))


@generic
def positive(word: td.u32) -> td.f32:
    """A number in (0, 1]."""
    return positive_f32(word)


@positive.double
def positive(word: td.u64) -> td.f64:
    """A number in (0, 1]."""
    return positive_f64(word)


@generic
def two_units(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32, attempt: td.u32
) -> td.vec2[Float]:
    """Two numbers in (0, 1]."""
    words = two_words(index, above, d0, d1, k0, k1, attempt)
    return td.vec2[Float](positive(words.x), positive(words.y))


@generic
def from_the_end(word: Bits) -> Float:
    """A number v in (-1/2, 0) or (0, 1/2], which stands for one of the whole interval from -1/2 to
    1/2: its distance |v| from the end that is on its side, which is fine where v is small."""
    other = ~word
    return td.where(word < other, -0.5 * positive(word << 1), 0.5 * positive(other << 1))


@generic
def normal_and_unit(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32, attempt: td.u32
) -> td.vec2[td.f32]:
    """A number of the standard normal distribution, and one in (0, 1]."""
    words = philox(index, above | (attempt << 24), d0, d1, k0, k1)
    radius = exact_root(td.maximum(-2.0 * log(positive(words.x)), 0.0))
    return td.vec2[td.f32](radius * cosine_of_turn(words.y), positive(words.z))


@normal_and_unit.double
def normal_and_unit(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32, attempt: td.u32
) -> td.vec2[td.f64]:
    """The same from two evaluations: attempts have even numbers here."""
    words = two_words(index, above, d0, d1, k0, k1, attempt)
    more = two_words(index, above, d0, d1, k0, k1, attempt + 1)
    radius = exact_root(td.maximum(-2.0 * log(positive(words.x)), 0.0))
    return td.vec2[td.f64](radius * cosine_of_turn_f64(words.y), positive(more.x))


# --- gamma ---------------------------------------------------------------------------------------


@generic
def log1p_after_three_terms(t: Float) -> Float:
    """log(1 + t) - (t - t^2/2 + t^3/3), for t above -1."""
    near = td.where(td.abs(t) < NEAR, t, 0.0)
    series = 0.14285714285714285 - near * (0.125 - near * (0.1111111111111111 - near * 0.1))
    series = 0.25 - near * (0.2 - near * (0.16666666666666666 - near * series))
    far = log1p(t) - t * (1.0 - t * (0.5 - t * THIRD))
    square = near * near
    return td.where(td.abs(t) < NEAR, -square * square * series, far)


@generic
def gamma_from_one(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32, shape: Float
) -> Float:
    """The gamma distribution of a shape of 1 or more, and scale 1, by Marsaglia and Tsang.

    With t = x / sqrt(9d), x normal, d (1 + t)^3 is accepted with the probability
    exp(3d (log(1 + t) - t + t^2/2 - t^3/3)).
    """
    d = shape - THIRD
    step = 1.0 / td.sqrt(9.0 * d)
    found = d
    attempt = td.u32(0)
    while attempt < ATTEMPTS - 1 and d > 0.0:  # NaN is not
        drawn = normal_and_unit(index, above, d0, d1, k0, k1, attempt)
        attempt += 2
        t = drawn.x * step
        if t > -1.0:
            square = drawn.x * drawn.x
            taken = drawn.y < 1.0 - 0.0331 * square * square
            if not taken:
                taken = log(drawn.y) < 3.0 * d * log1p_after_three_terms(t)
            if taken:
                root = 1.0 + t
                found = d * (root * root * root)
                attempt = td.u32(ATTEMPTS)
    return found


@generic
def random_gamma(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32, shape: Float
) -> Float:
    """The gamma distribution of scale 1; NaN for a shape that is negative or NaN. A shape a below 1
    is G(a + 1) times a power 1/a of a uniform number."""
    least = td.where(shape < 1.0, shape + 1.0, shape)
    found = gamma_from_one(index, above, d0, d1, k0, k1, least)
    if shape < 1.0:
        last = two_units(index, above, d0, d1, k0, k1, td.u32(ATTEMPTS))
        found = found * exp(log(last.x) / shape)
    found = td.where(shape == 0.0, 0.0, td.where(td.isinf(shape), shape, found))
    return td.where(shape >= 0.0, found, td.nan)


@generic
def random_log_gamma(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32, shape: Float
) -> Float:
    """The logarithm of `random_gamma`, also where that has no floats; NaN for a shape of 0."""
    least = td.where(shape < 1.0, shape + 1.0, shape)
    found = log(gamma_from_one(index, above, d0, d1, k0, k1, least))
    if shape < 1.0:
        last = two_units(index, above, d0, d1, k0, k1, td.u32(ATTEMPTS))
        found = found + log(last.x) / shape
    return td.where(shape > 0.0, found, td.nan)


# --- counts --------------------------------------------------------------------------------------


@generic
def deviance(x: Float, mean: Float, apart: Float) -> Float:
    """x log(x / mean) - (x - mean), for positive numbers with x - mean = apart."""
    ratio = apart / (x + mean)
    v = td.where(td.abs(ratio) < NEAR, ratio, 0.0)
    square = v * v
    series = 0.1111111111111111 + square * (0.09090909090909091 + square * 0.07692307692307693)
    series = THIRD + square * (0.2 + square * (0.14285714285714285 + square * series))
    near = apart * v + 2.0 * x * v * square * series
    return td.where(td.abs(ratio) < NEAR, near, x * log(x / mean) - apart)


@generic
def stirling_rest(x: Float) -> Float:
    """log((x-1)!) - ((x - 1/2) log(x) - x + log(2 pi)/2), for x from 1: a continued fraction."""
    rest = x + 0.25238095238095237 / (x + 0.5256064690026954 / x)
    return 0.08333333333333333 / (x + 0.03333333333333333 / rest)


@generic
def random_poisson(
    index: td.u32, above: td.u32, d0: td.u32, d1: td.u32, k0: td.u32, k1: td.u32, mean: Float
) -> Float:
    """A number of events, minus floor(mean): so it is exact where counts have no floats.

    Below a mean of 10 it counts how many uniform numbers can be multiplied until their product
    falls below exp(-mean); from there on it is Hörmann's PTRS.
    """
    base = td.floor(mean)
    found = Float(0.0)
    attempt = td.u32(0)
    if mean < FEW:
        end = exp(-mean)
        product = Float(1.0)
        count = Float(-1.0)
        while attempt < ATTEMPTS and product > end:
            units = two_units(index, above, d0, d1, k0, k1, attempt)
            attempt += 1
            product = product * units.x
            count += 1.0
            if product > end:
                product = product * units.y
                count += 1.0
        found = td.maximum(count, 0.0) - base
    else:
        b = 0.931 + 2.53 * td.sqrt(mean)
        a = -0.059 + 0.02483 * b
        log_alpha = log(1.1239 + 1.1328 / (b - 3.4))
        sure = 0.9277 - 3.6224 / (b - 2.0)
        rest = mean - base
        log_mean = log(mean) + 0.9189385332046727
        while attempt < ATTEMPTS and td.isfinite(mean):
            words = two_words(index, above, d0, d1, k0, k1, attempt)
            attempt += 1
            end = from_the_end(words.x)
            near = td.abs(end)
            v = positive(words.y)
            side = td.where(end < 0.0, near - 0.5, 0.5 - near)
            offset = td.floor((2.0 * a / near + b) * side + rest + 0.43)
            x = base + offset + 1.0
            taken = near >= 0.07 and v <= sure
            if not taken and x >= 1.0 and (near >= 0.013 or v <= near):
                likely = 0.5 * log(x) - log_mean - stirling_rest(x)
                likely = likely - deviance(x, mean, offset - rest + 1.0)
                taken = log(v) + log_alpha - log(a / (near * near) + b) <= likely
            if taken:
                found = offset
                attempt = td.u32(ATTEMPTS)
    return found


@generic
def binomial_likelihood(x: Float, y: Float, first: Float, second: Float, apart: Float) -> Float:
    """The logarithm of a probability, but for a constant: of x - 1 successes and y - 1 failures,
    where (x + y) times their probabilities are `first` and `second`, and x - first = apart."""
    both = deviance(x, first, apart) + deviance(y, second, -apart)
    return 0.5 * (log(x) + log(y)) - both - stirling_rest(x) - stirling_rest(y)


@generic
def random_binomial(
    index: td.u32,
    above: td.u32,
    d0: td.u32,
    d1: td.u32,
    k0: td.u32,
    k1: td.u32,
    trials: Float,
    p: Float,
    mean: Float,
) -> Float:
    """A number of successes of a probability p up to 1/2, minus floor(mean), mean = trials * p.

    Below a mean of 10 it counts how many waiting times for a success fit into the trials; from
    there on it is Hörmann's BTRS.
    """
    base = td.floor(mean)
    found = Float(0.0)
    attempt = td.u32(0)
    if mean < FEW:
        rate = -log1p(-p)
        passed = found
        count = Float(-1.0)
        while attempt < ATTEMPTS and passed <= trials:
            units = two_units(index, above, d0, d1, k0, k1, attempt)
            attempt += 1
            passed = passed + td.floor(-log(units.x) / rate) + 1.0
            count += 1.0
            if passed <= trials:
                passed = passed + td.floor(-log(units.y) / rate) + 1.0
                count += 1.0
        found = td.where(p > 0.0, td.maximum(count, 0.0), 0.0) - base
    else:
        q = 1.0 - p
        deviation = td.sqrt(mean * q)
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * p
        alpha = (2.83 + 5.1 / b) * deviation
        sure = 0.92 - 4.2 / b
        rest = mean - base
        first = mean + 2.0 * p
        second = (trials + 2.0) * q
        mode = td.floor(rest + p)
        most = binomial_likelihood(
            base + mode + 1.0,
            trials - base - mode + 1.0,
            first,
            second,
            mode - rest + 1.0 - 2.0 * p,
        )
        while attempt < ATTEMPTS and td.isfinite(mean):
            words = two_words(index, above, d0, d1, k0, k1, attempt)
            attempt += 1
            end = from_the_end(words.x)
            near = td.abs(end)
            v = positive(words.y)
            side = td.where(end < 0.0, near - 0.5, 0.5 - near)
            offset = td.floor((2.0 * a / near + b) * side + rest + 0.5)
            x = base + offset + 1.0
            y = trials - base - offset + 1.0
            taken = near >= 0.07 and v <= sure
            if not taken and x >= 1.0 and y >= 1.0:
                likely = binomial_likelihood(x, y, first, second, offset - rest + 1.0 - 2.0 * p)
                taken = log(v * alpha / (a / (near * near) + b)) <= likely - most
            if taken:
                found = offset
                attempt = td.u32(ATTEMPTS)
    return found


# --- functions of one word -----------------------------------------------------------------------


@generic
def laplace(word: Bits) -> Float:
    """The Laplace distribution of mean 0 and scale 1."""
    end = from_the_end(word)
    far = td.maximum(-log(2.0 * td.abs(end)), 0.0)
    return td.where(end < 0.0, -far, far)


@generic
def cauchy(word: Bits) -> Float:
    """The Cauchy distribution around 0 of scale 1: the cotangent of a uniform angle."""
    end = from_the_end(word)
    return cospi(end) / sinpi(end)
