// <mdspan>: a pointer with extents, and a layout that says where an element is.
#pragma once
#include <array>
#include <span>
namespace std {

// One of several numbers.
template <size_t at, size_t a, size_t... more> constexpr size_t __treadle_number_at = __treadle_number_at<at - 1, more...>;
template <size_t a, size_t... more> constexpr size_t __treadle_number_at<0, a, more...> = a;

template <class I, size_t... E> struct extents {
    typedef I index_type;
    typedef size_t size_type;
    typedef size_t rank_type;
    I __treadle_given[sizeof...(E) > 0 ? sizeof...(E) : 1];
    __host__ __device__ static constexpr size_t rank() { return sizeof...(E); }
    __host__ __device__ static constexpr size_t rank_dynamic() { return ((E == dynamic_extent ? 1 : 0) + ... + 0); }
    __host__ __device__ static constexpr size_t static_extent(size_t r) {
        constexpr size_t all[] = {E..., 0};
        return all[r];
    }
    __host__ __device__ constexpr extents() : __treadle_given{(E == dynamic_extent ? (I)0 : (I)E)...} {}
    // The dynamic ones, or all.
    template <class... N>
        requires(sizeof...(N) > 0 && sizeof...(N) == sizeof...(E) && (is_convertible_v<N, I> && ...))
    __host__ __device__ constexpr explicit extents(N... n) : __treadle_given{(I)n...} {}
    template <class... N>
        requires(sizeof...(N) > 0 && sizeof...(N) != sizeof...(E) && sizeof...(N) == rank_dynamic() && (is_convertible_v<N, I> && ...))
    __host__ __device__ constexpr explicit extents(N... n) : extents() {
        I given[] = {(I)n...};
        int next = 0;
        for (int r = 0; r < (int)sizeof...(E); ++r)
            if (static_extent(r) == dynamic_extent)
                __treadle_given[r] = given[next++];
    }
    template <class N, size_t count> __host__ __device__ constexpr explicit extents(const array<N, count> &n) : extents() {
        int next = 0;
        for (int r = 0; r < (int)sizeof...(E); ++r)
            if (count == sizeof...(E) || static_extent(r) == dynamic_extent)
                __treadle_given[r] = (I)n[next++];
    }
    template <class J, size_t... F> __host__ __device__ constexpr extents(const extents<J, F...> &other) : extents() {
        for (int r = 0; r < (int)sizeof...(E); ++r)
            __treadle_given[r] = (I)other.extent(r);
    }
    __host__ __device__ constexpr I extent(size_t r) const { return __treadle_given[r]; }
    // By a number that is known, so that static extents are constants.
    template <size_t r> __host__ __device__ constexpr I __treadle_extent() const {
        if constexpr (__treadle_number_at<r, E...> == dynamic_extent)
            return __treadle_given[r];
        else
            return (I)__treadle_number_at<r, E...>;
    }
};
template <class I, int rank, size_t... E> struct __treadle_dextents : __treadle_dextents<I, rank - 1, dynamic_extent, E...> {};
template <class I, size_t... E> struct __treadle_dextents<I, 0, E...> { typedef extents<I, E...> type; };
template <class I, size_t rank> using dextents = typename __treadle_dextents<I, rank>::type;
template <size_t rank> using dims = dextents<size_t, rank>;
template <class I, size_t... E, class J, size_t... F>
__host__ __device__ constexpr bool operator==(const extents<I, E...> &x, const extents<J, F...> &y) {
    if (sizeof...(E) != sizeof...(F))
        return false;
    for (int r = 0; r < (int)sizeof...(E); ++r)
        if ((size_t)x.extent(r) != (size_t)y.extent(r))
            return false;
    return true;
}
template <class I, size_t... E, class J, size_t... F>
__host__ __device__ constexpr bool operator!=(const extents<I, E...> &x, const extents<J, F...> &y) { return !(x == y); }

// What a mapping of each layout has.
#define __treadle_mapping(layout) \
    typedef E extents_type; \
    typedef typename E::index_type index_type; \
    typedef size_t rank_type; \
    typedef layout layout_type; \
    E __treadle_extents; \
    __host__ __device__ constexpr const E &extents() const { return __treadle_extents; } \
    __host__ __device__ static constexpr bool is_always_unique() { return true; } \
    __host__ __device__ static constexpr bool is_always_strided() { return true; } \
    __host__ __device__ static constexpr bool is_unique() { return true; } \
    __host__ __device__ static constexpr bool is_strided() { return true; } \
    template <class... I> __host__ __device__ constexpr index_type operator()(I... i) const { \
        return __treadle_at(make_index_sequence<E::rank()>(), (index_type)i...); \
    }
// And of the two without gaps.
#define __treadle_exhaustive \
    __host__ __device__ constexpr mapping() : __treadle_extents() {} \
    __host__ __device__ constexpr mapping(const E &e) : __treadle_extents(e) {} \
    __host__ __device__ static constexpr bool is_always_exhaustive() { return true; } \
    __host__ __device__ static constexpr bool is_exhaustive() { return true; } \
    __host__ __device__ constexpr index_type required_span_size() const { \
        index_type size = 1; \
        for (int r = 0; r < (int)E::rank(); ++r) \
            size *= __treadle_extents.extent(r); \
        return size; \
    }
struct layout_right {
    template <class E> struct mapping {
        __treadle_mapping(layout_right)
        __treadle_exhaustive
        template <size_t... r, class... I> __host__ __device__ constexpr index_type __treadle_at(index_sequence<r...>, I... i) const {
            index_type at = 0;
            ((at = at * __treadle_extents.template __treadle_extent<r>() + i), ...);
            return at;
        }
        __host__ __device__ constexpr index_type stride(size_t of) const {
            index_type by = 1;
            for (int r = (int)of + 1; r < (int)E::rank(); ++r)
                by *= __treadle_extents.extent(r);
            return by;
        }
    };
};
struct layout_left {
    template <class E> struct mapping {
        __treadle_mapping(layout_left)
        __treadle_exhaustive
        template <size_t... r, class... I> __host__ __device__ constexpr index_type __treadle_at(index_sequence<r...>, I... i) const {
            index_type at = 0, by = 1;
            ((at += i * by, by *= __treadle_extents.template __treadle_extent<r>()), ...);
            return at;
        }
        __host__ __device__ constexpr index_type stride(size_t of) const {
            index_type by = 1;
            for (int r = 0; r < (int)of; ++r)
                by *= __treadle_extents.extent(r);
            return by;
        }
    };
};
struct layout_stride {
    template <class E> struct mapping {
        __treadle_mapping(layout_stride)
        array<index_type, E::rank()> __treadle_strides;
        __host__ __device__ constexpr mapping() : __treadle_extents(), __treadle_strides() {}
        template <class N>
        __host__ __device__ constexpr mapping(const E &e, const array<N, E::rank()> &strides) : __treadle_extents(e), __treadle_strides() {
            for (int r = 0; r < (int)E::rank(); ++r)
                __treadle_strides[r] = (index_type)strides[r];
        }
        template <size_t... r, class... I> __host__ __device__ constexpr index_type __treadle_at(index_sequence<r...>, I... i) const {
            return ((i * __treadle_strides[r]) + ... + (index_type)0);
        }
        __host__ __device__ constexpr index_type stride(size_t of) const { return __treadle_strides[of]; }
        __host__ __device__ constexpr array<index_type, E::rank()> strides() const { return __treadle_strides; }
        __host__ __device__ constexpr index_type required_span_size() const {
            index_type size = 1;
            for (int r = 0; r < (int)E::rank(); ++r) {
                if (__treadle_extents.extent(r) == 0)
                    return 0;
                size += (__treadle_extents.extent(r) - 1) * __treadle_strides[r];
            }
            return size;
        }
        __host__ __device__ constexpr bool is_exhaustive() const {
            index_type size = 1;
            for (int r = 0; r < (int)E::rank(); ++r)
                size *= __treadle_extents.extent(r);
            return size == required_span_size();
        }
        __host__ __device__ static constexpr bool is_always_exhaustive() { return false; }
    };
};
#undef __treadle_mapping
#undef __treadle_exhaustive

template <class T> struct default_accessor {
    typedef T element_type;
    typedef T &reference;
    typedef T *data_handle_type;
    __host__ __device__ constexpr T &access(T *p, size_t i) const { return p[i]; }
    __host__ __device__ constexpr T *offset(T *p, size_t i) const { return p + i; }
};
template <class T, class E, class L = layout_right, class A = default_accessor<T>> struct mdspan {
    typedef E extents_type;
    typedef L layout_type;
    typedef A accessor_type;
    typedef typename L::template mapping<E> mapping_type;
    typedef T element_type;
    typedef remove_cv_t<T> value_type;
    typedef typename E::index_type index_type;
    typedef size_t size_type;
    typedef size_t rank_type;
    typedef T *data_handle_type;
    typedef T &reference;
    T *__treadle_data;
    mapping_type __treadle_map;
    __host__ __device__ constexpr mdspan() : __treadle_data(nullptr), __treadle_map() {}
    __host__ __device__ constexpr mdspan(T *data, const E &e) : __treadle_data(data), __treadle_map(e) {}
    __host__ __device__ constexpr mdspan(T *data, const mapping_type &m) : __treadle_data(data), __treadle_map(m) {}
    template <class... N>
        requires((is_convertible_v<N, index_type> && ...))
    __host__ __device__ constexpr explicit mdspan(T *data, N... n) : __treadle_data(data), __treadle_map(E(n...)) {}
    template <class N, size_t count>
    __host__ __device__ constexpr mdspan(T *data, const array<N, count> &n) : __treadle_data(data), __treadle_map(E(n)) {}
    __host__ __device__ static constexpr size_t rank() { return E::rank(); }
    __host__ __device__ static constexpr size_t rank_dynamic() { return E::rank_dynamic(); }
    __host__ __device__ static constexpr size_t static_extent(size_t r) { return E::static_extent(r); }
    __host__ __device__ constexpr index_type extent(size_t r) const { return __treadle_map.__treadle_extents.extent(r); }
    __host__ __device__ constexpr const E &extents() const { return __treadle_map.__treadle_extents; }
    __host__ __device__ constexpr const mapping_type &mapping() const { return __treadle_map; }
    __host__ __device__ constexpr index_type stride(size_t r) const { return __treadle_map.stride(r); }
    __host__ __device__ constexpr T *data_handle() const { return __treadle_data; }
    __host__ __device__ constexpr A accessor() const { return A(); }
    __host__ __device__ constexpr size_t size() const {
        size_t size = 1;
        for (int r = 0; r < (int)rank(); ++r)
            size *= (size_t)extent(r);
        return size;
    }
    __host__ __device__ constexpr bool empty() const { return size() == 0; }
    template <class... I> __host__ __device__ constexpr T &operator()(I... i) const { return __treadle_data[__treadle_map(i...)]; }
    template <class... I> requires(sizeof...(I) == E::rank() && (is_convertible_v<I, index_type> && ...))
    __host__ __device__ constexpr T &operator[](I... i) const { return __treadle_data[__treadle_map(i...)]; }
    template <class I> __host__ __device__ constexpr T &operator[](const array<I, E::rank()> &i) const {
        return __treadle_data[__treadle_place(i.data(), make_index_sequence<E::rank()>())];
    }
    template <class I> __host__ __device__ constexpr T &operator[](const span<I, E::rank()> &i) const {
        return __treadle_data[__treadle_place(i.data(), make_index_sequence<E::rank()>())];
    }
    template <class I, size_t... r> __host__ __device__ constexpr index_type __treadle_place(const I *i, index_sequence<r...>) const {
        return __treadle_map(i[r]...);
    }
};
template <class T, class... N> mdspan(T *, N...) -> mdspan<T, dextents<size_t, sizeof...(N)>>;
template <class T, class I, size_t... E> mdspan(T *, extents<I, E...>) -> mdspan<T, extents<I, E...>>;

}  // namespace std
