// <variant>: one of up to 8 types, in a union with its number.
#pragma once
#include <utility>
namespace std {

struct monostate {};
#define __treadle_alike(op, result) __host__ __device__ constexpr bool operator op(monostate, monostate) { return result; }
__treadle_alike(==, true)
__treadle_alike(!=, false)
__treadle_alike(<, false)
__treadle_alike(>, false)
__treadle_alike(<=, true)
__treadle_alike(>=, true)
#undef __treadle_alike
constexpr size_t variant_npos = (size_t)-1;

template <class... T> struct __treadle_alternatives {
    static_assert(sizeof...(T) <= 8, "std::variant of more than 8 types: put some of them into a variant of their own");
};
template <class A> struct __treadle_alternatives<A> {
    union { char __treadle_none; A item0; };
    unsigned int __treadle_index;
    __host__ __device__ constexpr __treadle_alternatives() : __treadle_none(0), __treadle_index(~0u) {}
};
template <class A, class B> struct __treadle_alternatives<A, B> {
    union { char __treadle_none; A item0; B item1; };
    unsigned int __treadle_index;
    __host__ __device__ constexpr __treadle_alternatives() : __treadle_none(0), __treadle_index(~0u) {}
};
template <class A, class B, class C> struct __treadle_alternatives<A, B, C> {
    union { char __treadle_none; A item0; B item1; C item2; };
    unsigned int __treadle_index;
    __host__ __device__ constexpr __treadle_alternatives() : __treadle_none(0), __treadle_index(~0u) {}
};
template <class A, class B, class C, class D> struct __treadle_alternatives<A, B, C, D> {
    union { char __treadle_none; A item0; B item1; C item2; D item3; };
    unsigned int __treadle_index;
    __host__ __device__ constexpr __treadle_alternatives() : __treadle_none(0), __treadle_index(~0u) {}
};
template <class A, class B, class C, class D, class E> struct __treadle_alternatives<A, B, C, D, E> {
    union { char __treadle_none; A item0; B item1; C item2; D item3; E item4; };
    unsigned int __treadle_index;
    __host__ __device__ constexpr __treadle_alternatives() : __treadle_none(0), __treadle_index(~0u) {}
};
template <class A, class B, class C, class D, class E, class F> struct __treadle_alternatives<A, B, C, D, E, F> {
    union { char __treadle_none; A item0; B item1; C item2; D item3; E item4; F item5; };
    unsigned int __treadle_index;
    __host__ __device__ constexpr __treadle_alternatives() : __treadle_none(0), __treadle_index(~0u) {}
};
template <class A, class B, class C, class D, class E, class F, class G> struct __treadle_alternatives<A, B, C, D, E, F, G> {
    union { char __treadle_none; A item0; B item1; C item2; D item3; E item4; F item5; G item6; };
    unsigned int __treadle_index;
    __host__ __device__ constexpr __treadle_alternatives() : __treadle_none(0), __treadle_index(~0u) {}
};
template <class A, class B, class C, class D, class E, class F, class G, class H> struct __treadle_alternatives<A, B, C, D, E, F, G, H> {
    union { char __treadle_none; A item0; B item1; C item2; D item3; E item4; F item5; G item6; H item7; };
    unsigned int __treadle_index;
    __host__ __device__ constexpr __treadle_alternatives() : __treadle_none(0), __treadle_index(~0u) {}
};

// The type of a number, and the number of a type.
template <size_t i, class A, class... T> struct __treadle_type_at : __treadle_type_at<i - 1, T...> {};
template <class A, class... T> struct __treadle_type_at<0, A, T...> { typedef A type; };
template <class T, class A, class... B> constexpr size_t __treadle_number_of = 1 + __treadle_number_of<T, B...>;
template <class T, class... B> constexpr size_t __treadle_number_of<T, T, B...> = 0;

// Run `f` on the part of a union of `count` types that is there.
template <size_t i, size_t count, class R, class F, class V> __host__ __device__ constexpr R __treadle_on_part(F &f, V &v) {
    if constexpr (i + 1 < count) {
        if (v.__treadle_index != i)
            return __treadle_on_part<i + 1, count, R>(f, v);
    }
    return f(__treadle_item<i>::of(v));
}
// Run `f` on the numbers, with the one that is there.
template <size_t i, size_t count, class F> __host__ __device__ constexpr void __treadle_on_number(unsigned int index, F &f) {
    if constexpr (i < count) {
        if (index == i)
            f(integral_constant<size_t, i>());
        else
            __treadle_on_number<i + 1, count>(index, f);
    }
}

// Copies and ends of the part that is there; none where they are those of bytes.
template <bool plain, class... T> struct __treadle_variant : __treadle_alternatives<T...> {
    __host__ __device__ constexpr __treadle_variant() {}
};
template <class... T> struct __treadle_variant<false, T...> : __treadle_alternatives<T...> {
    __host__ __device__ constexpr __treadle_variant() {}
    __host__ __device__ constexpr __treadle_variant(const __treadle_variant &other) { __treadle_copy(other); }
    __host__ __device__ constexpr __treadle_variant(__treadle_variant &&other) { __treadle_take(other); }
    __host__ __device__ constexpr __treadle_variant &operator=(const __treadle_variant &other) {
        if (this->__treadle_index != other.__treadle_index) {
            __treadle_reset();
            __treadle_copy(other);
        } else {
            auto assign = [&](auto i) {
                __treadle_item<decltype(i)::value>::of(*this) = __treadle_item<decltype(i)::value>::of(other);
            };
            __treadle_on_number<0, sizeof...(T)>(other.__treadle_index, assign);
        }
        return *this;
    }
    __host__ __device__ ~__treadle_variant() { __treadle_reset(); }
    __host__ __device__ constexpr void __treadle_copy(const __treadle_variant &other) {
        auto make = [&](auto i) {
            typedef typename __treadle_type_at<decltype(i)::value, T...>::type P;
            new (&__treadle_item<decltype(i)::value>::of(*this)) P(__treadle_item<decltype(i)::value>::of(other));
        };
        this->__treadle_index = other.__treadle_index;
        __treadle_on_number<0, sizeof...(T)>(other.__treadle_index, make);
    }
    __host__ __device__ constexpr void __treadle_take(__treadle_variant &other) {
        auto make = [&](auto i) {
            typedef typename __treadle_type_at<decltype(i)::value, T...>::type P;
            new (&__treadle_item<decltype(i)::value>::of(*this)) P(move(__treadle_item<decltype(i)::value>::of(other)));
        };
        this->__treadle_index = other.__treadle_index;
        __treadle_on_number<0, sizeof...(T)>(other.__treadle_index, make);
    }
    __host__ __device__ constexpr void __treadle_reset() {
        auto end = [&](auto i) {
            typedef typename __treadle_type_at<decltype(i)::value, T...>::type P;
            if constexpr (!is_trivially_destructible_v<P>)
                __treadle_item<decltype(i)::value>::of(*this).~P();
        };
        __treadle_on_number<0, sizeof...(T)>(this->__treadle_index, end);
        this->__treadle_index = ~0u;
    }
};
template <class... T> constexpr bool __treadle_are_plain = ((is_trivially_copyable_v<T> && is_trivially_destructible_v<T>) && ...);

// A union of types that knows which one it holds.
template <class... T> struct __treadle_union : __treadle_variant<__treadle_are_plain<T...>, T...> {
    __host__ __device__ constexpr __treadle_union() {}
    template <size_t i, class... A> __host__ __device__ constexpr void __treadle_make(A &&...a) {
        typedef typename __treadle_type_at<i, T...>::type P;
        new (&__treadle_item<i>::of(*this)) P(forward<A>(a)...);
        this->__treadle_index = i;
    }
    __host__ __device__ constexpr void __treadle_end() {
        if constexpr (!__treadle_are_plain<T...>)
            this->__treadle_reset();
    }
    // Assigned to what is there, or made anew.
    template <size_t i, class U> __host__ __device__ constexpr void __treadle_set(U &&x) {
        if (this->__treadle_index == i) {
            __treadle_item<i>::of(*this) = forward<U>(x);
        } else {
            __treadle_end();
            __treadle_make<i>(forward<U>(x));
        }
    }
};

// How well a value of type U initializes a T: 3 as it is, 2 promoted, 1 converted without a loss, 0.
template <class T, class U> __host__ __device__ constexpr int __treadle_fit() {
    if constexpr (is_same_v<T, U>) {
        return 3;
    } else if constexpr (is_arithmetic_v<T> && is_arithmetic_v<U>) {
        if constexpr (is_same_v<T, bool>)
            return 0;
        else if constexpr (is_floating_point_v<T> != is_floating_point_v<U>)
            return 0;
        else if constexpr (is_floating_point_v<T>)
            return sizeof(T) > sizeof(U) ? 2 : 0;
        else if constexpr (sizeof(T) < sizeof(U) || (sizeof(T) == sizeof(U) && is_signed_v<T> != is_signed_v<U>) ||
                           (is_signed_v<U> && !is_signed_v<T>))
            return 0;
        else
            return is_same_v<T, int> ? 2 : 1;
    } else if constexpr (is_same_v<T, bool> || is_arithmetic_v<T>) {
        return is_class_v<U> && is_convertible_v<U, T> ? 1 : 0;
    } else {
        return is_convertible_v<U, T> ? 1 : 0;
    }
}
// The number of the type that fits best.
template <class U, class... T> __host__ __device__ constexpr size_t __treadle_fitting() {
    constexpr int fits[] = {__treadle_fit<T, U>()...};
    size_t best = variant_npos;
    for (size_t i = 0; i < sizeof...(T); ++i)
        if (fits[i] > 0 && (best == variant_npos || fits[i] > fits[best]))
            best = i;
    return best;
}

template <class... T> struct variant : __treadle_union<T...> {
    __host__ __device__ constexpr variant() { this->template __treadle_make<0>(); }
    template <class U>
        requires(!is_same_v<decay_t<U>, variant> && __treadle_fitting<decay_t<U>, T...>() < sizeof...(T))
    __host__ __device__ constexpr variant(U &&x) { this->template __treadle_make<__treadle_fitting<decay_t<U>, T...>()>(forward<U>(x)); }
    template <size_t i, class... A> __host__ __device__ constexpr explicit variant(in_place_index_t<i>, A &&...a) {
        this->template __treadle_make<i>(forward<A>(a)...);
    }
    template <class P, class... A> __host__ __device__ constexpr explicit variant(in_place_type_t<P>, A &&...a) {
        this->template __treadle_make<__treadle_number_of<P, T...>>(forward<A>(a)...);
    }
    template <class U>
        requires(!is_same_v<decay_t<U>, variant> && __treadle_fitting<decay_t<U>, T...>() < sizeof...(T))
    __host__ __device__ constexpr variant &operator=(U &&x) {
        this->template __treadle_set<__treadle_fitting<decay_t<U>, T...>()>(forward<U>(x));
        return *this;
    }
    template <size_t i, class... A> __host__ __device__ constexpr auto &emplace(A &&...a) {
        this->__treadle_end();
        this->template __treadle_make<i>(forward<A>(a)...);
        return __treadle_item<i>::of(*this);
    }
    template <class P, class... A> __host__ __device__ constexpr P &emplace(A &&...a) {
        this->__treadle_end();
        this->template __treadle_make<__treadle_number_of<P, T...>>(forward<A>(a)...);
        return __treadle_item<__treadle_number_of<P, T...>>::of(*this);
    }
    __host__ __device__ constexpr size_t index() const { return this->__treadle_index; }
    __host__ __device__ constexpr bool valueless_by_exception() const { return false; }
    __host__ __device__ void swap(variant &other) {
        variant before(*this);
        *this = other;
        other = before;
    }
};

template <class V> struct variant_size;
template <class... T> struct variant_size<variant<T...>> : integral_constant<size_t, sizeof...(T)> {};
template <class V> constexpr size_t variant_size_v = variant_size<V>::value;
template <size_t i, class V> struct variant_alternative;
template <size_t i, class... T> struct variant_alternative<i, variant<T...>> : __treadle_type_at<i, T...> {};
template <size_t i, class V> using variant_alternative_t = typename variant_alternative<i, V>::type;

template <class P, class... T> __host__ __device__ constexpr bool holds_alternative(const variant<T...> &v) {
    return v.__treadle_index == __treadle_number_of<P, T...>;
}
// Which alternative is there is not tested by `get`, as by * of a pointer.
template <size_t i, class... T> __host__ __device__ constexpr variant_alternative_t<i, variant<T...>> &get(variant<T...> &v) {
    return __treadle_item<i>::of(v);
}
template <size_t i, class... T>
__host__ __device__ constexpr const variant_alternative_t<i, variant<T...>> &get(const variant<T...> &v) {
    return __treadle_item<i>::of(v);
}
template <class P, class... T> __host__ __device__ constexpr P &get(variant<T...> &v) {
    return __treadle_item<__treadle_number_of<P, T...>>::of(v);
}
template <class P, class... T> __host__ __device__ constexpr const P &get(const variant<T...> &v) {
    return __treadle_item<__treadle_number_of<P, T...>>::of(v);
}
template <size_t i, class... T> __host__ __device__ constexpr variant_alternative_t<i, variant<T...>> *get_if(variant<T...> *v) {
    return v && v->__treadle_index == i ? &__treadle_item<i>::of(*v) : nullptr;
}
template <size_t i, class... T>
__host__ __device__ constexpr const variant_alternative_t<i, variant<T...>> *get_if(const variant<T...> *v) {
    return v && v->__treadle_index == i ? &__treadle_item<i>::of(*v) : nullptr;
}
template <class P, class... T> __host__ __device__ constexpr P *get_if(variant<T...> *v) {
    return get_if<__treadle_number_of<P, T...>>(v);
}
template <class P, class... T> __host__ __device__ constexpr const P *get_if(const variant<T...> *v) {
    return get_if<__treadle_number_of<P, T...>>(v);
}

// With the result type of the first alternatives, which all have.
template <class R, class F, class V> __host__ __device__ constexpr R __treadle_visit(F &f, V &v) {
    return __treadle_on_part<0, variant_size_v<remove_cvref_t<V>>, R>(f, v);
}
template <class R, class F, class V, class... W> __host__ __device__ constexpr R __treadle_visit(F &f, V &v, W &...more) {
    auto rest = [&](auto &x) -> R {
        auto with_x = [&](auto &...y) -> R { return f(x, y...); };
        return __treadle_visit<R>(with_x, more...);
    };
    return __treadle_on_part<0, variant_size_v<remove_cvref_t<V>>, R>(rest, v);
}
template <class V> using __treadle_first_of = variant_alternative_t<0, remove_cvref_t<V>>;
template <class F, class... V> __host__ __device__ constexpr auto visit(F &&f, V &&...v) -> decltype(auto) {
    return __treadle_visit<decltype(f(declval<__treadle_first_of<V> &>()...))>(f, v...);
}
template <class R, class F, class... V> __host__ __device__ constexpr R visit(F &&f, V &&...v) {
    return __treadle_visit<R>(f, v...);
}

#define __treadle_compared(op, of_numbers) \
    template <class... T> __host__ __device__ constexpr bool operator op(const variant<T...> &x, const variant<T...> &y) { \
        if (x.__treadle_index != y.__treadle_index) \
            return of_numbers; \
        bool result = false; \
        auto compare = [&](auto i) { \
            result = __treadle_item<decltype(i)::value>::of(x) op __treadle_item<decltype(i)::value>::of(y); \
        }; \
        __treadle_on_number<0, sizeof...(T)>(x.__treadle_index, compare); \
        return result; \
    }
__treadle_compared(==, false)
__treadle_compared(!=, true)
__treadle_compared(<, x.__treadle_index < y.__treadle_index)
__treadle_compared(>, x.__treadle_index > y.__treadle_index)
__treadle_compared(<=, x.__treadle_index <= y.__treadle_index)
__treadle_compared(>=, x.__treadle_index >= y.__treadle_index)
#undef __treadle_compared

}  // namespace std
