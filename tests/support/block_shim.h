// Runs the threads of a block on one CPU thread: each is a fiber that goes on until it waits.
// Threads that wait at barriers or for values of their warp take turns until all are there.
// What C++ leaves undefined traps (see cpp_kernels.py), and is reported instead of computed.
#pragma once
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

namespace shim {

struct index3 {
    unsigned x, y, z;
};

struct fiber {
    ucontext_t context;
    std::vector<char> stack;
    index3 index;
    unsigned number;
    bool done = false;
    bool in_warp = false;  // waits for its warp, not for its block
    uint64_t offered = 0;  // what the other lanes may read
};

struct state {
    ucontext_t main;
    std::vector<fiber> fibers;
    fiber* current = nullptr;
    std::function<void()> body;
    index3 block, blocks, extent;  // block_idx, grid_dim, block_dim
    sigjmp_buf trapped;
};

inline state& now() {
    static state value;
    return value;
}

inline void wait(bool in_warp) {
    fiber* self = now().current;
    self->in_warp = in_warp;
    swapcontext(&self->context, &now().main);
}

inline void enter() {
    now().body();
    now().current->done = true;
    swapcontext(&now().current->context, &now().main);
}

inline void on_trap(int) { siglongjmp(now().trapped, 1); }

inline void resume(fiber& one) {
    now().current = &one;
    swapcontext(&now().main, &one.context);
}

// Lets every thread of a warp that waits for its warp go on when no thread of it is running, and
// the threads that wait for the block when nobody else can go on.
inline void run_block(index3 block) {
    state& all = now();
    unsigned count = all.extent.x * all.extent.y * all.extent.z;
    all.block = block;
    all.fibers.resize(count);
    for (unsigned i = 0; i < count; i++) {
        fiber& one = all.fibers[i];
        one.index = {i % all.extent.x, i / all.extent.x % all.extent.y,
                      i / (all.extent.x * all.extent.y)};
        one.number = i;
        one.done = one.in_warp = false;
        one.stack.resize(1 << 16);
        getcontext(&one.context);
        one.context.uc_stack.ss_sp = one.stack.data();
        one.context.uc_stack.ss_size = one.stack.size();
        one.context.uc_link = nullptr;
        makecontext(&one.context, enter, 0);
    }
    for (fiber& one : all.fibers) {
        resume(one);
    }
    for (;;) {
        bool moved = false, waiting = false;
        for (unsigned start = 0; start < count; start += 32) {
            std::vector<fiber*> ready;
            for (unsigned i = start; i < count && i < start + 32; i++) {
                fiber& one = all.fibers[i];
                waiting = waiting || !one.done;
                if (!one.done && one.in_warp) {
                    ready.push_back(&one);
                }
            }
            for (fiber* one : ready) {
                resume(*one);
                moved = true;
            }
        }
        if (!waiting) {
            return;
        }
        if (!moved) {
            for (fiber& one : all.fibers) {
                if (!one.done) {
                    resume(one);
                }
            }
        }
    }
}

// 0 if all went well, 1 if something undefined happened.
inline int launch(const unsigned* grid, const unsigned* block, std::function<void()> body) {
    state& all = now();
    all.body = std::move(body);
    all.blocks = {grid[0], grid[1], grid[2]};
    all.extent = {block[0], block[1], block[2]};
    struct sigaction action = {}, before;
    action.sa_handler = on_trap;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGILL, &action, &before);
    int failed = sigsetjmp(all.trapped, 1);
    if (!failed) {
        for (unsigned z = 0; z < grid[2]; z++) {
            for (unsigned y = 0; y < grid[1]; y++) {
                for (unsigned x = 0; x < grid[0]; x++) {
                    run_block({x, y, z});
                }
            }
        }
    }
    sigaction(SIGILL, &before, nullptr);
    all.fibers.clear();
    return failed;
}

// --- what threads of a warp exchange -------------------------------------------------------------

inline unsigned warp_start() { return now().current->number / 32 * 32; }

inline bool has_lane(unsigned lane) { return warp_start() + lane < now().fibers.size(); }

// Offers a value to the warp and reads the one that `lane` offers (rubbish where there is none).
template <class T> T exchange(T value, unsigned lane) {
    fiber* self = now().current;
    std::memcpy(&self->offered, &value, sizeof(T));
    wait(true);
    uint64_t bits = has_lane(lane) ? now().fibers[warp_start() + lane].offered : 0xa5a5a5a5a5a5a5a5;
    wait(true);  // so that nobody offers the next value before all have read this one
    T result;
    std::memcpy(&result, &bits, sizeof(T));
    return result;
}

// The lanes whose threads say yes, as bits.
inline unsigned ballot(bool yes) {
    fiber* self = now().current;
    self->offered = yes;
    wait(true);
    unsigned bits = 0;
    for (unsigned lane = 0; lane < 32 && has_lane(lane); lane++) {
        bits |= (now().fibers[warp_start() + lane].offered != 0 ? 1u : 0u) << lane;
    }
    wait(true);
    return bits;
}

inline unsigned full_warp() {
    unsigned rest = now().fibers.size() - warp_start();
    return rest >= 32 ? 0xffffffffu : (1u << rest) - 1;
}

// --- numbers -------------------------------------------------------------------------------------

template <class To, class From> To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From), "bits of another size");
    To result;
    std::memcpy(&result, &value, sizeof(To));
    return result;
}

inline float half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, rest = bits & 1023;
    if (exponent == 31) {
        return bits_as<float>(sign | 0x7f800000 | rest << 13);
    }
    float size = exponent ? std::ldexp((float)(rest | 1024), (int)exponent - 25)
                          : std::ldexp((float)rest, -24);
    return sign ? -size : size;
}

inline uint16_t float_to_half(float value) {
    uint32_t bits = bits_as<uint32_t>(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) {
        return sign | 0x7fff;  // as the hardware does: another NaN than most
    }
    if (size >= 0x477ff000) {
        return sign | 0x7c00;
    }
    if (size < 0x38800000) {
        return sign | (uint16_t)std::nearbyint(bits_as<float>(size) * 16777216.0f);
    }
    return sign | (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13;
}

template <class To, class From> To saturated(From value) {
    const long double low = sizeof(To) == 4 ? (To)-1 < 0 ? -2147483648.0L : 0.0L
                                            : (To)-1 < 0 ? -9223372036854775808.0L : 0.0L;
    const long double high = sizeof(To) == 4 ? (To)-1 < 0 ? 2147483647.0L : 4294967295.0L
                             : (To)-1 < 0    ? 9223372036854775807.0L
                                             : 18446744073709551615.0L;
    if (value != value) {
        return 0;
    }
    return value <= low ? (To)low : value >= high ? (To)high : (To)value;
}

// The zeros are ordered, as on the GPU.
template <class T> T lesser(T a, T b) {
    if (a != a || b != b) {
        return a != a ? b : a;
    }
    return a < b || (a == b && std::signbit(a)) ? a : b;
}

template <class T> T greater(T a, T b) {
    if (a != a || b != b) {
        return a != a ? b : a;
    }
    return a > b || (a == b && std::signbit(b)) ? a : b;
}

}  // namespace shim
