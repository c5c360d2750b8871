// Thrust in device code: complex numbers, which are those of the standard library.
#pragma once
#include <complex>
namespace thrust {

using std::abs;
using std::arg;
using std::complex;
using std::conj;
using std::cos;
using std::cosh;
using std::exp;
using std::log;
using std::log10;
using std::norm;
using std::polar;
using std::pow;
using std::sin;
using std::sinh;
using std::sqrt;
using std::tan;
using std::tanh;

}  // namespace thrust
