"""Statements of CUDA C++: each kernel runs in one thread and leaves what it counted."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td

# Corner cases: comparisons that are always true, among others.
pytestmark = pytest.mark.filterwarnings("ignore::treadle.core.errors.CompileWarning")


def check(device, source, kernel, expected, inputs=(0,)):
    out = td.zeros(len(expected) + 1, dtype=td.int32, device=device)
    module = td.cuda_module(source)
    values = td.asarray(np.array(inputs, np.int32), device=device)
    module.kernel(kernel)[1, 1](values, out)
    assert out.tolist() == [*expected, 0]


CHOICES = """
__device__ int sign(int x)
{
    if (x > 0)
        return 1;
    else if (x < 0)
        return -1;
    return 0;
}

__device__ int grade(int x)
{
    if (x > 10) {
        if (x > 100)
            return 3;
        if (x % 2)
            return 2;
    } else if (x > 5)
        return 1;
    else
        x = -x;
    return x;
}

__device__ void clamp(int *x, int low, int high)
{
    if (*x < low) {
        *x = low;
        return;
    }
    if (*x > high)
        *x = high;
}

__global__ void choices(const int *in, int *out)
{
    int k = 0;
    int x = in[0];                                     // 7
    out[k++] = sign(x) * 100 + sign(-x) * 10 + sign(x - 7);
    out[k++] = grade(x);
    out[k++] = grade(x * 3);
    out[k++] = grade(x * 2);
    out[k++] = grade(x * 20);
    out[k++] = grade(x - 4);
    if (x == 7)
        if (x == 8)
            out[k++] = 1;
        else                                           // of the inner if
            out[k++] = 2;
    if (x) ; else out[k++] = 1000;
    if (int y = x - 5; y > 1) {
        out[k++] = y;
        int x = y * 100;
        out[k++] = x;
    } else {
        out[k++] = -y;
    }
    if (int z = x - 7)
        out[k++] = z;
    else
        out[k++] = z + 5;
    { int x = 1; { int x = 2; out[k++] = x; } out[k++] = x; }
    out[k++] = x;
    clamp(&x, 0, 5);
    out[k++] = x;
    clamp(&x, 6, 9);
    out[k++] = x;
    if (in[0] < 0)
        return;
    if (!(x != 6 || k > 100) && true)
        out[k++] = 77;
    ;;
    {}
}
"""


def test_if(device):
    expected = [90, 1, 2, 14, 3, -3, 2, 2, 200, 5, 2, 1, 7, 5, 6, 77]
    check(device, CHOICES, "choices", expected, [7])


LOOPS = """
struct Stack { int size = 2; __device__ void push() { size++; } };

