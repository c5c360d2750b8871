// Sorting, and what sorted ranges and heaps allow: a part of <algorithm>.
#pragma once
#include <utility>
namespace std {

struct __treadle_less {
    template <class A, class B> __host__ __device__ constexpr bool operator()(const A &x, const B &y) const {
        return x < y;
    }
};
struct __treadle_equal {
    template <class A, class B> __host__ __device__ constexpr bool operator()(const A &x, const B &y) const {
        return x == y;
    }
};

// --- sorted ranges -------------------------------------------------------------------------------

template <class I, class P> __host__ __device__ I partition_point(I first, I last, P holds) {
    int low = 0, high = (int)(last - first);
    while (low < high) {
        int middle = (low + high) / 2;
        if (holds(first[middle]))
            low = middle + 1;
        else
            high = middle;
    }
    return first + low;
}
template <class I, class T, class Less> __host__ __device__ I lower_bound(I first, I last, const T &value, Less less) {
    int low = 0, high = (int)(last - first);
    while (low < high) {
        int middle = (low + high) / 2;
        if (less(first[middle], value))
            low = middle + 1;
        else
            high = middle;
    }
    return first + low;
}
template <class I, class T> __host__ __device__ I lower_bound(I first, I last, const T &value) {
    return lower_bound(first, last, value, __treadle_less());
}
template <class I, class T, class Less> __host__ __device__ I upper_bound(I first, I last, const T &value, Less less) {
    int low = 0, high = (int)(last - first);
    while (low < high) {
        int middle = (low + high) / 2;
        if (less(value, first[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return first + low;
}
template <class I, class T> __host__ __device__ I upper_bound(I first, I last, const T &value) {
    return upper_bound(first, last, value, __treadle_less());
}
template <class I, class T, class Less> __host__ __device__ bool binary_search(I first, I last, const T &value, Less less) {
    I found = lower_bound(first, last, value, less);
    return found != last && !less(value, *found);
}
template <class I, class T> __host__ __device__ bool binary_search(I first, I last, const T &value) {
    return binary_search(first, last, value, __treadle_less());
}
template <class I, class T, class Less>
__host__ __device__ pair<I, I> equal_range(I first, I last, const T &value, Less less) {
    return pair<I, I>(lower_bound(first, last, value, less), upper_bound(first, last, value, less));
}
template <class I, class T> __host__ __device__ pair<I, I> equal_range(I first, I last, const T &value) {
    return equal_range(first, last, value, __treadle_less());
}
template <class I, class Less> __host__ __device__ I is_sorted_until(I first, I last, Less less) {
    int size = (int)(last - first);
    for (int i = 1; i < size; ++i)
        if (less(first[i], first[i - 1]))
            return first + i;
    return last;
}
template <class I> __host__ __device__ I is_sorted_until(I first, I last) { return is_sorted_until(first, last, __treadle_less()); }
template <class I, class Less> __host__ __device__ bool is_sorted(I first, I last, Less less) {
    return is_sorted_until(first, last, less) == last;
}
template <class I> __host__ __device__ bool is_sorted(I first, I last) { return is_sorted(first, last, __treadle_less()); }

// Walks through two sorted ranges at once. What is taken: of elements that are only in the first,
// only in the second, in both.
template <bool first_only, bool second_only, bool both, class I, class J, class O, class Less>
__host__ __device__ O __treadle_combined(I a, I end_a, J b, J end_b, O to, Less less) {
    while (a != end_a || b != end_b) {
        bool in_first = b == end_b || (a != end_a && less(*a, *b));
        bool in_second = !in_first && (a == end_a || less(*b, *a));
        if (in_second) {
            if (second_only)
                *to++ = *b;
        } else if (in_first ? first_only : both) {
            *to++ = *a;
        }
        if (!in_second)
            ++a;
        if (!in_first)
            ++b;
    }
    return to;
}
#define __treadle_sets(name, first_only, second_only, both) \
    template <class I, class J, class O, class Less> \
    __host__ __device__ O name(I a, I end_a, J b, J end_b, O to, Less less) { \
        return __treadle_combined<first_only, second_only, both>(a, end_a, b, end_b, to, less); \
    } \
    template <class I, class J, class O> __host__ __device__ O name(I a, I end_a, J b, J end_b, O to) { \
        return __treadle_combined<first_only, second_only, both>(a, end_a, b, end_b, to, __treadle_less()); \
    }
__treadle_sets(set_union, true, true, true)
__treadle_sets(set_intersection, false, false, true)
__treadle_sets(set_difference, true, false, false)
__treadle_sets(set_symmetric_difference, true, true, false)
#undef __treadle_sets
template <class I, class J> __host__ __device__ bool includes(I a, I end_a, J b, J end_b) {
    for (; b != end_b; ++a) {
        if (a == end_a || *b < *a)
            return false;
        if (!(*a < *b))
            ++b;
    }
    return true;
}
template <class I, class J, class O, class Less> __host__ __device__ O merge(I a, I end_a, J b, J end_b, O to, Less less) {
    while (a != end_a || b != end_b) {
        if (a == end_a || (b != end_b && less(*b, *a)))
            *to++ = *b++;
        else
            *to++ = *a++;
    }
    return to;
}
template <class I, class J, class O> __host__ __device__ O merge(I a, I end_a, J b, J end_b, O to) {
    return merge(a, end_a, b, end_b, to, __treadle_less());
}

// --- sorting -------------------------------------------------------------------------------------

// By insertion, which is stable: one thread has few elements. The first `from` are sorted already.
template <class I, class Less> __host__ __device__ void __treadle_insert(I first, int from, int size, Less less) {
    for (int i = from; i < size; ++i) {
        auto value = first[i];
        int to = i;
        for (; to > 0 && less(value, first[to - 1]); --to)
            first[to] = first[to - 1];
        first[to] = value;
    }
}
template <class I, class Less> __host__ __device__ void stable_sort(I first, I last, Less less) {
    __treadle_insert(first, 1, (int)(last - first), less);
}
template <class I> __host__ __device__ void stable_sort(I first, I last) { stable_sort(first, last, __treadle_less()); }
template <class I, class Less> __host__ __device__ void inplace_merge(I first, I middle, I last, Less less) {
    __treadle_insert(first, (int)(middle - first), (int)(last - first), less);
}
template <class I> __host__ __device__ void inplace_merge(I first, I middle, I last) {
    inplace_merge(first, middle, last, __treadle_less());
}

// Heaps: each element is not less than those at twice its place plus one and two.
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
template <class I, class Less> __host__ __device__ void make_heap(I first, I last, Less less) {
    int size = (int)(last - first);
    for (int at = size / 2 - 1; at >= 0; --at)
        __treadle_sift(first, at, size, less);
}
template <class I> __host__ __device__ void make_heap(I first, I last) { make_heap(first, last, __treadle_less()); }
template <class I, class Less> __host__ __device__ void push_heap(I first, I last, Less less) {
    int at = (int)(last - first) - 1;
    auto value = first[at];
    for (; at > 0 && less(first[(at - 1) / 2], value); at = (at - 1) / 2)
        first[at] = first[(at - 1) / 2];
    first[at] = value;
}
template <class I> __host__ __device__ void push_heap(I first, I last) { push_heap(first, last, __treadle_less()); }
template <class I, class Less> __host__ __device__ void pop_heap(I first, I last, Less less) {
    int end = (int)(last - first) - 1;
    if (end <= 0)
        return;
    auto value = first[0];
    first[0] = first[end];
    first[end] = value;
    __treadle_sift(first, 0, end, less);
}
template <class I> __host__ __device__ void pop_heap(I first, I last) { pop_heap(first, last, __treadle_less()); }
template <class I, class Less> __host__ __device__ void sort_heap(I first, I last, Less less) {
    for (int size = (int)(last - first); size > 1; --size)
        pop_heap(first, first + size, less);
}
template <class I> __host__ __device__ void sort_heap(I first, I last) { sort_heap(first, last, __treadle_less()); }
template <class I, class Less> __host__ __device__ bool is_heap(I first, I last, Less less) {
    int size = (int)(last - first);
    for (int i = 1; i < size; ++i)
        if (less(first[(i - 1) / 2], first[i]))
            return false;
    return true;
}
template <class I> __host__ __device__ bool is_heap(I first, I last) { return is_heap(first, last, __treadle_less()); }

// By heaps, so that long ranges take n log n.
template <class I, class Less> __host__ __device__ void sort(I first, I last, Less less) {
    make_heap(first, last, less);
    sort_heap(first, last, less);
}
template <class I> __host__ __device__ void sort(I first, I last) { sort(first, last, __treadle_less()); }
// A heap of the smallest so far, whose largest gives way to a smaller one.
template <class I, class Less> __host__ __device__ void partial_sort(I first, I middle, I last, Less less) {
    int kept = (int)(middle - first), size = (int)(last - first);
    make_heap(first, middle, less);
    for (int i = kept; kept > 0 && i < size; ++i)
        if (less(first[i], first[0])) {
            auto value = first[i];
            first[i] = first[0];
            first[0] = value;
            __treadle_sift(first, 0, kept, less);
        }
    sort_heap(first, middle, less);
}
template <class I> __host__ __device__ void partial_sort(I first, I middle, I last) {
    partial_sort(first, middle, last, __treadle_less());
}
template <class I, class Less> __host__ __device__ void nth_element(I first, I nth, I last, Less less) {
    if (nth != last)
        partial_sort(first, nth + 1, last, less);
}
template <class I> __host__ __device__ void nth_element(I first, I nth, I last) {
    nth_element(first, nth, last, __treadle_less());
}

// --- permutations --------------------------------------------------------------------------------

template <class I, class Less> __host__ __device__ bool __treadle_permute(I first, I last, Less less) {
    int size = (int)(last - first), at = size - 2;
    while (at >= 0 && !less(first[at], first[at + 1]))
        --at;
    if (at >= 0) {
        int other = size - 1;
        while (!less(first[at], first[other]))
            --other;
        std::swap(first[at], first[other]);
    }
    for (int left = at + 1, right = size - 1; left < right; ++left, --right)
        std::swap(first[left], first[right]);
    return at >= 0;
}
template <class I, class Less> __host__ __device__ bool next_permutation(I first, I last, Less less) {
    return __treadle_permute(first, last, less);
}
template <class I> __host__ __device__ bool next_permutation(I first, I last) {
    return __treadle_permute(first, last, __treadle_less());
}
template <class I> __host__ __device__ bool prev_permutation(I first, I last) {
    return __treadle_permute(first, last, [](const auto &x, const auto &y) { return y < x; });
}

}  // namespace std
