// Thrust in device code: algorithms of one thread (thrust::seq), which are those of <algorithm>.
#pragma once
#include <algorithm>
#include <numeric>
namespace thrust {

enum __treadle_policy { seq, device, host };
using std::adjacent_difference;
using std::all_of;
using std::any_of;
using std::binary_search;
using std::copy;
using std::copy_if;
using std::copy_n;
using std::count;
using std::count_if;
using std::equal;
using std::equal_range;
using std::fill;
using std::fill_n;
using std::find;
using std::find_if;
using std::find_if_not;
using std::for_each;
using std::for_each_n;
using std::generate;
using std::inner_product;
using std::is_partitioned;
using std::is_sorted;
using std::is_sorted_until;
using std::lower_bound;
using std::max_element;
using std::merge;
using std::min_element;
using std::minmax_element;
using std::mismatch;
using std::none_of;
using std::partition;
using std::remove;
using std::remove_copy;
using std::remove_copy_if;
using std::remove_if;
using std::replace;
using std::replace_if;
using std::reverse;
using std::reverse_copy;
using std::set_difference;
using std::set_intersection;
using std::set_symmetric_difference;
using std::set_union;
using std::sort;
using std::stable_partition;
using std::stable_sort;
using std::swap_ranges;
using std::transform;
using std::unique;
using std::unique_copy;
using std::upper_bound;
template <class T> struct device_ptr {
    T *at;
    __host__ __device__ T *get() const { return at; }
    __host__ __device__ T &operator*() const { return *at; }
    template <class I> __host__ __device__ T &operator[](I i) const { return at[i]; }
    template <class I> __host__ __device__ device_ptr operator+(I i) const { return device_ptr{at + i}; }
};
template <class T> __host__ __device__ T *raw_pointer_cast(device_ptr<T> p) { return p.at; }
template <class T> __host__ __device__ T *raw_pointer_cast(T *p) { return p; }
template <class T> __host__ __device__ void swap(T &x, T &y) { std::swap(x, y); }
template <class I> __host__ __device__ void sequence(I first, I last) { std::iota(first, last, 0); }
template <class I, class T> __host__ __device__ void sequence(I first, I last, T value) { std::iota(first, last, value); }
template <class I, class T> __host__ __device__ T reduce(I first, I last, T value) { return std::accumulate(first, last, value); }
template <class I, class T, class F> __host__ __device__ T reduce(I first, I last, T value, F f) {
    return std::accumulate(first, last, value, f);
}
template <class I, class F, class T, class G>
__host__ __device__ T transform_reduce(I first, I last, F f, T value, G g) {
    for (; first != last; ++first)
        value = g(value, f(*first));
    return value;
}
template <class I, class O> __host__ __device__ O inclusive_scan(I first, I last, O to) { return std::partial_sum(first, last, to); }
template <class I, class O, class T> __host__ __device__ O exclusive_scan(I first, I last, O to, T sum) {
    for (; first != last; ++first, ++to) {
        auto own = *first;
        *to = sum;
        sum = sum + own;
    }
    return to;
}
template <class I, class O> __host__ __device__ O exclusive_scan(I first, I last, O to) {
    for (int sum = 0; first != last; ++first, ++to) {
        auto own = *first;
        *to = sum;
        sum = sum + own;
    }
    return to;
}
// Stable, by insertion.
template <class K, class V> __host__ __device__ void sort_by_key(K first, K last, V values) {
    int size = (int)(last - first);
    for (int i = 1; i < size; ++i) {
        auto key = first[i];
        auto value = values[i];
        int to = i;
        for (; to > 0 && key < first[to - 1]; --to) {
            first[to] = first[to - 1];
            values[to] = values[to - 1];
        }
        first[to] = key;
        values[to] = value;
    }
}

// With a policy before the other arguments.
template <class A, class B>
__host__ __device__ void sort(__treadle_policy, A a, B b) {
    return sort(a, b);
}
template <class A, class B, class C>
__host__ __device__ void sort(__treadle_policy, A a, B b, C c) {
    return sort(a, b, c);
}
template <class A, class B>
__host__ __device__ void stable_sort(__treadle_policy, A a, B b) {
    return stable_sort(a, b);
}
template <class A, class B, class C>
__host__ __device__ void stable_sort(__treadle_policy, A a, B b, C c) {
    return stable_sort(a, b, c);
}
template <class A, class B>
__host__ __device__ void reverse(__treadle_policy, A a, B b) {
    return reverse(a, b);
}
template <class A, class B, class C>
__host__ __device__ void fill(__treadle_policy, A a, B b, C c) {
    return fill(a, b, c);
}
template <class A, class B>
__host__ __device__ void sequence(__treadle_policy, A a, B b) {
    return sequence(a, b);
}
template <class A, class B, class C>
__host__ __device__ void sequence(__treadle_policy, A a, B b, C c) {
    return sequence(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ void for_each(__treadle_policy, A a, B b, C c) {
    return for_each(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ void sort_by_key(__treadle_policy, A a, B b, C c) {
    return sort_by_key(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ auto copy(__treadle_policy, A a, B b, C c) {
    return copy(a, b, c);
}
template <class A, class B, class C, class D>
__host__ __device__ auto copy_if(__treadle_policy, A a, B b, C c, D d) {
    return copy_if(a, b, c, d);
}
template <class A, class B, class C, class D>
__host__ __device__ auto transform(__treadle_policy, A a, B b, C c, D d) {
    return transform(a, b, c, d);
}
template <class A, class B, class C, class D, class E>
__host__ __device__ auto transform(__treadle_policy, A a, B b, C c, D d, E e) {
    return transform(a, b, c, d, e);
}
template <class A, class B, class C>
__host__ __device__ auto reduce(__treadle_policy, A a, B b, C c) {
    return reduce(a, b, c);
}
template <class A, class B, class C, class D>
__host__ __device__ auto reduce(__treadle_policy, A a, B b, C c, D d) {
    return reduce(a, b, c, d);
}
template <class A, class B, class C, class D, class E>
__host__ __device__ auto transform_reduce(__treadle_policy, A a, B b, C c, D d, E e) {
    return transform_reduce(a, b, c, d, e);
}
template <class A, class B, class C>
__host__ __device__ auto inclusive_scan(__treadle_policy, A a, B b, C c) {
    return inclusive_scan(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ auto exclusive_scan(__treadle_policy, A a, B b, C c) {
    return exclusive_scan(a, b, c);
}
template <class A, class B, class C, class D>
__host__ __device__ auto exclusive_scan(__treadle_policy, A a, B b, C c, D d) {
    return exclusive_scan(a, b, c, d);
}
template <class A, class B, class C>
__host__ __device__ auto find(__treadle_policy, A a, B b, C c) {
    return find(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ auto find_if(__treadle_policy, A a, B b, C c) {
    return find_if(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ auto count(__treadle_policy, A a, B b, C c) {
    return count(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ auto count_if(__treadle_policy, A a, B b, C c) {
    return count_if(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ auto lower_bound(__treadle_policy, A a, B b, C c) {
    return lower_bound(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ auto upper_bound(__treadle_policy, A a, B b, C c) {
    return upper_bound(a, b, c);
}
template <class A, class B, class C>
__host__ __device__ auto binary_search(__treadle_policy, A a, B b, C c) {
    return binary_search(a, b, c);
}
template <class A, class B>
__host__ __device__ auto max_element(__treadle_policy, A a, B b) {
    return max_element(a, b);
}
template <class A, class B>
__host__ __device__ auto min_element(__treadle_policy, A a, B b) {
    return min_element(a, b);
}
template <class A, class B>
__host__ __device__ auto unique(__treadle_policy, A a, B b) {
    return unique(a, b);
}
template <class A, class B, class C>
__host__ __device__ auto remove_if(__treadle_policy, A a, B b, C c) {
    return remove_if(a, b, c);
}
template <class A, class B, class C, class D>
__host__ __device__ auto inner_product(__treadle_policy, A a, B b, C c, D d) {
    return inner_product(a, b, c, d);
}

}  // namespace thrust