__global__ void loops(const int *in, int *out)
{
    int k = 0, n = in[0];                              // 5
    int sum = 0;
    for (int i = 0; i < n; i++) sum += i;
    out[k++] = sum;                                    // 10
    sum = 0;
    for (int i = n; i > 0; --i) sum = sum * 10 + i;
    out[k++] = sum;                                    // 54321
    sum = 0;
    for (unsigned i = n; i-- > 0;) sum = sum * 10 + i;
    out[k++] = sum;                                    // 43210
    sum = 0;
    for (int i = 0, j = 10; i < j; i++, j -= 2) sum += i * j;
    out[k++] = sum;                                    // 0 + 8 + 12 + 12 = 32
    sum = 0;
    int i = 3;
    for (; i < 9;) { sum += i; i += 2; }
    out[k++] = sum * 100 + i;                          // 15 09
    for (;;) { if (i-- < 5) break; sum++; }
    out[k++] = sum * 100 + i;                          // 20 03
    sum = 0;
    for (int i = 0; i < 20; i++) {
        if (i % 3 == 0) { i += 1; continue; }          // the loop's own variable changes
        sum += i;
    }
    out[k++] = sum;
    sum = 0;
    for (int i = 0; i < n; i++) { if (i == 2) n = 4; sum += 1; }
    out[k++] = sum;                                    // 4: the bound is asked again
    n = in[0];
    int *bound = &n;
    sum = 0;
    for (int i = 0; i < *bound; i++) { *bound = 3; sum++; }
    out[k++] = sum;                                    // 3
    n = in[0];
    sum = 0;
    for (int i = 1; i <= 100; i *= 3) sum += i;
    out[k++] = sum;                                    // 121
    for (int i = 100; i; i >>= 1) sum++;
    out[k++] = sum;                                    // 128
    sum = 0;
    for (int step = n; step > 0; step /= 2)
        for (int i = 0; i < step; ++i)
            for (int j = i; j < n; j += 2) sum++;
    out[k++] = sum;
    sum = 0;
    for (unsigned char c = 250; c > 5; c++) sum++;     // ends by wrapping
    out[k++] = sum;
    sum = 0;
    for (int i = -3; i < (int)sizeof(int); i++) sum += i;
    out[k++] = sum;                                    // 0
    sum = 0;
    for (int i = 0; i < 4u; i++) sum += i;
    out[k++] = sum;                                    // 6
    for (int i = -1; i < 4u; i++) sum += 100;          // -1 is large there
    out[k++] = sum;
    for (float x = 0; x < 1; x += 0.25f) sum++;
    out[k++] = sum;                                    // 10
    for (int i = n; i < n; i++) sum = -1;
    for (int i = 0; i != 6; i += 3) sum++;
    out[k++] = sum;                                    // 12
    bool more = true;
    for (int i = 0; more && i < 100; i++) { more = i < 3; sum++; }
    out[k++] = sum;                                    // 16
    int last;
    for (last = 0; last * last < 50; last++) ;
    out[k++] = last;                                   // 8
    sum = 0;
    for (int i = 0; i < 3; i++) { { int i = 10; sum += i; i++; } }
    out[k++] = sum;                                    // 30
    sum = 0;
    for (int i = 2147483645; i > 0 && i <= 2147483646; i++) sum++;
    out[k++] = sum;                                    // 2
    for (unsigned u = 4294967294u; u != 0; ++u) sum++;
    out[k++] = sum;                                    // 4
    for (size_t s = 0; s < 3; s++) sum += s;
    out[k++] = sum;                                    // 7
    for (int a = 0, *p = &sum; a < 2; a++) *p += 10;
    out[k++] = sum;                                    // 27
    int more_of_it = 4, &same = more_of_it;
    sum = 0;
    for (int i = 0; i < more_of_it; i++) { if (i == 1) same = 2; sum++; }
    out[k++] = sum;                                    // 2: changed through a reference
    Stack stack;
    for (int i = 0; i < stack.size; i++) { if (i < 3) stack.push(); sum++; }
    out[k++] = sum;                                    // 2 + 5
    for (int i = 0; i < 2.5f; i++) sum++;
    out[k++] = sum;                                    // 10
    for (unsigned i = n; i >= 0; i--) { if (i > 100) break; sum++; }
    out[k++] = sum;                                    // 16
    unsigned far = n - 1;
    for (unsigned u = far - 6; u != 2; u++) { if (sum > 100) break; sum++; }
    out[k++] = sum;                                    // 20: from -2 to 2
    for (int i = 7; i > 3u; i--) sum++;
    for (short s = 0; s < n; s++) sum += s;
    out[k++] = sum;                                    // 34
    for (int i = 0; i < n; i++) { { int i = 3; sum += i; } }
    out[k++] = sum;
}
"""


def test_for(device):
    skipping, i = 0, 0
    while i < 20:
        if i % 3 == 0:
            i += 1
        else:
            skipping += i
        i += 1
    nested = sum(len(range(i, 5, 2)) for step in (5, 2, 1) for i in range(step))
    expected = [
        10, 54321, 43210, 32, 1509, 2003, skipping, 4, 3, 121, 128, nested, 6, 0, 6, 6, 10, 12, 16,
        8, 30, 2, 4, 7, 27, 2, 7, 10, 16, 20, 34, 49,
    ]  # fmt: skip
    check(device, LOOPS, "loops", expected, [5])


WHILES = """
__device__ int find(const int *in, int n, int wanted)
{
    for (int i = 0; i < n; i++)
        if (in[i] == wanted)
            return i;
    return -1;
}

