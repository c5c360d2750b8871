// <complex>, <thrust/complex.h>: complex numbers of float and double.
#pragma once
#include <math.h>
#include <utility>
namespace std {

template <class T> struct complex {
    typedef T value_type;
    T real_;
    T imag_;
    __host__ __device__ constexpr complex(T real = T(), T imaginary = T())
        : real_(real), imag_(imaginary) {}
    template <class U>
    __host__ __device__ constexpr complex(const complex<U> &other)
        : real_((T)other.real_), imag_((T)other.imag_) {}
    __host__ __device__ constexpr T real() const { return real_; }
    __host__ __device__ constexpr T imag() const { return imag_; }
    __host__ __device__ void real(T value) { real_ = value; }
    __host__ __device__ void imag(T value) { imag_ = value; }
    __host__ __device__ complex &operator=(T value) {
        real_ = value;
        imag_ = T();
        return *this;
    }
    __host__ __device__ complex &operator+=(const complex &z) {
        real_ += z.real_;
        imag_ += z.imag_;
        return *this;
    }
    __host__ __device__ complex &operator-=(const complex &z) {
        real_ -= z.real_;
        imag_ -= z.imag_;
        return *this;
    }
    __host__ __device__ complex &operator*=(const complex &z) {
        T a = real_ * z.real_ - imag_ * z.imag_;
        imag_ = real_ * z.imag_ + imag_ * z.real_;
        real_ = a;
        return *this;
    }
    __host__ __device__ complex &operator/=(const complex &z) {
        complex q = complex(real_, imag_) / z;
        real_ = q.real_;
        imag_ = q.imag_;
        return *this;
    }
};

template <class T> __host__ __device__ constexpr complex<T> operator+(const complex<T> &z) { return z; }
template <class T> __host__ __device__ constexpr complex<T> operator-(const complex<T> &z) {
    return complex<T>(-z.real_, -z.imag_);
}
template <class T>
__host__ __device__ constexpr complex<T> operator+(const complex<T> &x, const complex<T> &y) {
    return complex<T>(x.real_ + y.real_, x.imag_ + y.imag_);
}
template <class T>
__host__ __device__ constexpr complex<T> operator-(const complex<T> &x, const complex<T> &y) {
    return complex<T>(x.real_ - y.real_, x.imag_ - y.imag_);
}
template <class T>
__host__ __device__ constexpr complex<T> operator*(const complex<T> &x, const complex<T> &y) {
    return complex<T>(x.real_ * y.real_ - x.imag_ * y.imag_, x.real_ * y.imag_ + x.imag_ * y.real_);
}
// Both are scaled by powers of two first, so that neither squares nor sums overflow or vanish.
template <class T> __host__ __device__ int __treadle_exponent(const complex<T> &z) {
    T larger = fmax(fabs(z.real_), fabs(z.imag_));
    return larger > T(0) && isfinite(larger) ? ilogb(larger) : 0;
}
template <class T>
__host__ __device__ complex<T> operator/(const complex<T> &x, const complex<T> &y) {
    int from_x = __treadle_exponent(x), from_y = __treadle_exponent(y);
    T a = ldexp(x.real_, -from_x), b = ldexp(x.imag_, -from_x);
    T c = ldexp(y.real_, -from_y), d = ldexp(y.imag_, -from_y);
    if ((isinf(c) || isinf(d)) && isfinite(a) && isfinite(b)) {  // a zero, with its signs
        c = copysign(isinf(c) ? T(1) : T(0), c);
        d = copysign(isinf(d) ? T(1) : T(0), d);
        return complex<T>(T(0) * (a * c + b * d), T(0) * (b * c - a * d));
    }
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
__treadle_mixed(+, complex<T>(x.real_ + y, x.imag_), complex<T>(x + y.real_, y.imag_))
__treadle_mixed(-, complex<T>(x.real_ - y, x.imag_), complex<T>(x - y.real_, -y.imag_))
__treadle_mixed(*, complex<T>(x.real_ * y, x.imag_ * y), complex<T>(x * y.real_, x * y.imag_))
__treadle_mixed(/, complex<T>(x.real_ / y, x.imag_ / y), complex<T>(x) / y)
#undef __treadle_mixed
template <class T>
__host__ __device__ constexpr bool operator==(const complex<T> &x, const complex<T> &y) {
    return x.real_ == y.real_ && x.imag_ == y.imag_;
}
template <class T>
__host__ __device__ constexpr bool operator!=(const complex<T> &x, const complex<T> &y) {
    return !(x == y);
}
#define __treadle_compared(sign) \
    template <class T> __host__ __device__ constexpr bool operator sign(const complex<T> &x, const T &y) { return x sign complex<T>(y); } \
    template <class T> __host__ __device__ constexpr bool operator sign(const T &x, const complex<T> &y) { return complex<T>(x) sign y; }
__treadle_compared(==)
__treadle_compared(!=)
#undef __treadle_compared

template <class T> __host__ __device__ constexpr T real(const complex<T> &z) { return z.real_; }
template <class T> __host__ __device__ constexpr T imag(const complex<T> &z) { return z.imag_; }
template <class T> __host__ __device__ T abs(const complex<T> &z) { return hypot(z.real_, z.imag_); }
template <class T> __host__ __device__ T arg(const complex<T> &z) { return atan2(z.imag_, z.real_); }
template <class T> __host__ __device__ constexpr T norm(const complex<T> &z) {
    return z.real_ * z.real_ + z.imag_ * z.imag_;
}
template <class T> __host__ __device__ constexpr complex<T> conj(const complex<T> &z) {
    return complex<T>(z.real_, -z.imag_);
}
template <class T> __host__ __device__ complex<T> polar(const T &length, const T &angle = T()) {
    return complex<T>(length * cos(angle), length * sin(angle));
}
// An infinite length times a zero would be NaN.
template <class T> __host__ __device__ complex<T> exp(const complex<T> &z) {
    return z.imag_ == T(0) ? complex<T>(exp(z.real_), z.imag_) : polar(exp(z.real_), z.imag_);
}
template <class T> __host__ __device__ complex<T> log(const complex<T> &z) {
    return complex<T>(log(abs(z)), arg(z));
}
template <class T> __host__ __device__ complex<T> log10(const complex<T> &z) {
    return log(z) * T(0.4342944819032518);
}
template <class T> __host__ __device__ complex<T> sqrt(const complex<T> &z) {
    if (z.real_ == T(0) && z.imag_ == T(0))
        return complex<T>(T(0), z.imag_);
    if (isinf(z.imag_))
        return complex<T>(fabs(z.imag_), z.imag_);
    T root = sqrt(fabs(z.real_) * T(0.5) + abs(z) * T(0.5));
    T other = fabs(z.imag_) / (T(2) * root);
    return z.real_ >= T(0) ? complex<T>(root, copysign(other, z.imag_))
                        : complex<T>(other, copysign(root, z.imag_));
}
template <class T> __host__ __device__ complex<T> pow(const complex<T> &x, const complex<T> &y) {
    if (x.real_ == T(0) && x.imag_ == T(0))
        return complex<T>(y.real_ == T(0) && y.imag_ == T(0) ? T(1) : T(0), T(0));
    return exp(y * log(x));
}
// Of other numbers, in the wider of the types.
template <class T, class U> requires(__treadle_is_arithmetic<U>)
__host__ __device__ auto pow(const complex<T> &x, const U &y) {
    typedef decltype(T() + U()) wide;
    if constexpr (is_same_v<wide, T>)
        return pow(x, complex<T>(T(y)));
    else
        return pow(complex<double>(x), complex<double>(y));
}
template <class T, class U> requires(__treadle_is_arithmetic<U>)
__host__ __device__ auto pow(const U &x, const complex<T> &y) {
    typedef decltype(T() + U()) wide;
    if constexpr (is_same_v<wide, T>)
        return pow(complex<T>(T(x)), y);
    else
        return pow(complex<double>(x), complex<double>(y));
}
template <class T> __host__ __device__ complex<T> sinh(const complex<T> &z) {
    return complex<T>(z.real_ == T(0) ? z.real_ : sinh(z.real_) * cos(z.imag_),
                      z.imag_ == T(0) ? z.imag_ : cosh(z.real_) * sin(z.imag_));
}
template <class T> __host__ __device__ complex<T> cosh(const complex<T> &z) {
    bool zero = z.real_ == T(0) || z.imag_ == T(0);
    return complex<T>(cosh(z.real_) * cos(z.imag_), zero ? z.real_ * z.imag_ : sinh(z.real_) * sin(z.imag_));
}
template <class T> __host__ __device__ complex<T> tanh(const complex<T> &z) {
    T bottom = cosh(T(2) * z.real_) + cos(T(2) * z.imag_);
    if (isinf(bottom))
        return complex<T>(copysign(T(1), z.real_), copysign(T(0), sin(T(2) * z.imag_)));
    return complex<T>(sinh(T(2) * z.real_) / bottom, sin(T(2) * z.imag_) / bottom);
}
template <class T> __host__ __device__ complex<T> sin(const complex<T> &z) {
    complex<T> turned = sinh(complex<T>(-z.imag_, z.real_));
    return complex<T>(turned.imag_, -turned.real_);
}
template <class T> __host__ __device__ complex<T> cos(const complex<T> &z) {
    return cosh(complex<T>(-z.imag_, z.real_));
}
template <class T> __host__ __device__ complex<T> tan(const complex<T> &z) {
    complex<T> turned = tanh(complex<T>(-z.imag_, z.real_));
    return complex<T>(turned.imag_, -turned.real_);
}
template <class T> __host__ __device__ complex<T> proj(const complex<T> &z) {
    return isinf(z.real_) || isinf(z.imag_) ? complex<T>(T(INFINITY), copysign(T(0), z.imag_)) : z;
}
// The inverse functions, by logarithms (Kahan's formulas, whose signs are those of the branch cuts).
template <class T> __host__ __device__ complex<T> asinh(const complex<T> &z) {
    if (isinf(z.real_) || isinf(z.imag_))
        return complex<T>(copysign(T(INFINITY), z.real_), copysign(atan2(fabs(z.imag_), fabs(z.real_)), z.imag_));
    complex<T> s = sqrt(complex<T>(T(1) + z.imag_, -z.real_)), t = sqrt(complex<T>(T(1) - z.imag_, z.real_));
    return complex<T>(asinh(s.imag_ * t.real_ - s.real_ * t.imag_) * T(-1),
                      atan2(z.imag_, s.real_ * t.real_ - s.imag_ * t.imag_));
}
template <class T> __host__ __device__ complex<T> asin(const complex<T> &z) {
    complex<T> turned = asinh(complex<T>(-z.imag_, z.real_));
    return complex<T>(turned.imag_, -turned.real_);
}
template <class T> __host__ __device__ complex<T> acos(const complex<T> &z) {
    if (isinf(z.real_) || isinf(z.imag_))
        return complex<T>(atan2(fabs(z.imag_), z.real_), copysign(T(INFINITY), -z.imag_));
    complex<T> s = sqrt(complex<T>(T(1) - z.real_, -z.imag_)), t = sqrt(complex<T>(T(1) + z.real_, z.imag_));
    return complex<T>(T(2) * atan2(s.real_, t.real_), asinh(t.real_ * s.imag_ - t.imag_ * s.real_));
}
template <class T> __host__ __device__ complex<T> acosh(const complex<T> &z) {
    if (isinf(z.real_) || isinf(z.imag_))
        return complex<T>(T(INFINITY), atan2(z.imag_, z.real_));
    complex<T> s = sqrt(complex<T>(z.real_ - T(1), z.imag_)), t = sqrt(complex<T>(z.real_ + T(1), z.imag_));
    return complex<T>(asinh(s.real_ * t.real_ + s.imag_ * t.imag_), T(2) * atan2(s.imag_, t.real_));
}
template <class T> __host__ __device__ complex<T> atanh(const complex<T> &z) {
    T x = z.real_, y = z.imag_, one = T(1);
    if (fabs(x) > T(1e9) || fabs(y) > T(1e9)) {  // whose squares may overflow: 1/z and a quarter turn
        complex<T> inverse = complex<T>(one) / z;
        return complex<T>(inverse.real_, copysign(T(1.5707963267948966), y) + inverse.imag_);
    }
    T real = log1p(T(4) * fabs(x) / ((one - fabs(x)) * (one - fabs(x)) + y * y)) / T(4);
    return complex<T>(copysign(real, x), atan2(T(2) * y, (one - x) * (one + x) - y * y) / T(2));
}
template <class T> __host__ __device__ complex<T> atan(const complex<T> &z) {
    complex<T> turned = atanh(complex<T>(-z.imag_, z.real_));
    return complex<T>(turned.imag_, -turned.real_);
}

}  // namespace std
