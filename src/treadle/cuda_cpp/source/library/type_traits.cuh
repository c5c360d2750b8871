// <type_traits>, without questions about const and volatile: types have none here.
#pragma once
#include <stddef.h>
namespace std {

template <class T, T v>
struct integral_constant {
    static constexpr T value = v;
    typedef T value_type;
    typedef integral_constant<T, v> type;
    __host__ __device__ constexpr operator T() const { return v; }
    __host__ __device__ constexpr T operator()() const { return v; }
};
__host__ __device__ constexpr bool is_constant_evaluated() {
    return __builtin_is_constant_evaluated();
}
template <bool v> using bool_constant = integral_constant<bool, v>;
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;

#define __treadle_trait(name) \
    template <class T> struct name : integral_constant<bool, __treadle_##name<T>> {}; \
    template <class T> constexpr bool name##_v = __treadle_##name<T>;
__treadle_trait(is_void)
__treadle_trait(is_null_pointer)
__treadle_trait(is_integral)
__treadle_trait(is_floating_point)
__treadle_trait(is_arithmetic)
__treadle_trait(is_fundamental)
__treadle_trait(is_enum)
__treadle_trait(is_scoped_enum)
__treadle_trait(is_class)
__treadle_trait(is_union)
__treadle_trait(is_empty)
__treadle_trait(is_array)
__treadle_trait(is_pointer)
__treadle_trait(is_member_pointer)
__treadle_trait(is_member_function_pointer)
template <class T>
struct is_member_object_pointer
    : integral_constant<bool, __treadle_is_member_pointer<T> && !__treadle_is_member_function_pointer<T>> {};
template <class T> constexpr bool is_member_object_pointer_v = is_member_object_pointer<T>::value;
__treadle_trait(is_reference)
__treadle_trait(is_lvalue_reference)
__treadle_trait(is_rvalue_reference)
__treadle_trait(is_scalar)
__treadle_trait(is_object)
__treadle_trait(is_signed)
__treadle_trait(is_unsigned)
__treadle_trait(is_trivially_copyable)
__treadle_trait(is_trivially_destructible)
#undef __treadle_trait

template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <class A, class B>
struct is_base_of : integral_constant<bool, __treadle_is_base_of<A, B>> {};
template <class A, class B> constexpr bool is_base_of_v = __treadle_is_base_of<A, B>;
template <class A, class B>
struct is_convertible : integral_constant<bool, __treadle_is_convertible<A, B>> {};
template <class A, class B> constexpr bool is_convertible_v = __treadle_is_convertible<A, B>;

#define __treadle_transform(name) \
    template <class T> struct name { typedef __treadle_##name<T> type; }; \
    template <class T> using name##_t = __treadle_##name<T>;
__treadle_transform(remove_reference)
__treadle_transform(remove_pointer)
__treadle_transform(remove_extent)
__treadle_transform(remove_all_extents)
__treadle_transform(decay)
__treadle_transform(make_signed)
__treadle_transform(make_unsigned)
__treadle_transform(underlying_type)
#undef __treadle_transform

template <class T> struct remove_const { typedef T type; };
template <class T> struct remove_volatile { typedef T type; };
template <class T> struct remove_cv { typedef T type; };
template <class T> struct remove_cvref { typedef __treadle_remove_reference<T> type; };
template <class T> struct add_const { typedef const T type; };
template <class T> struct add_cv { typedef const T type; };
template <class T> struct add_pointer { typedef __treadle_remove_reference<T> *type; };
template <class T> struct add_lvalue_reference { typedef T &type; };
template <class T> struct add_rvalue_reference { typedef T &&type; };
template <class T> struct type_identity { typedef T type; };
template <class T> using remove_const_t = T;
template <class T> using remove_volatile_t = T;
template <class T> using remove_cv_t = T;
template <class T> using remove_cvref_t = __treadle_remove_reference<T>;
template <class T> using add_const_t = const T;
template <class T> using add_cv_t = const T;
template <class T> using add_pointer_t = __treadle_remove_reference<T> *;
template <class T> using add_lvalue_reference_t = T &;
template <class T> using add_rvalue_reference_t = T &&;
template <class T> using type_identity_t = T;

template <bool test, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <bool test, class T = void> using enable_if_t = typename enable_if<test, T>::type;
template <bool test, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <bool test, class A, class B>
using conditional_t = typename conditional<test, A, B>::type;
template <class A, class B = A, class C = B> struct common_type {
    typedef __treadle_common_type<A, B, C> type;
};
template <class A, class B = A, class C = B>
using common_type_t = __treadle_common_type<A, B, C>;
template <class T> struct alignment_of : integral_constant<size_t, alignof(T)> {};
template <class T> constexpr size_t alignment_of_v = alignof(T);
template <size_t size, size_t alignment = 8> struct aligned_storage {
    struct alignas(alignment) type { unsigned char data[size]; };
};
template <size_t size, size_t alignment = 8>
using aligned_storage_t = typename aligned_storage<size, alignment>::type;
template <class T> struct negation : integral_constant<bool, !T::value> {};
template <class T> constexpr bool negation_v = !T::value;
template <class A = true_type, class B = true_type, class C = true_type, class D = true_type>
struct conjunction
    : integral_constant<bool, A::value && B::value && C::value && D::value> {};
template <class A = true_type, class B = true_type, class C = true_type, class D = true_type>
constexpr bool conjunction_v = A::value && B::value && C::value && D::value;
template <class A = false_type, class B = false_type, class C = false_type, class D = false_type>
struct disjunction
    : integral_constant<bool, A::value || B::value || C::value || D::value> {};
template <class A = false_type, class B = false_type, class C = false_type, class D = false_type>
constexpr bool disjunction_v = A::value || B::value || C::value || D::value;
template <class A = void, class B = void, class C = void, class D = void> using void_t = void;

}  // namespace std