__device__ int find_pair(const int *in, int n, int sum)
{
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            if (in[i] + in[j] < sum)
                continue;
            if (in[i] + in[j] == sum)
                return i * 10 + j;
            break;
        }
    }
    return -1;
}

__device__ int collatz(int n)
{
    int steps = 0;
    while (true) {
        if (n <= 1)  // not ==: threads that a device runs besides have other numbers
            return steps;
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
    }
}

__global__ void whiles(const int *in, int *out)
{
    int k = 0;
    int n = in[2], sum = 0;                            // 9
    while (n) { sum += n; n--; }
    out[k++] = sum;                                    // 45
    while (n < 10) {
        n++;
        if (n == 3) continue;
        if (n == 7) break;
        sum++;
    }
    out[k++] = sum * 100 + n;                          // 50 07
    do sum--; while (sum > 40);
    out[k++] = sum;                                    // 40
    do {
        sum++;
        if (sum % 2) continue;                         // to the condition
        if (sum == 46) break;
    } while (sum < 45);
    out[k++] = sum;                                    // 45
    do { sum = 1; } while (false);
    do { if (sum) break; sum = 100; } while (0);
    do { if (sum) continue; sum = 100; } while (0);
    out[k++] = sum;                                    // 1
    sum = 0;
    while (int left = 4 - sum) { sum += left > 2 ? 2 : 1; }
    out[k++] = sum;                                    // 4
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++) {
            if (j == i) continue;
            if (j > 3) break;
            int m = j;
            while (m > 0) { if (m == 2) break; m--; sum++; }
        }
        if (i == 3) break;
    }
    out[k++] = sum;
    out[k++] = find(in, 5, 9) * 10 + find(in, 5, 100);
    out[k++] = find_pair(in, 5, 23);
    out[k++] = find_pair(in, 5, 1000);
    out[k++] = collatz(in[1]) + collatz(1);
    #pragma unroll
    for (int i = 0; i < 4; i++) sum += i;
    #pragma unroll 2
    for (int i = 0; i < in[0]; i++) { if (i > 2) break; sum += 10; }
    #pragma unroll 1
    while (sum > 1000) sum--;
    out[k++] = sum;
    int depth = 0;
    while (true) { while (true) { if (++depth % 4 == 0) break; } if (depth > 10) break; }
    out[k++] = depth;                                  // 12
    static const int primes[] = {2, 3, 5, 7, 11};
    int total = 0;
    for (int p : primes) total += p;
    out[k++] = total;                                  // 28
    int copy[3] = {1, 2, 3};
    for (int &c : copy) { if (c == 2) continue; c *= 10; }
    for (auto c : copy) total += c;
    for (const auto &c : copy) { if (c == 2) break; total += c; }
    out[k++] = total;                                  // 28 + 42 + 10
    static_assert(sizeof(primes) == 20, "five of them");
    if (total > 1000000) return;
    while (k < 16) { if (total) { out[k] = k; return; } k++; }
    out[k] = -1;
}
"""


def test_while_do_and_ranges(device):
    total = 4
    for i in range(4):
        for j in range(5):
            if j == i:
                continue
            if j > 3:
                break
            m = j
            while m > 0:
                if m == 2:
                    break
                m -= 1
                total += 1
    after = total + 6 + 30
    expected = [45, 5007, 40, 45, 1, 4, total, 2 * 10 - 1, 24, -1, 16, after, 12, 28, 80, 15]
    check(device, WHILES, "whiles", expected, [3, 7, 9, 12, 14])


SWITCHES = """
enum Color { RED, GREEN = 5, BLUE };
enum class Shape : char { DOT = 'd', LINE = 'l' };

__device__ int plain(int x)
{
    switch (x) {
    case 0: return 10;
    case 1: return 11;
    case -1: return 9;
    default: return x > 0 ? 100 : -100;
    }
}

__device__ int falling(int x)
{
    int r = 0;
    switch (x) {
    case 1: r += 1;
    case 2: r += 10;
    default: r += 100;
    case 3: r += 1000; break;
    case 4: case 5: r += 5;
    }
    return r;
}

__device__ int middle(int x)
{
    int r = 7;
    switch (x) {
    case 1: r = 1; break;
    default: r = 3;
    case 2: r *= 2; break;
    case 8: { int y = r; r = y * y; break; }
    }
    return r;
}

