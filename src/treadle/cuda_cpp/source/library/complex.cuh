// <complex>, <thrust/complex.h>: complex numbers of float and double.
#pragma once
#include <math.h>
#include <utility>
namespace std {

template <class T> struct complex {
    typedef T value_type;
    T re;
    T im;
    __host__ __device__ constexpr complex(T real = T(), T imaginary = T())
        : re(real), im(imaginary) {}
    template <class U>
    __host__ __device__ constexpr complex(const complex<U> &other)
        : re((T)other.re), im((T)other.im) {}
    __host__ __device__ constexpr T real() const { return re; }
    __host__ __device__ constexpr T imag() const { return im; }
    __host__ __device__ void real(T value) { re = value; }
    __host__ __device__ void imag(T value) { im = value; }
    __host__ __device__ complex &operator=(T value) {
        re = value;
        im = T();
        return *this;
    }
    __host__ __device__ complex &operator+=(const complex &z) {
        re += z.re;
        im += z.im;
        return *this;
    }
    __host__ __device__ complex &operator-=(const complex &z) {
        re -= z.re;
        im -= z.im;
        return *this;
    }
    __host__ __device__ complex &operator*=(const complex &z) {
        T a = re * z.re - im * z.im;
        im = re * z.im + im * z.re;
        re = a;
        return *this;
    }
    __host__ __device__ complex &operator/=(const complex &z) {
        complex q = complex(re, im) / z;
        re = q.re;
        im = q.im;
        return *this;
    }
};

template <class T> __host__ __device__ constexpr complex<T> operator+(const complex<T> &z) { return z; }
template <class T> __host__ __device__ constexpr complex<T> operator-(const complex<T> &z) {
    return complex<T>(-z.re, -z.im);
}
template <class T>
__host__ __device__ constexpr complex<T> operator+(const complex<T> &x, const complex<T> &y) {
    return complex<T>(x.re + y.re, x.im + y.im);
}
template <class T>
__host__ __device__ constexpr complex<T> operator-(const complex<T> &x, const complex<T> &y) {
    return complex<T>(x.re - y.re, x.im - y.im);
}
template <class T>
__host__ __device__ constexpr complex<T> operator*(const complex<T> &x, const complex<T> &y) {
    return complex<T>(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}
// Both are scaled by powers of two first, so that neither squares nor sums overflow or vanish.
template <class T> __host__ __device__ int __treadle_exponent(const complex<T> &z) {
    T larger = fmax(fabs(z.re), fabs(z.im));
    return larger > T(0) && isfinite(larger) ? ilogb(larger) : 0;
}
template <class T>
__host__ __device__ complex<T> operator/(const complex<T> &x, const complex<T> &y) {
    int from_x = __treadle_exponent(x), from_y = __treadle_exponent(y);
    T a = ldexp(x.re, -from_x), b = ldexp(x.im, -from_x);
    T c = ldexp(y.re, -from_y), d = ldexp(y.im, -from_y);
    T scale = c * c + d * d;
    return complex<T>(ldexp((a * c + b * d) / scale, from_x - from_y),
                      ldexp((b * c - a * d) / scale, from_x - from_y));
}
#define __treadle_mixed(sign, of_left, of_right) \
    template <class T> \
    __host__ __device__ constexpr complex<T> operator sign(const complex<T> &x, const T &y) { \
        return of_left; \
    } \
    template <class T> \
    __host__ __device__ constexpr complex<T> operator sign(const T &x, const complex<T> &y) { \
        return of_right; \
    }
__treadle_mixed(+, complex<T>(x.re + y, x.im), complex<T>(x + y.re, y.im))
__treadle_mixed(-, complex<T>(x.re - y, x.im), complex<T>(x - y.re, -y.im))
__treadle_mixed(*, complex<T>(x.re * y, x.im * y), complex<T>(x * y.re, x * y.im))
__treadle_mixed(/, complex<T>(x.re / y, x.im / y), complex<T>(x) / y)
#undef __treadle_mixed
template <class T>
__host__ __device__ constexpr bool operator==(const complex<T> &x, const complex<T> &y) {
    return x.re == y.re && x.im == y.im;
}
template <class T>
__host__ __device__ constexpr bool operator!=(const complex<T> &x, const complex<T> &y) {
    return !(x == y);
}

template <class T> __host__ __device__ constexpr T real(const complex<T> &z) { return z.re; }
template <class T> __host__ __device__ constexpr T imag(const complex<T> &z) { return z.im; }
template <class T> __host__ __device__ T abs(const complex<T> &z) { return hypot(z.re, z.im); }
template <class T> __host__ __device__ T arg(const complex<T> &z) { return atan2(z.im, z.re); }
template <class T> __host__ __device__ constexpr T norm(const complex<T> &z) {
    return z.re * z.re + z.im * z.im;
}
template <class T> __host__ __device__ constexpr complex<T> conj(const complex<T> &z) {
    return complex<T>(z.re, -z.im);
}
template <class T> __host__ __device__ complex<T> polar(const T &length, const T &angle = T()) {
    return complex<T>(length * cos(angle), length * sin(angle));
}
template <class T> __host__ __device__ complex<T> exp(const complex<T> &z) {
    return polar(exp(z.re), z.im);
}
template <class T> __host__ __device__ complex<T> log(const complex<T> &z) {
    return complex<T>(log(abs(z)), arg(z));
}
template <class T> __host__ __device__ complex<T> log10(const complex<T> &z) {
    return log(z) * T(0.4342944819032518);
}
template <class T> __host__ __device__ complex<T> sqrt(const complex<T> &z) {
    if (z.re == T(0) && z.im == T(0))
        return complex<T>(T(0), z.im);
    T root = sqrt((fabs(z.re) + abs(z)) * T(0.5));
    T other = fabs(z.im) / (T(2) * root);
    return z.re >= T(0) ? complex<T>(root, copysign(other, z.im))
                        : complex<T>(other, copysign(root, z.im));
}
template <class T> __host__ __device__ complex<T> pow(const complex<T> &x, const complex<T> &y) {
    if (x.re == T(0) && x.im == T(0))
        return complex<T>(y.re == T(0) && y.im == T(0) ? T(1) : T(0), T(0));
    return exp(y * log(x));
}
template <class T> __host__ __device__ complex<T> pow(const complex<T> &x, const T &y) {
    return pow(x, complex<T>(y));
}
template <class T> __host__ __device__ complex<T> pow(const T &x, const complex<T> &y) {
    return pow(complex<T>(x), y);
}
template <class T> __host__ __device__ complex<T> sinh(const complex<T> &z) {
    return complex<T>(sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im));
}
template <class T> __host__ __device__ complex<T> cosh(const complex<T> &z) {
    return complex<T>(cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im));
}
template <class T> __host__ __device__ complex<T> tanh(const complex<T> &z) {
    T bottom = cosh(T(2) * z.re) + cos(T(2) * z.im);
    if (!isfinite(bottom))
        return complex<T>(copysign(T(1), z.re), copysign(T(0), sin(T(2) * z.im)));
    return complex<T>(sinh(T(2) * z.re) / bottom, sin(T(2) * z.im) / bottom);
}
template <class T> __host__ __device__ complex<T> sin(const complex<T> &z) {
    return complex<T>(sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im));
}
template <class T> __host__ __device__ complex<T> cos(const complex<T> &z) {
    return complex<T>(cos(z.re) * cosh(z.im), -sin(z.re) * sinh(z.im));
}
template <class T> __host__ __device__ complex<T> tan(const complex<T> &z) {
    complex<T> turned = tanh(complex<T>(-z.im, z.re));
    return complex<T>(turned.im, -turned.re);
}

}  // namespace std
