// What the device code of PyTorch's extensions takes from <torch/…>, <ATen/…> and <c10/…>: accessors
// of tensors, the types of numbers, macros. A kernel that has an accessor as a parameter is launched
// with the tensor. Host code, which has the rest, is skipped.
#pragma once
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <float.h>
#include <limits>
#include <complex>
#include <tuple>

#define C10_HOST_DEVICE __host__ __device__
#define C10_DEVICE __device__
#define C10_HOST __host__
#define C10_ALWAYS_INLINE inline
#define C10_WARP_SIZE 32
#define C10_RESTRICT __restrict__
#define C10_UNUSED
#define C10_NODISCARD
#define C10_LIKELY(x) (x)
#define C10_UNLIKELY(x) (x)
#define C10_LAUNCH_BOUNDS_0 __launch_bounds__(256, 4)
#define C10_LAUNCH_BOUNDS_1(threads) __launch_bounds__(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks) __launch_bounds__(threads, blocks)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() ((void)0)
#define CUDA_KERNEL_ASSERT(condition) assert(condition)
#define CUDA_KERNEL_LOOP_TYPE(i, n, type) \
    for (type i = (type)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (type)blockDim.x * gridDim.x)
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)

namespace c10 {

typedef __half Half;
typedef __nv_bfloat16 BFloat16;
template <class T> using complex = std::complex<T>;
enum class ScalarType : signed char {
    Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool,
    QInt8, QUInt8, QInt32, BFloat16, QUInt4x2, QUInt2x4
};
struct qint8 { int8_t val_; };
struct quint8 { uint8_t val_; };
struct qint32 { int32_t val_; };
struct quint4x2 { uint8_t val_; };
struct quint2x4 { uint8_t val_; };
namespace impl {
template <ScalarType type> struct ScalarTypeToCPPType;
#define __treadle_scalar_type(name, of) \
    template <> struct ScalarTypeToCPPType<ScalarType::name> { typedef of type; };
__treadle_scalar_type(Byte, uint8_t)
__treadle_scalar_type(Char, int8_t)
__treadle_scalar_type(Short, int16_t)
__treadle_scalar_type(Int, int32_t)
__treadle_scalar_type(Long, int64_t)
__treadle_scalar_type(Half, __half)
__treadle_scalar_type(Float, float)
__treadle_scalar_type(Double, double)
__treadle_scalar_type(ComplexFloat, complex<float>)
__treadle_scalar_type(ComplexDouble, complex<double>)
__treadle_scalar_type(Bool, bool)
__treadle_scalar_type(QInt8, qint8)
__treadle_scalar_type(QUInt8, quint8)
__treadle_scalar_type(QInt32, qint32)
__treadle_scalar_type(QUInt4x2, quint4x2)
__treadle_scalar_type(QUInt2x4, quint2x4)
__treadle_scalar_type(BFloat16, __nv_bfloat16)
template <ScalarType type> using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<type>::type;
}  // namespace impl

}  // namespace c10
namespace at {
using namespace c10;

struct DefaultPtrTraits {};  // templates in PyTorch, which are only named
struct RestrictPtrTraits {};

template <class T, size_t dimensions, class Traits = DefaultPtrTraits, class I = int64_t>
struct TensorAccessor;
template <class T, size_t dimensions, class Traits = DefaultPtrTraits, class I = int64_t>
struct GenericPackedTensorAccessor;

#define __treadle_accessor(name) \
    template <class T, class Traits, class I> struct name<T, 1, Traits, I> { \
        T *data_; \
        I size0, stride0; \
        __device__ T *data() const { return data_; } \
        __device__ I size(int i) const { return size0; } \
        __device__ I stride(int i) const { return stride0; } \
        __device__ T &operator[](I i) const { return data_[i * stride0]; } \
    };
__treadle_accessor(TensorAccessor)
__treadle_accessor(GenericPackedTensorAccessor)
#undef __treadle_accessor
#define __treadle_accessor(name) \
    template <class T, class Traits, class I> struct name<T, 2, Traits, I> { \
        T *data_; \
        I size0, size1, stride0, stride1; \
        __device__ T *data() const { return data_; } \
        __device__ I size(int i) const { return i == 0 ? size0 : size1; } \
        __device__ I stride(int i) const { return i == 0 ? stride0 : stride1; } \
        __device__ TensorAccessor<T, 1, Traits, I> operator[](I i) const { \
            return TensorAccessor<T, 1, Traits, I>{data_ + i * stride0, size1, stride1}; \
        } \
    };
__treadle_accessor(TensorAccessor)
__treadle_accessor(GenericPackedTensorAccessor)
#undef __treadle_accessor
#define __treadle_accessor(name) \
    template <class T, class Traits, class I> struct name<T, 3, Traits, I> { \
        T *data_; \
        I size0, size1, size2, stride0, stride1, stride2; \
        __device__ T *data() const { return data_; } \
        __device__ I size(int i) const { return i == 0 ? size0 : i == 1 ? size1 : size2; } \
        __device__ I stride(int i) const { return i == 0 ? stride0 : i == 1 ? stride1 : stride2; } \
        __device__ TensorAccessor<T, 2, Traits, I> operator[](I i) const { \
            return TensorAccessor<T, 2, Traits, I>{data_ + i * stride0, size1, size2, stride1, stride2}; \
        } \
    };
__treadle_accessor(TensorAccessor)
__treadle_accessor(GenericPackedTensorAccessor)
#undef __treadle_accessor
#define __treadle_accessor(name) \
    template <class T, class Traits, class I> struct name<T, 4, Traits, I> { \
        T *data_; \
        I size0, size1, size2, size3, stride0, stride1, stride2, stride3; \
        __device__ T *data() const { return data_; } \
        __device__ I size(int i) const { return i == 0 ? size0 : i == 1 ? size1 : i == 2 ? size2 : size3; } \
        __device__ I stride(int i) const { return i == 0 ? stride0 : i == 1 ? stride1 : i == 2 ? stride2 : stride3; } \
        __device__ TensorAccessor<T, 3, Traits, I> operator[](I i) const { \
            return TensorAccessor<T, 3, Traits, I>{data_ + i * stride0, size1, size2, size3, stride1, stride2, stride3}; \
        } \
    };
__treadle_accessor(TensorAccessor)
__treadle_accessor(GenericPackedTensorAccessor)
#undef __treadle_accessor
#define __treadle_accessor(name) \
    template <class T, class Traits, class I> struct name<T, 5, Traits, I> { \
        T *data_; \
        I size0, size1, size2, size3, size4, stride0, stride1, stride2, stride3, stride4; \
        __device__ T *data() const { return data_; } \
        __device__ I size(int i) const { return i == 0 ? size0 : i == 1 ? size1 : i == 2 ? size2 : i == 3 ? size3 : size4; } \
        __device__ I stride(int i) const { return i == 0 ? stride0 : i == 1 ? stride1 : i == 2 ? stride2 : i == 3 ? stride3 : stride4; } \
        __device__ TensorAccessor<T, 4, Traits, I> operator[](I i) const { \
            return TensorAccessor<T, 4, Traits, I>{data_ + i * stride0, size1, size2, size3, size4, stride1, stride2, stride3, stride4}; \
        } \
    };
__treadle_accessor(TensorAccessor)
__treadle_accessor(GenericPackedTensorAccessor)
#undef __treadle_accessor
#define __treadle_accessor(name) \
    template <class T, class Traits, class I> struct name<T, 6, Traits, I> { \
        T *data_; \
        I size0, size1, size2, size3, size4, size5, stride0, stride1, stride2, stride3, stride4, stride5; \
        __device__ T *data() const { return data_; } \
        __device__ I size(int i) const { return i == 0 ? size0 : i == 1 ? size1 : i == 2 ? size2 : i == 3 ? size3 : i == 4 ? size4 : size5; } \
        __device__ I stride(int i) const { return i == 0 ? stride0 : i == 1 ? stride1 : i == 2 ? stride2 : i == 3 ? stride3 : i == 4 ? stride4 : stride5; } \
        __device__ TensorAccessor<T, 5, Traits, I> operator[](I i) const { \
            return TensorAccessor<T, 5, Traits, I>{data_ + i * stride0, size1, size2, size3, size4, size5, stride1, stride2, stride3, stride4, stride5}; \
        } \
    };
__treadle_accessor(TensorAccessor)
__treadle_accessor(GenericPackedTensorAccessor)
#undef __treadle_accessor
template <class T, size_t dimensions, class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, dimensions, Traits, int32_t>;
template <class T, size_t dimensions, class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, dimensions, Traits, int64_t>;
template <class T, size_t dimensions, class Traits = DefaultPtrTraits, class I = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, dimensions, Traits, I>;

template <class T, bool on_device> struct AccumulateType { typedef T type; };
template <> struct AccumulateType<__half, true> { typedef float type; };
template <> struct AccumulateType<__nv_bfloat16, true> { typedef float type; };
template <class T, bool on_device> using acc_type = typename AccumulateType<T, on_device>::type;
template <class T> using opmath_type = typename AccumulateType<T, true>::type;

template <class T> struct numeric_limits {
    C10_HOST_DEVICE static T lowest() { return std::numeric_limits<T>::lowest(); }
    C10_HOST_DEVICE static T max() { return std::numeric_limits<T>::max(); }
    C10_HOST_DEVICE static T lower_bound() {
        return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : lowest();
    }
    C10_HOST_DEVICE static T upper_bound() {
        return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : max();
    }
};
template <class T> C10_HOST_DEVICE constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }
template <class T> C10_HOST_DEVICE bool _isnan(T x) { return isnan((float)x); }
template <class T> C10_HOST_DEVICE bool _isinf(T x) { return isinf((float)x); }
namespace cuda {
template <class T> C10_HOST_DEVICE constexpr T ATenCeilDiv(T a, T b) { return (a + b - 1) / b; }
namespace detail {

#define MAX_TENSORINFO_DIMS 25
// An array with its sizes and the distances of its elements, of a number of dimensions that is known
// at the launch. A kernel that has one as a parameter is launched with the tensor.
template <class T, class I> struct TensorInfo {
    T *data;
    I sizes[MAX_TENSORINFO_DIMS];
    I strides[MAX_TENSORINFO_DIMS];
    int dims;
    C10_HOST_DEVICE bool isContiguous() const { return dims == 1 && strides[0] == 1; }
};
// Where an element lies, by its number; the fixed number of dimensions is -1 if it is not known, and
// -2 for one stretch of memory.
template <class T, class I, int fixed> struct IndexToOffset {
    C10_HOST_DEVICE static I get(I number, const TensorInfo<T, I> &info) {
        if constexpr (fixed == -2)
            return number;
        I offset = 0;
        for (int i = (fixed > 0 ? fixed : info.dims) - 1; i > 0; --i) {
            offset += number % info.sizes[i] * info.strides[i];
            number /= info.sizes[i];
        }
        return offset + number * info.strides[0];
    }
};
// A divisor and what divides by it; the quotient is a division's.
template <class I> struct DivMod {
    I div, mod;
    C10_HOST_DEVICE DivMod(I quotient, I rest) : div(quotient), mod(rest) {}
};
template <class I> struct IntDivider {
    I divisor;
    C10_HOST_DEVICE IntDivider() : divisor(1) {}
    C10_HOST_DEVICE IntDivider(I by) : divisor(by) {}
    C10_HOST_DEVICE I div(I n) const { return n / divisor; }
    C10_HOST_DEVICE I mod(I n) const { return n % divisor; }
    C10_HOST_DEVICE DivMod<I> divmod(I n) const { return DivMod<I>(n / divisor, n % divisor); }
};

}  // namespace detail
}  // namespace cuda