__device__ int nested(int x, int y)
{
    int r = 0;
    switch (x) {
    case 0:
        switch (y) {
        case 0: r = 1; break;
        case 1: r = 2;
        default: r += 3;
        }
        r *= 10;
        break;
    case 1:
        if (y) break;
        r = 50;
    case 2:
        for (int i = 0; i < 5; i++) { if (i == 3) break; r++; }
        if (y > 5) { r = -1; break; }
        r += 1000;
    }
    return r;
}

__device__ int color(Color c)
{
    switch (c) {
    case RED: return 1;
    case GREEN: { return 2; }
    case BLUE: break;
    }
    return 3;
}

__device__ int shape(Shape s)
{
    switch (s) { case Shape::DOT: return 1; case Shape::LINE: return 2; }
    return 0;
}

__global__ void switches(const int *in, int *out)
{
    int k = 0;
    int one = in[0];                                   // 1
    out[k++] = plain(one - 1) + plain(one) * 100 + plain(-one) * 10000;
    out[k++] = plain(one + 5) + plain(-5);
    for (int x = 0; x < 7; x++) out[k++] = falling(x);
    out[k++] = middle(one); out[k++] = middle(one + 1); out[k++] = middle(one + 7);
    out[k++] = middle(9);
    out[k++] = nested(0, 0); out[k++] = nested(0, one); out[k++] = nested(0, 2);
    out[k++] = nested(one, 0); out[k++] = nested(one, 1); out[k++] = nested(2, 0);
    out[k++] = nested(2, 6);
    out[k++] = nested(3, 3);
    out[k++] = color(RED) * 100 + color((Color)(one + 4)) * 10 + color(BLUE);
    out[k++] = shape(Shape::LINE) * 10 + shape((Shape)(one - 1 + 'd'));
    int r = 0;
    for (int i = 0; i < 10; i++) {
        switch (i % 5) {
        case 0: continue;
        case 1: r += 1;
        case 2: r += 10; if (i > 5) continue; break;
        case 3: r += 100;
            for (int j = 0; j < 3; j++) { if (j == 1) continue; r += 1000; }
            break;
        default: if (i == 9) goto_free: break; r += 10000;
        }
        r += 100000;
    }
    out[k++] = r;
    int n = 0;
    while (true) {
        switch (n++) { case 0: case 1: continue; case 4: n = 50; break; default: ; }
        if (n >= 50) break;
    }
    out[k++] = n;
    switch (one) {
    case 1:
        for (int i = 0; i < 4; i++) { if (i % 2) continue; r = i; }
        if (r == 2) break;
        r = 100;
    default: r = -5;
    }
    out[k++] = r;
    switch (one) { }
    switch (one) { default: out[k++] = 5; }
    switch (one + 1) { case 1: out[k++] = 1000; }
    switch (one) out[k++] = 1001;                      // no label leads here
    switch (one) if (k) { out[k++] = 1002; }
    switch (one) for (int i = 0; i < 2; i++) out[k++] = 1003;
    switch (one) { out[k++] = 1004; { out[k++] = 1005; } case 0: out[k++] = 1006; }
    switch (one) { out[k++] = 1007; case 1: out[k++] = 12; case 2: out[k++] = 13; }
    switch (one) case 1: out[k++] = 14;
    switch (unsigned char c = (unsigned char)(one + 255); c) { case 0: out[k++] = 6; break;
    case 1: out[k++] = 60; }
    switch ('a' + one) { case 'b': out[k++] = 7; break; case 'c': break; }
    switch (one > 0) { case true: out[k++] = 8; break; case false: out[k++] = 80; }
    switch (one) {
    case 0: int x; x = 4; out[k++] = x; break;
    case 1: x = 9; out[k++] = x; break;
    }
    switch (one << 31) { case (int)0x80000000: out[k++] = 10; }
    switch (one) { case 1: { if (k) break; out[k++] = -1; } out[k++] = -2; break; }
    const int FIVE = 5;
    switch (one * 5) { case FIVE - 1: case FIVE: out[k++] = 11; return; }
    out[k++] = -3;
}
""".replace("goto_free: ", "")


def test_switch(device):
    loop = 0
    for i in range(10):
        case = i % 5
        if case == 0:
            continue
        if case in (1, 2):
            loop += 11 if case == 1 else 10
            if i > 5:
                continue
        elif case == 3:
            loop += 2100
        elif i != 9:
            loop += 10000
        loop += 100000
    expected = [
        10 + 1100 + 90000, 100 - 100, 1100, 1111, 1110, 1000, 5, 5, 1100, 1, 14, 49, 6,
        10, 50, 30, 1053, 0, 1003, -1, 0, 123, 21, loop, 50, 2, 5, 12, 13, 14, 6, 7, 8, 9, 10, 11,
    ]  # fmt: skip
    check(device, SWITCHES, "switches", expected, [1])


RETURNS = """
__device__ int first_bit(unsigned x)
{
    for (int bit = 0; bit < 32; bit++) {
        switch (x >> bit & 3) {
        case 1: return bit;
        case 3: if (bit > 2) return bit + 100;
        default: break;
        }
        if (bit == 20) return -1;
    }
    return -2;
}

