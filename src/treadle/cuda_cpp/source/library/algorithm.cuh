// <algorithm>, for one thread: iterators are pointers, or classes like them.
#pragma once
#include <utility>
#include <iterator>
#include <sorting.cuh>
namespace std {

template <class T> __host__ __device__ constexpr const T &clamp(const T &x, const T &low, const T &high) {
    return x < low ? low : high < x ? high : x;
}
template <class T, class Less>
__host__ __device__ constexpr const T &clamp(const T &x, const T &low, const T &high, Less less) {
    return less(x, low) ? low : less(high, x) ? high : x;
}
// Of two values min and max are built in. These take values, so that no variable needs an address.
template <class T, class Less> __host__ __device__ constexpr T min(T a, T b, Less less) { return less(b, a) ? b : a; }
template <class T, class Less> __host__ __device__ constexpr T max(T a, T b, Less less) { return less(a, b) ? b : a; }
template <class T> __host__ __device__ constexpr T min(initializer_list<T> values) { return *min_element(values.begin(), values.end()); }
template <class T> __host__ __device__ constexpr T max(initializer_list<T> values) { return *max_element(values.begin(), values.end()); }
template <class T, class Less> __host__ __device__ constexpr T min(initializer_list<T> values, Less less) {
    return *min_element(values.begin(), values.end(), less);
}
template <class T, class Less> __host__ __device__ constexpr T max(initializer_list<T> values, Less less) {
    return *max_element(values.begin(), values.end(), less);
}
template <class T> __host__ __device__ constexpr pair<T, T> minmax(const T &a, const T &b) {
    return b < a ? pair<T, T>(b, a) : pair<T, T>(a, b);
}
template <class T, class Less> __host__ __device__ constexpr pair<T, T> minmax(const T &a, const T &b, Less less) {
    return less(b, a) ? pair<T, T>(b, a) : pair<T, T>(a, b);
}
template <class T> __host__ __device__ constexpr pair<T, T> minmax(initializer_list<T> values) {
    return pair<T, T>(min(values), max(values));
}

// --- changing a range ----------------------------------------------------------------------------

template <class I, class F> __host__ __device__ F for_each(I first, I last, F f) {
    for (; first != last; ++first)
        f(*first);
    return f;
}
template <class I, class N, class F> __host__ __device__ I for_each_n(I first, N count, F f) {
    for (; count > 0; --count, ++first)
        f(*first);
    return first;
}
template <class I, class F> __host__ __device__ void generate(I first, I last, F f) {
    for (; first != last; ++first)
        *first = f();
}
template <class I, class N, class F> __host__ __device__ I generate_n(I first, N count, F f) {
    for (; count > 0; --count, ++first)
        *first = f();
    return first;
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
template <class I, class O> __host__ __device__ O copy_backward(I first, I last, O end) {
    while (first != last)
        *--end = *--last;
    return end;
}
template <class I, class O> __host__ __device__ O move(I first, I last, O to) {
    for (; first != last; ++first, ++to)
        *to = move(*first);
    return to;
}
template <class I, class O> __host__ __device__ O move_backward(I first, I last, O end) {
    while (first != last)
        *--end = move(*--last);
    return end;
}
template <class I, class J> __host__ __device__ void iter_swap(I a, J b) { std::swap(*a, *b); }
template <class I, class J> __host__ __device__ J swap_ranges(I first, I last, J other) {
    for (; first != last; ++first, ++other)
        std::swap(*first, *other);
    return other;
}
template <class I, class T> __host__ __device__ void replace(I first, I last, const T &old, const T &value) {
    for (; first != last; ++first)
        if (*first == old)
            *first = value;
}
template <class I, class P, class T> __host__ __device__ void replace_if(I first, I last, P holds, const T &value) {
    for (; first != last; ++first)
        if (holds(*first))
            *first = value;
}
template <class I, class O, class T>
__host__ __device__ O replace_copy(I first, I last, O to, const T &old, const T &value) {
    for (; first != last; ++first, ++to)
        if (*first == old)
            *to = value;
        else
            *to = *first;
    return to;
}
template <class I, class O, class P, class T>
__host__ __device__ O replace_copy_if(I first, I last, O to, P holds, const T &value) {
    for (; first != last; ++first, ++to)
        if (holds(*first))
            *to = value;
        else
            *to = *first;
    return to;
}
template <class I, class O> __host__ __device__ O reverse_copy(I first, I last, O to) {
    for (; first != last; ++to)
        *to = *--last;
    return to;
}
template <class I> __host__ __device__ void reverse(I first, I last) {
    for (int left = 0, right = (int)(last - first) - 1; left < right; ++left, --right) {
        std::swap(first[left], first[right]);
    }
}
// By three reversals, which need no other memory.
template <class I> __host__ __device__ I rotate(I first, I middle, I last) {
    reverse(first, middle);
    reverse(middle, last);
    reverse(first, last);
    return first + (last - middle);
}
template <class I, class O> __host__ __device__ O rotate_copy(I first, I middle, I last, O to) {
    return copy(first, middle, copy(middle, last, to));
}
template <class I, class Same> __host__ __device__ I unique(I first, I last, Same same) {
    int size = (int)(last - first), kept = size > 0;
    for (int i = 1; i < size; ++i)
        if (!same(first[kept - 1], first[i])) {
            first[kept] = first[i];
            ++kept;
        }
    return first + kept;
}
template <class I> __host__ __device__ I unique(I first, I last) { return unique(first, last, __treadle_equal()); }
template <class I, class O> __host__ __device__ O unique_copy(I first, I last, O to) {
    int size = (int)(last - first);
    for (int i = 0; i < size; ++i)
        if (i == 0 || !(first[i - 1] == first[i])) {
            *to = first[i];
            ++to;
        }
    return to;
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
template <class I, class T> __host__ __device__ I remove(I first, I last, const T &value) {
    int size = (int)(last - first), kept = 0;
    for (int i = 0; i < size; ++i)
        if (!(first[i] == value)) {
            first[kept] = first[i];
            ++kept;
        }
    return first + kept;
}
template <class I, class O, class T> __host__ __device__ O remove_copy(I first, I last, O to, const T &value) {
    for (; first != last; ++first)
        if (!(*first == value)) {
            *to = *first;
            ++to;
        }
    return to;
}
template <class I, class O, class P> __host__ __device__ O remove_copy_if(I first, I last, O to, P holds) {
    for (; first != last; ++first)
        if (!holds(*first)) {
            *to = *first;
            ++to;
        }
    return to;
}
template <class I, class P> __host__ __device__ I partition(I first, I last, P holds) {
    for (; first != last; ++first)
        if (!holds(*first)) {
            do {
                if (--last == first)
                    return first;
            } while (!holds(*last));
            std::swap(*first, *last);
        }
    return first;
}
// Those that hold move forward past the others, which keep their order.
template <class I, class P> __host__ __device__ I stable_partition(I first, I last, P holds) {
    int size = (int)(last - first), kept = 0;
    for (int i = 0; i < size; ++i)
        if (holds(first[i])) {
            auto value = first[i];
            for (int to = i; to > kept; --to)
                first[to] = first[to - 1];
            first[kept] = value;
            ++kept;
        }
    return first + kept;
}
template <class I, class O, class P, class Q>
__host__ __device__ pair<O, Q> partition_copy(I first, I last, O to, Q others, P holds) {
    for (; first != last; ++first)
        if (holds(*first)) {
            *to = *first;
            ++to;
        } else {
            *others = *first;
            ++others;
        }
    return pair<O, Q>(to, others);
}

// --- questions about a range ---------------------------------------------------------------------

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
template <class I, class P> __host__ __device__ I find_if_not(I first, I last, P holds) {
    while (first != last && holds(*first))
        ++first;
    return first;
}
template <class I, class J> __host__ __device__ I find_first_of(I first, I last, J from, J to) {
    for (; first != last; ++first)
        if (find(from, to, *first) != to)
            return first;
    return last;
}
template <class I, class Same> __host__ __device__ I adjacent_find(I first, I last, Same same) {
    int size = (int)(last - first);
    for (int i = 1; i < size; ++i)
        if (same(first[i - 1], first[i]))
            return first + (i - 1);
    return last;
}
template <class I> __host__ __device__ I adjacent_find(I first, I last) { return adjacent_find(first, last, __treadle_equal()); }
template <class I, class J> __host__ __device__ I search(I first, I last, J from, J to) {
    int size = (int)(last - first), wanted = (int)(to - from);
    for (int i = 0; i + wanted <= size; ++i)
        if (equal(from, to, first + i))
            return first + i;
    return last;
}
template <class I, class J> __host__ __device__ I find_end(I first, I last, J from, J to) {
    int size = (int)(last - first), wanted = (int)(to - from);
    for (int i = size - wanted; wanted > 0 && i >= 0; --i)
        if (equal(from, to, first + i))
            return first + i;
    return last;
}
template <class I, class N, class T> __host__ __device__ I search_n(I first, I last, N count, const T &value) {
    int size = (int)(last - first), run = 0;
    for (int i = 0; i < size; ++i) {
        if (run >= (int)count)
            break;
        run = first[i] == value ? run + 1 : 0;
        if (run >= (int)count)
            return first + (i + 1 - run);
    }
    return count <= 0 ? first : last;
}
template <class I, class J, class Same> __host__ __device__ bool __treadle_equal_ranges(I first, I last, J other, Same same) {
    for (; first != last; ++first, ++other)
        if (!same(*first, *other))
            return false;
    return true;
}
template <class I, class J> __host__ __device__ bool equal(I first, I last, J other) {
    return __treadle_equal_ranges(first, last, other, __treadle_equal());
}
// The fourth argument is a predicate, or the end of the second range.
template <class I, class J, class K> __host__ __device__ bool equal(I first, I last, J other, K more) {
    if constexpr (is_same_v<J, K>)
        return last - first == more - other && __treadle_equal_ranges(first, last, other, __treadle_equal());
    else
        return __treadle_equal_ranges(first, last, other, more);
}
template <class I, class J, class Same> __host__ __device__ bool equal(I first, I last, J other, J end, Same same) {
    return last - first == end - other && __treadle_equal_ranges(first, last, other, same);
}
template <class I, class J> __host__ __device__ pair<I, J> mismatch(I first, I last, J other) {
    for (; first != last && *first == *other; ++first)
        ++other;
    return pair<I, J>(first, other);
}
template <class I, class J, class Less>
__host__ __device__ bool lexicographical_compare(I first, I last, J other, J end, Less less) {
    for (; first != last && other != end; ++first, ++other) {
        if (less(*first, *other))
            return true;
        if (less(*other, *first))
            return false;
    }
    return first == last && other != end;
}
template <class I, class J> __host__ __device__ bool lexicographical_compare(I first, I last, J other, J end) {
    return lexicographical_compare(first, last, other, end, __treadle_less());
}
template <class I, class J> __host__ __device__ bool is_permutation(I first, I last, J other) {
    int size = (int)(last - first);
    for (int i = 0; i < size; ++i)
        if (count(first, last, first[i]) != count(other, other + size, first[i]))
            return false;
    return true;
}
template <class I, class P> __host__ __device__ bool is_partitioned(I first, I last, P holds) {
    return none_of(find_if_not(first, last, holds), last, holds);
}
template <class I, class Less> __host__ __device__ pair<I, I> minmax_element(I first, I last, Less less) {
    I least = first, most = first;
    for (; first != last; ++first) {
        if (less(*first, *least))
            least = first;
        if (!less(*first, *most))
            most = first;
    }
    return pair<I, I>(least, most);
}
template <class I> __host__ __device__ pair<I, I> minmax_element(I first, I last) {
    return minmax_element(first, last, __treadle_less());
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

}  // namespace std