// A seed, and how many numbers of it have been taken: what a program draws its random numbers from.
struct PhiloxCudaState {
    uint64_t seed_, offset_;
    C10_HOST_DEVICE PhiloxCudaState() : seed_(0), offset_(0) {}
    C10_HOST_DEVICE PhiloxCudaState(uint64_t seed, uint64_t offset) : seed_(seed), offset_(offset) {}
};
namespace cuda {
namespace philox {
C10_DEVICE inline std::tuple<uint64_t, uint64_t> unpack(const PhiloxCudaState &state) {
    return std::tuple<uint64_t, uint64_t>(state.seed_, state.offset_);
}
}  // namespace philox
}  // namespace cuda

}  // namespace at
namespace torch {
using namespace at;
}

template <class T> __device__ void gpuAtomicAddNoReturn(T *to, T value) { atomicAdd(to, value); }
template <class T> __device__ T gpuAtomicAdd(T *to, T value) { return atomicAdd(to, value); }

#define __treadle_warp(name, function, type) \
    template <class T> \
    __device__ inline T name(T value, type by, int width = 32, unsigned int mask = 0xffffffffu) { \
        return function(mask, value, by, width); \
    }
__treadle_warp(WARP_SHFL, __shfl_sync, int)
__treadle_warp(WARP_SHFL_XOR, __shfl_xor_sync, int)
__treadle_warp(WARP_SHFL_UP, __shfl_up_sync, unsigned int)
__treadle_warp(WARP_SHFL_DOWN, __shfl_down_sync, unsigned int)
#undef __treadle_warp
__device__ inline unsigned int WARP_BALLOT(int holds, unsigned int mask = 0xffffffffu) { return __ballot_sync(mask, holds); }
__device__ inline unsigned int ACTIVE_MASK() { return __activemask(); }
__device__ inline void WARP_SYNC(unsigned int mask = 0xffffffffu) { __syncwarp(mask); }