__device__ bool claim(int *cells, int n, int value)
{
    int i = 0;
    while (i < n) {
        do {
            if (cells[i] == value) return false;
            if (cells[i] == 0) { cells[i] = value; return true; }
            i++;
        } while (i % 2);
    }
    return false;
}

__device__ void fill(int *to, int n)
{
    if (n <= 0) return;
    for (int i = 0; ; i++) {
        if (i == n) return;
        if (i == 1) continue;
        to[i] = i + 1;
    }
}

__global__ void returns(const int *in, int *out)
{
    int i = threadIdx.x;
    int cells[5] = {0};
    if (i >= in[0])
        return;
    for (int round = 0; round < 4; round++) {
        if (round == i) {
            out[i] = first_bit(in[1] << round) * 10 + round;
            if (i == 2)
                return;
            break;
        }
    }
    if (i == 3) {
        fill(cells, i);
        bool a = claim(cells, 5, 9), b = claim(cells, 5, 9);
        bool c = claim(cells, 5, 8), d = claim(cells, 5, 7);
        out[3] = cells[0] + 10 * cells[1] + 100 * cells[2] + 1000 * cells[3] + 10000 * cells[4];
        out[4] = a * 8 + b * 4 + c * 2 + d;
        fill(&out[5], -1);
        return;
    }
    out[i] += 1000;
}
"""


def test_returns_from_anywhere(device):
    def first_bit(x):
        for bit in range(32):
            two = x >> bit & 3
            if two == 1 or (two == 3 and bit > 2):
                return bit if two == 1 else bit + 100
            if bit == 20:
                return -1
        return -2

    x = 0b11100
    expected = [first_bit(x) * 10 + 1000, first_bit(x << 1) * 10 + 1001, first_bit(x << 2) * 10 + 2]
    expected += [1 + 90 + 300 + 8000 + 70000, 8 + 2 + 1]
    out = td.zeros(6, dtype=td.int32, device=device)
    values = td.asarray(np.array([4, x], np.int32), device=device)
    td.cuda_module(RETURNS).returns[1, 8](values, out)
    assert out.tolist() == [*expected, 0]


WINDOWS = """
__constant__ float weights[17];
__global__ void windows(const float *values, float *out)
{
    for (int row = 1; row < 9; row++) {
        float sum = 0.0f;
#pragma unroll
        for (int step = -8; step <= 8; step++)
            sum += weights[8 - step] * values[threadIdx.x + row * 16 + step];
        out[threadIdx.x + row * 16] = sum;
    }
}
"""


def test_unrolled_loops_begin_below_zero(device):
    module = td.cuda_module(WINDOWS)
    weights = np.arange(1, 18, dtype=np.float32)
    values = np.arange(160, dtype=np.float32) % 7
    module.constants.on(device)["weights"] = weights
    out = td.zeros(160, dtype=td.float32, device=device)
    module.windows[1, 16](td.asarray(values, device=device), out)
    expected = np.convolve(values, weights, "same")
    assert out.numpy()[16:144].tolist() == expected[16:144].tolist()
