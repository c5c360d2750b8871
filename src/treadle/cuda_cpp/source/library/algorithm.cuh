// <algorithm> and <numeric>, for one thread: iterators are pointers, or classes like them.
#pragma once
#include <utility>
namespace std {

template <class T> __host__ __device__ constexpr const T &clamp(const T &x, const T &low, const T &high) {
    return x < low ? low : high < x ? high : x;
}
template <class I, class F> __host__ __device__ void for_each(I first, I last, F f) {
    for (; first != last; ++first)
        f(*first);
}
template <class I, class T> __host__ __device__ void fill(I first, I last, const T &value) {
    for (; first != last; ++first)
        *first = value;
}
template <class I, class N, class T> __host__ __device__ I fill_n(I first, N count, const T &value) {
    for (; count > 0; --count, ++first)
        *first = value;
    return first;
}
template <class I, class T> __host__ __device__ void iota(I first, I last, T value) {
    for (; first != last; ++first, ++value)
        *first = value;
}
template <class I, class O> __host__ __device__ O copy(I first, I last, O to) {
    for (; first != last; ++first, ++to)
        *to = *first;
    return to;
}
template <class I, class N, class O> __host__ __device__ O copy_n(I first, N count, O to) {
    for (; count > 0; --count, ++first, ++to)
        *to = *first;
    return to;
}
template <class I, class O, class P> __host__ __device__ O copy_if(I first, I last, O to, P holds) {
    for (; first != last; ++first)
        if (holds(*first)) {
            *to = *first;
            ++to;
        }
    return to;
}
template <class I, class O, class F> __host__ __device__ O transform(I first, I last, O to, F f) {
    for (; first != last; ++first, ++to)
        *to = f(*first);
    return to;
}
template <class I, class J, class O, class F>
__host__ __device__ O transform(I first, I last, J other, O to, F f) {
    for (; first != last; ++first, ++other, ++to)
        *to = f(*first, *other);
    return to;
}
template <class I> __host__ __device__ void reverse(I first, I last) {
    for (int left = 0, right = (int)(last - first) - 1; left < right; ++left, --right) {
        std::swap(first[left], first[right]);
    }
}

template <class I, class T> __host__ __device__ I find(I first, I last, const T &value) {
    while (first != last && !(*first == value))
        ++first;
    return first;
}
template <class I, class P> __host__ __device__ I find_if(I first, I last, P holds) {
    while (first != last && !holds(*first))
        ++first;
    return first;
}
template <class I, class T> __host__ __device__ ptrdiff_t count(I first, I last, const T &value) {
    ptrdiff_t found = 0;
    for (; first != last; ++first)
        if (*first == value)
            ++found;
    return found;
}
template <class I, class P> __host__ __device__ ptrdiff_t count_if(I first, I last, P holds) {
    ptrdiff_t found = 0;
    for (; first != last; ++first)
        if (holds(*first))
            ++found;
    return found;
}
template <class I, class P> __host__ __device__ bool any_of(I first, I last, P holds) {
    for (; first != last; ++first)
        if (holds(*first))
            return true;
    return false;
}
template <class I, class P> __host__ __device__ bool all_of(I first, I last, P holds) {
    for (; first != last; ++first)
        if (!holds(*first))
            return false;
    return true;
}
template <class I, class P> __host__ __device__ bool none_of(I first, I last, P holds) {
    return !any_of(first, last, holds);
}
template <class I, class J> __host__ __device__ bool equal(I first, I last, J other) {
    for (; first != last; ++first, ++other)
        if (!(*first == *other))
            return false;
    return true;
}
template <class I, class Less> __host__ __device__ I max_element(I first, I last, Less less) {
    I best = first;
    for (; first != last; ++first)
        if (less(*best, *first))
            best = first;
    return best;
}
template <class I> __host__ __device__ I max_element(I first, I last) {
    I best = first;
    for (; first != last; ++first)
        if (*best < *first)
            best = first;
    return best;
}
template <class I, class Less> __host__ __device__ I min_element(I first, I last, Less less) {
    I best = first;
    for (; first != last; ++first)
        if (less(*first, *best))
            best = first;
    return best;
}
template <class I> __host__ __device__ I min_element(I first, I last) {
    I best = first;
    for (; first != last; ++first)
        if (*first < *best)
            best = first;
    return best;
}

template <class I, class T> __host__ __device__ I lower_bound(I first, I last, const T &value) {
    int low = 0, high = (int)(last - first);
    while (low < high) {
        int middle = (low + high) / 2;
        if (first[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return first + low;
}
template <class I, class T> __host__ __device__ I upper_bound(I first, I last, const T &value) {
    int low = 0, high = (int)(last - first);
    while (low < high) {
        int middle = (low + high) / 2;
        if (value < first[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return first + low;
}
template <class I, class T> __host__ __device__ bool binary_search(I first, I last, const T &value) {
    I found = lower_bound(first, last, value);
    return found != last && !(value < *found);
}

// By insertion, which is stable: one thread has few elements.
template <class I, class Less> __host__ __device__ void stable_sort(I first, I last, Less less) {
    int size = (int)(last - first);
    for (int i = 1; i < size; ++i) {
        auto value = first[i];
        int to = i;
        for (; to > 0 && less(value, first[to - 1]); --to)
            first[to] = first[to - 1];
        first[to] = value;
    }
}
template <class I> __host__ __device__ void stable_sort(I first, I last) {
    int size = (int)(last - first);
    for (int i = 1; i < size; ++i) {
        auto value = first[i];
        int to = i;
        for (; to > 0 && value < first[to - 1]; --to)
            first[to] = first[to - 1];
        first[to] = value;
    }
}
// By heaps, so that long ranges take n log n.
template <class I, class Less> __host__ __device__ void __treadle_sift(I first, int at, int size, Less less) {
    auto value = first[at];
    for (int child = 2 * at + 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && less(first[child], first[child + 1]))
            ++child;
        if (!less(value, first[child]))
            break;
        first[at] = first[child];
        at = child;
    }
    first[at] = value;
}
template <class I, class Less> __host__ __device__ void sort(I first, I last, Less less) {
    int size = (int)(last - first);
    for (int at = size / 2 - 1; at >= 0; --at)
        __treadle_sift(first, at, size, less);
    for (int end = size - 1; end > 0; --end) {
        auto value = first[0];
        first[0] = first[end];
        first[end] = value;
        __treadle_sift(first, 0, end, less);
    }
}
struct __treadle_less {
    template <class A, class B> __host__ __device__ bool operator()(const A &x, const B &y) const {
        return x < y;
    }
};
template <class I> __host__ __device__ void sort(I first, I last) { sort(first, last, __treadle_less()); }
template <class I> __host__ __device__ bool is_sorted(I first, I last) {
    int size = (int)(last - first);
    for (int i = 1; i < size; ++i)
        if (first[i] < first[i - 1])
            return false;
    return true;
}
template <class I> __host__ __device__ I unique(I first, I last) {
    int size = (int)(last - first), kept = size > 0;
    for (int i = 1; i < size; ++i)
        if (!(first[i] == first[kept - 1])) {
            first[kept] = first[i];
            ++kept;
        }
    return first + kept;
}
template <class I, class P> __host__ __device__ I remove_if(I first, I last, P holds) {
    int size = (int)(last - first), kept = 0;
    for (int i = 0; i < size; ++i)
        if (!holds(first[i])) {
            first[kept] = first[i];
            ++kept;
        }
    return first + kept;
}

template <class I, class T> __host__ __device__ T accumulate(I first, I last, T sum) {
    for (; first != last; ++first)
        sum = sum + *first;
    return sum;
}
template <class I, class T, class F> __host__ __device__ T accumulate(I first, I last, T sum, F f) {
    for (; first != last; ++first)
        sum = f(sum, *first);
    return sum;
}
template <class I, class J, class T>
__host__ __device__ T inner_product(I first, I last, J other, T sum) {
    for (; first != last; ++first, ++other)
        sum = sum + *first * *other;
    return sum;
}
template <class I, class O> __host__ __device__ O partial_sum(I first, I last, O to) {
    if (first == last)
        return to;
    auto sum = *first;
    *to = sum;
    for (++first, ++to; first != last; ++first, ++to) {
        sum = sum + *first;
        *to = sum;
    }
    return to;
}
template <class T> __host__ __device__ constexpr T gcd(T a, T b) {
    while (b != 0) {
        T rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}
template <class T> __host__ __device__ constexpr T lcm(T a, T b) {
    T product = a == 0 ? (T)0 : a / gcd(a, b) * b;
    return product < 0 ? -product : product;
}

}  // namespace std
