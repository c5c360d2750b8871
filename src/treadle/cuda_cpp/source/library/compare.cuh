// <compare>: what <=> gives, a number that is compared with 0.
#pragma once
#include <type_traits>
namespace std {

#define __treadle_ordering(name) \
    __host__ __device__ friend constexpr bool operator==(name a, int) { return a.order == 0; } \
    __host__ __device__ friend constexpr bool operator==(name a, name b) { return a.order == b.order; } \
    __host__ __device__ friend constexpr bool operator!=(name a, int) { return a.order != 0; } \
    __host__ __device__ friend constexpr bool operator!=(name a, name b) { return a.order != b.order; } \
    __host__ __device__ friend constexpr bool operator<(name a, int) { return a.order == -1; } \
    __host__ __device__ friend constexpr bool operator>(name a, int) { return a.order == 1; } \
    __host__ __device__ friend constexpr bool operator<=(name a, int) { return a.order == -1 || a.order == 0; } \
    __host__ __device__ friend constexpr bool operator>=(name a, int) { return a.order == 1 || a.order == 0; } \
    __host__ __device__ friend constexpr bool operator==(int, name a) { return a.order == 0; } \
    __host__ __device__ friend constexpr bool operator!=(int, name a) { return a.order != 0; } \
    __host__ __device__ friend constexpr bool operator<(int, name a) { return a.order == 1; } \
    __host__ __device__ friend constexpr bool operator>(int, name a) { return a.order == -1; } \
    __host__ __device__ friend constexpr bool operator<=(int, name a) { return a.order == 1 || a.order == 0; } \
    __host__ __device__ friend constexpr bool operator>=(int, name a) { return a.order == -1 || a.order == 0; } \
    __host__ __device__ friend constexpr name operator<=>(name a, int) { return a; } \
    __host__ __device__ friend constexpr name operator<=>(int, name a) { \
        return name{(signed char)(a.order == 2 ? 2 : -a.order)}; \
    }

// 2: neither is less, and they are not equal, as with NaN.
struct partial_ordering {
    signed char order;
    static const partial_ordering less, equivalent, greater, unordered;
    __treadle_ordering(partial_ordering)
};
constexpr partial_ordering partial_ordering::less{-1};
constexpr partial_ordering partial_ordering::equivalent{0};
constexpr partial_ordering partial_ordering::greater{1};
constexpr partial_ordering partial_ordering::unordered{2};
struct weak_ordering {
    signed char order;
    static const weak_ordering less, equivalent, greater;
    __host__ __device__ constexpr operator partial_ordering() const { return partial_ordering{order}; }
    __treadle_ordering(weak_ordering)
};
constexpr weak_ordering weak_ordering::less{-1};
constexpr weak_ordering weak_ordering::equivalent{0};
constexpr weak_ordering weak_ordering::greater{1};
struct strong_ordering {
    signed char order;
    static const strong_ordering less, equal, equivalent, greater;
    __host__ __device__ constexpr operator partial_ordering() const { return partial_ordering{order}; }
    __host__ __device__ constexpr operator weak_ordering() const { return weak_ordering{order}; }
    __treadle_ordering(strong_ordering)
};
constexpr strong_ordering strong_ordering::less{-1};
constexpr strong_ordering strong_ordering::equal{0};
constexpr strong_ordering strong_ordering::equivalent{0};
constexpr strong_ordering strong_ordering::greater{1};
#undef __treadle_ordering

__host__ __device__ constexpr bool is_eq(partial_ordering a) { return a == 0; }
__host__ __device__ constexpr bool is_neq(partial_ordering a) { return a != 0; }
__host__ __device__ constexpr bool is_lt(partial_ordering a) { return a < 0; }
__host__ __device__ constexpr bool is_lteq(partial_ordering a) { return a <= 0; }
__host__ __device__ constexpr bool is_gt(partial_ordering a) { return a > 0; }
__host__ __device__ constexpr bool is_gteq(partial_ordering a) { return a >= 0; }
struct compare_three_way {
    template <class A, class B>
    __host__ __device__ constexpr auto operator()(const A &a, const B &b) const { return a <=> b; }
};

}  // namespace std
