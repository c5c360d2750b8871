// Thrust's random engines of the linear congruential kind, and distributions over them.
#pragma once
#include <limits>
#include <type_traits>
namespace thrust {

template <class U, U factor, U addend, U modulus> struct linear_congruential_engine {
    typedef U result_type;
    static constexpr U multiplier = factor, increment = addend, min = addend == 0 ? 1 : 0, max = modulus - 1;
    static constexpr U default_seed = 1;
    U state;
    __host__ __device__ explicit linear_congruential_engine(U start = 1) { seed(start); }
    __host__ __device__ void seed(U start = 1) {
        state = start % modulus;
        if (addend % modulus == 0 && state == 0)
            state = 1;
    }
    __host__ __device__ static U step(U by, U from, U more) {
        return (U)(((unsigned long long)by * from + more) % modulus);
    }
    __host__ __device__ U operator()() {
        state = step(factor, state, addend);
        return state;
    }
    // As many calls, in as many steps as their number has bits.
    __host__ __device__ void discard(unsigned long long calls) {
        U by = factor, more = addend;
        for (; calls > 0; calls >>= 1) {
            if (calls & 1)
                state = step(by, state, more);
            more = step(by, more, more);
            by = step(by, by, 0);
        }
    }
};
typedef linear_congruential_engine<unsigned int, 16807u, 0u, 2147483647u> minstd_rand0;
typedef linear_congruential_engine<unsigned int, 48271u, 0u, 2147483647u> minstd_rand;
typedef minstd_rand default_random_engine;

// Numbers in [low, high).
template <class T = double> struct uniform_real_distribution {
    typedef T result_type;
    T low, high;
    __host__ __device__ explicit uniform_real_distribution(T a = 0, T b = 1) : low(a), high(b) {}
    __host__ __device__ void reset() {}
    __host__ __device__ T a() const { return low; }
    __host__ __device__ T b() const { return high; }
    template <class Engine> __host__ __device__ T operator()(Engine &engine) {
        T part = (T)(engine() - Engine::min) / ((T)1 + (T)(Engine::max - Engine::min));
        return part * (high - low) + low;
    }
};
// Numbers from low to high. They are of 32 bits of the engine, in integers.
template <class T = int> struct uniform_int_distribution {
    typedef T result_type;
    T low, high;
    __host__ __device__ explicit uniform_int_distribution(T a = 0, T b = std::numeric_limits<T>::max()) : low(a), high(b) {}
    __host__ __device__ void reset() {}
    __host__ __device__ T a() const { return low; }
    __host__ __device__ T b() const { return high; }
    template <class Engine> __host__ __device__ T operator()(Engine &engine) {
        unsigned long long count = (unsigned long long)(high - low) + 1, range = (unsigned long long)(Engine::max - Engine::min) + 1;
        return (T)(low + (T)((unsigned long long)(engine() - Engine::min) * count / range));
    }
};
template <class T = double> struct normal_distribution {
    typedef T result_type;
    T middle, width;
    __host__ __device__ explicit normal_distribution(T mean = 0, T stddev = 1) : middle(mean), width(stddev) {}
    __host__ __device__ void reset() {}
    __host__ __device__ T mean() const { return middle; }
    __host__ __device__ T stddev() const { return width; }
    template <class Engine> __host__ __device__ T operator()(Engine &engine) {
        T range = (T)1 + (T)(Engine::max - Engine::min);
        T part = ((T)(engine() - Engine::min) + (T)0.5) / range;
        T shifted = 2 * (part < (T)1 ? part : (T)1 - (T)0.5 / range) - 1;
        if constexpr (std::is_same_v<T, float>)
            return middle + width * 1.41421356f * erfinvf(shifted);
        else
            return middle + width * 1.4142135623730951 * erfinv(shifted);
    }
};
namespace random {
using thrust::default_random_engine;
using thrust::minstd_rand;
using thrust::minstd_rand0;
using thrust::normal_distribution;
using thrust::uniform_int_distribution;
using thrust::uniform_real_distribution;
}  // namespace random

}  // namespace thrust
