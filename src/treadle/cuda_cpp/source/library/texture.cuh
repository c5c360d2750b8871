// Textures and surfaces: arrays that kernels read at coordinates, and write at positions. What a
// texture does with coordinates (its filter and address modes) is known when a kernel is compiled,
// so one of the branches on them is left.
#pragma once
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaTextureAddressMode {
    cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder
};
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };

// A coordinate in texels. The modes are those of the enum above.
__device__ inline float __treadle_in_texels(float x, int extent, int address, int normalized) {
    if (!normalized)
        return x;
    if (address == cudaAddressModeWrap)
        x -= floorf(x);
    if (address == cudaAddressModeMirror) {
        float whole = floorf(x), half = 0.5f * whole;
        x -= whole;
        if (half != floorf(half))
            x = 1.0f - x;
    }
    return x * extent;
}
// The texel at a whole coordinate; -1 outside the border. NaN is 0.
__device__ inline int __treadle_texel_at(float x, int extent, int address) {
    if (address == cudaAddressModeBorder) {
        x = fminf(fmaxf(x, -1.0f), (float)extent);
        return x == (float)extent ? -1 : (int)x;
    }
    if (address == cudaAddressModeWrap) {
        x = x < 0.0f ? x + extent : x;
        x = x >= extent ? x - extent : x;
    }
    return (int)fminf(fmaxf(x, 0.0f), (float)(extent - 1));
}
// A number of sRGB as the intensity of light.
__device__ inline float __treadle_light(float x) {
    return x <= 0.04045f ? x / 12.92f : powf((x + 0.055f) / 1.055f, 2.4f);
}
// CUDA's hardware keeps 8 bits of the fraction between two texels; it rounds the middle up (measured on an H200).
__device__ inline float __treadle_fraction(float x) {
    return floorf(256.0f * (x - floorf(x)) + 0.5f) * 0.00390625f;
}
__device__ inline float __treadle_mixed(float a, float b, float t) { return (1.0f - t) * a + t * b; }
__device__ inline float1 __treadle_mixed(float1 a, float1 b, float t) {
    return make_float1(__treadle_mixed(a.x, b.x, t));
}
__device__ inline float2 __treadle_mixed(float2 a, float2 b, float t) {
    return make_float2(__treadle_mixed(a.x, b.x, t), __treadle_mixed(a.y, b.y, t));
}
__device__ inline float4 __treadle_mixed(float4 a, float4 b, float t) {
    return make_float4(__treadle_mixed(a.x, b.x, t), __treadle_mixed(a.y, b.y, t),
                       __treadle_mixed(a.z, b.z, t), __treadle_mixed(a.w, b.w, t));
}
template <class T, class Texel>
__device__ T __treadle_texel_or_border(T zero, const Texel *texels, int3 pitch, int border, int x, int y, int z) {
    int at = (z * pitch.y + y) * pitch.x + x;
    if (!border)
        return __treadle_texel(zero, texels, at);
    T found = zero;
    if ((x | y | z) >= 0)
        found = __treadle_texel(zero, texels, at);
    return found;
}
template <class T, class Texel>
__device__ T __treadle_nearest(T zero, const Texel *texels, int3 pitch, int3 extent, int dimensions, int ax, int ay, int az,
                               int normalized, float x, float y, float z) {
    int border = ax == cudaAddressModeBorder || ay == cudaAddressModeBorder || az == cudaAddressModeBorder;
    int i = __treadle_texel_at(floorf(__treadle_in_texels(x, extent.x, ax, normalized)), extent.x, ax), j = 0, k = 0;
    if (dimensions > 1)
        j = __treadle_texel_at(floorf(__treadle_in_texels(y, extent.y, ay, normalized)), extent.y, ay);
    if (dimensions > 2)
        k = __treadle_texel_at(floorf(__treadle_in_texels(z, extent.z, az, normalized)), extent.z, az);
    return __treadle_texel_or_border(zero, texels, pitch, border, i, j, k);
}
// The mean of two texels in a row, and of two rows.
template <class T, class Texel>
__device__ T __treadle_in_row(T zero, const Texel *texels, int3 pitch, int border, int i0, int i1, int j, int k,
                              float u) {
    return __treadle_mixed(__treadle_texel_or_border(zero, texels, pitch, border, i0, j, k),
                           __treadle_texel_or_border(zero, texels, pitch, border, i1, j, k), u);
}
template <class T, class Texel>
__device__ T __treadle_in_plane(T zero, const Texel *texels, int3 pitch, int border, int i0, int i1, int j0, int j1,
                                int k, float u, float v) {
    return __treadle_mixed(__treadle_in_row(zero, texels, pitch, border, i0, i1, j0, k, u),
                           __treadle_in_row(zero, texels, pitch, border, i0, i1, j1, k, u), v);
}
template <class T, class Texel>
__device__ T __treadle_interpolated(T zero, const Texel *texels, int3 pitch, int3 extent, int dimensions, int ax, int ay, int az,
                                    int normalized, float x, float y, float z) {
    int border = ax == cudaAddressModeBorder || ay == cudaAddressModeBorder || az == cudaAddressModeBorder;
    x = __treadle_in_texels(x, extent.x, ax, normalized) - 0.5f;
    float u = __treadle_fraction(x);
    int i0 = __treadle_texel_at(floorf(x), extent.x, ax), i1 = __treadle_texel_at(floorf(x) + 1.0f, extent.x, ax);
    if (dimensions == 1) {
        return __treadle_in_row(zero, texels, pitch, border, i0, i1, 0, 0, u);
    } else {
        y = __treadle_in_texels(y, extent.y, ay, normalized) - 0.5f;
        float v = __treadle_fraction(y);
        int j0 = __treadle_texel_at(floorf(y), extent.y, ay), j1 = __treadle_texel_at(floorf(y) + 1.0f, extent.y, ay);
        if (dimensions == 2) {
            return __treadle_in_plane(zero, texels, pitch, border, i0, i1, j0, j1, 0, u, v);
        } else {
            z = __treadle_in_texels(z, extent.z, az, normalized) - 0.5f;
            int k0 = __treadle_texel_at(floorf(z), extent.z, az);
            int k1 = __treadle_texel_at(floorf(z) + 1.0f, extent.z, az);
            return __treadle_mixed(__treadle_in_plane(zero, texels, pitch, border, i0, i1, j0, j1, k0, u, v),
                                   __treadle_in_plane(zero, texels, pitch, border, i0, i1, j0, j1, k1, u, v),
                                   __treadle_fraction(z));
        }
    }
}
template <class T, class Texel>
__device__ T __treadle_fetched(T zero, const Texel *texels, int count, int at) {
    T found = zero;
    if ((unsigned)at < (unsigned)count)
        found = __treadle_texel(zero, texels, at);
    return found;
}

// The level of a texture's smaller copies.
__device__ inline int3 __treadle_smaller(int3 pitch, int dimensions, int level) {
    int3 found = make_int3(max(pitch.x >> level, 1), pitch.y, pitch.z);
    if (dimensions > 1)
        found.y = max(pitch.y >> level, 1);
    if (dimensions > 2)
        found.z = max(pitch.z >> level, 1);
    return found;
}
__device__ inline float __treadle_level_in(float level, int levels) {
    return fminf(fmaxf(level, 0.0f), (float)(levels - 1));
}
// Of the level that a change of coordinates gives, from one pixel to the next along two axes.
__device__ inline float __treadle_level_of(int3 extent, int dimensions, int normalized, float3 one, float3 other) {
    float3 size = make_float3(1.0f, 1.0f, 1.0f);
    if (normalized)
        size = make_float3((float)extent.x, (float)extent.y, (float)extent.z);
    float a = one.x * size.x, b = other.x * size.x;
    float first = a * a, second = b * b;
    if (dimensions > 1) {
        a = one.y * size.y, b = other.y * size.y;
        first += a * a, second += b * b;
    }
    if (dimensions > 2) {
        a = one.z * size.z, b = other.z * size.z;
        first += a * a, second += b * b;
    }
    return 0.5f * log2f(fmaxf(fmaxf(first, second), 1e-30f));
}
#define __treadle_with_levels(name, sampled) \
    template <class T, class Texel> \
    __device__ T name##_at(T zero, const Texel *texels, int3 pitch, int step, int levels, float level, int dimensions, \
                           int ax, int ay, int az, int normalized, float x, float y, float z) { \
        int at = (int)floorf(__treadle_level_in(level, levels) + 0.5f); \
        return sampled(zero, texels + at * step, pitch, __treadle_smaller(pitch, dimensions, at), dimensions, ax, ay, \
                       az, normalized, x, y, z); \
    } \
    template <class T, class Texel> \
    __device__ T name##_between(T zero, const Texel *texels, int3 pitch, int step, int levels, float level, \
                                int dimensions, int ax, int ay, int az, int normalized, float x, float y, float z) { \
        level = __treadle_level_in(level, levels); \
        int at = (int)floorf(level), next = min(at + 1, levels - 1); \
        return __treadle_mixed(sampled(zero, texels + at * step, pitch, __treadle_smaller(pitch, dimensions, at), \
                                       dimensions, ax, ay, az, normalized, x, y, z), \
                               sampled(zero, texels + next * step, pitch, __treadle_smaller(pitch, dimensions, next), \
                                       dimensions, ax, ay, az, normalized, x, y, z), \
                               __treadle_fraction(level)); \
    }
__treadle_with_levels(__treadle_point, __treadle_nearest)
__treadle_with_levels(__treadle_linear, __treadle_interpolated)

// The numbers of the four texels that a bilinear filter mixes, from the lower left one on, against the clock.
template <class T, class Texel, class Wanted>
__device__ T __treadle_gathered(T found, Wanted zero, const Texel *texels, int3 extent, int component, int ax, int ay,
                                int normalized, float x, float y) {
    int border = ax == cudaAddressModeBorder || ay == cudaAddressModeBorder;
    x = floorf(256.0f * (__treadle_in_texels(x, extent.x, ax, normalized) - 0.5f) + 0.5f) * 0.00390625f;
    y = floorf(256.0f * (__treadle_in_texels(y, extent.y, ay, normalized) - 0.5f) + 0.5f) * 0.00390625f;
    int i0 = __treadle_texel_at(floorf(x), extent.x, ax), i1 = __treadle_texel_at(floorf(x) + 1.0f, extent.x, ax);
    int j0 = __treadle_texel_at(floorf(y), extent.y, ay), j1 = __treadle_texel_at(floorf(y) + 1.0f, extent.y, ay);
    found.x = __treadle_component(__treadle_texel_or_border(zero, texels, extent, border, i0, j1, 0), component);
    found.y = __treadle_component(__treadle_texel_or_border(zero, texels, extent, border, i1, j1, 0), component);
    found.z = __treadle_component(__treadle_texel_or_border(zero, texels, extent, border, i1, j0, 0), component);
    found.w = __treadle_component(__treadle_texel_or_border(zero, texels, extent, border, i0, j0, 0), component);
    return found;
}

// The face of a cube in a direction, and where on it, from 0 to 1. At edges z comes before y, and y before x, as in
// the hardware (measured on an H200).
__device__ inline float3 __treadle_on_cube(float x, float y, float z) {
    float a = fabsf(x), b = fabsf(y), c = fabsf(z);
    float face, s, t, m;
    if (c >= a && c >= b)
        face = z < 0.0f ? 5.0f : 4.0f, m = c, s = z < 0.0f ? -x : x, t = -y;
    else if (b >= a)
        face = y < 0.0f ? 3.0f : 2.0f, m = b, s = x, t = y < 0.0f ? -z : z;
    else
        face = x < 0.0f ? 1.0f : 0.0f, m = a, s = x < 0.0f ? z : -z, t = -y;
    return make_float3(face, (s / m + 1.0f) * 0.5f, (t / m + 1.0f) * 0.5f);
}

// A texel of a face of a cube; beyond an edge that of the next face.
template <class T, class Texel>
__device__ T __treadle_texel_on_cube(T zero, const Texel *texels, int n, int face, int i, int j) {
    if (i < 0 || i >= n || j < 0 || j >= n) {
        float s = (2.0f * i + 1.0f) / n - 1.0f, t = (2.0f * j + 1.0f) / n - 1.0f, m = face % 2 == 0 ? 1.0f : -1.0f;
        float x = m, y = -t, z = -s * m;
        if (face / 2 == 1)
            x = s, y = m, z = t * m;
        if (face / 2 == 2)
            x = s * m, z = m;
        float3 at = __treadle_on_cube(x, y, z);
        face = (int)at.x;
        i = min((int)(at.y * n), n - 1);
        j = min((int)(at.z * n), n - 1);
    }
    return __treadle_texel(zero, texels, (face * n + j) * n + i);
}
// Interpolated across edges; where three faces meet, the fourth texel is the mean of the others.
template <class T, class Texel>
__device__ T __treadle_seamless(T zero, const Texel *texels, int n, int face, float x, float y) {
    x = x * n - 0.5f;
    y = y * n - 0.5f;
    int i = (int)floorf(x), j = (int)floorf(y);
    int column = i < 0 ? 0 : i + 1 >= n ? 1 : -1, row = j < 0 ? 0 : j + 1 >= n ? 1 : -1;
    int corner = column < 0 || row < 0 ? -1 : 2 * row + column;
    // The texel of the corner does not exist; until it is replaced, it is the one on its own face.
    T a = __treadle_texel_on_cube(zero, texels, n, face, corner == 0 ? i + 1 : i, corner == 0 ? j + 1 : j);
    T b = __treadle_texel_on_cube(zero, texels, n, face, corner == 1 ? i : i + 1, corner == 1 ? j + 1 : j);
    T c = __treadle_texel_on_cube(zero, texels, n, face, corner == 2 ? i + 1 : i, corner == 2 ? j : j + 1);
    T d = __treadle_texel_on_cube(zero, texels, n, face, corner == 3 ? i : i + 1, corner == 3 ? j : j + 1);
    if (corner >= 0) {
        T mean = __treadle_mixed(__treadle_mixed(corner < 2 ? c : a, corner < 2 ? d : b, 0.5f),
                               corner % 2 == 0 ? (corner < 2 ? b : d) : (corner < 2 ? a : c), 0.33333334f);
        if (corner == 0)
            a = mean;
        if (corner == 1)
            b = mean;
        if (corner == 2)
            c = mean;
        if (corner == 3)
            d = mean;
    }
    return __treadle_mixed(__treadle_mixed(a, b, __treadle_fraction(x)), __treadle_mixed(c, d, __treadle_fraction(x)),
                           __treadle_fraction(y));
}

// The dimensions; whether there are layers, or 2 for the faces of cubes; the layer, the level, and three coordinates.
template <class T>
__device__ T tex1D(cudaTextureObject_t texture, float x) {
    return __treadle_sample(T(), texture, 1, 0, 0, 0.0f, x, 0.0f, 0.0f);
}
template <class T>
__device__ T tex1DLod(cudaTextureObject_t texture, float x, float level) {
    return __treadle_sample(T(), texture, 1, 0, 0, level, x, 0.0f, 0.0f);
}
template <class T>
__device__ T tex1DGrad(cudaTextureObject_t texture, float x, float dx, float dy) {
    return __treadle_sample_changing(T(), texture, 1, 0, 0, make_float3(dx, 0.0f, 0.0f), make_float3(dy, 0.0f, 0.0f), x, 0.0f, 0.0f);
}
template <class T>
__device__ T tex1DLayered(cudaTextureObject_t texture, float x, int layer) {
    return __treadle_sample(T(), texture, 1, 1, layer, 0.0f, x, 0.0f, 0.0f);
}
template <class T>
__device__ T tex1DLayeredLod(cudaTextureObject_t texture, float x, int layer, float level) {
    return __treadle_sample(T(), texture, 1, 1, layer, level, x, 0.0f, 0.0f);
}
template <class T>
__device__ T tex1DLayeredGrad(cudaTextureObject_t texture, float x, int layer, float dx, float dy) {
    return __treadle_sample_changing(T(), texture, 1, 1, layer, make_float3(dx, 0.0f, 0.0f), make_float3(dy, 0.0f, 0.0f), x, 0.0f, 0.0f);
}
template <class T>
__device__ T tex2D(cudaTextureObject_t texture, float x, float y) {
    return __treadle_sample(T(), texture, 2, 0, 0, 0.0f, x, y, 0.0f);
}
template <class T>
__device__ T tex2DLod(cudaTextureObject_t texture, float x, float y, float level) {
    return __treadle_sample(T(), texture, 2, 0, 0, level, x, y, 0.0f);
}
template <class T>
__device__ T tex2DGrad(cudaTextureObject_t texture, float x, float y, float2 dx, float2 dy) {
    return __treadle_sample_changing(T(), texture, 2, 0, 0, make_float3(dx.x, dx.y, 0.0f), make_float3(dy.x, dy.y, 0.0f), x, y, 0.0f);
}
template <class T>
__device__ T tex2DLayered(cudaTextureObject_t texture, float x, float y, int layer) {
    return __treadle_sample(T(), texture, 2, 1, layer, 0.0f, x, y, 0.0f);
}
template <class T>
__device__ T tex2DLayeredLod(cudaTextureObject_t texture, float x, float y, int layer, float level) {
    return __treadle_sample(T(), texture, 2, 1, layer, level, x, y, 0.0f);
}
template <class T>
__device__ T tex2DLayeredGrad(cudaTextureObject_t texture, float x, float y, int layer, float2 dx, float2 dy) {
    return __treadle_sample_changing(T(), texture, 2, 1, layer, make_float3(dx.x, dx.y, 0.0f), make_float3(dy.x, dy.y, 0.0f), x, y, 0.0f);
}
template <class T>
__device__ T tex3D(cudaTextureObject_t texture, float x, float y, float z) {
    return __treadle_sample(T(), texture, 3, 0, 0, 0.0f, x, y, z);
}
template <class T>
__device__ T tex3DLod(cudaTextureObject_t texture, float x, float y, float z, float level) {
    return __treadle_sample(T(), texture, 3, 0, 0, level, x, y, z);
}
template <class T>
__device__ T tex3DGrad(cudaTextureObject_t texture, float x, float y, float z, float4 dx, float4 dy) {
    return __treadle_sample_changing(T(), texture, 3, 0, 0, make_float3(dx.x, dx.y, dx.z), make_float3(dy.x, dy.y, dy.z), x, y, z);
}
template <class T>
__device__ T texCubemap(cudaTextureObject_t texture, float x, float y, float z) {
    float3 at = __treadle_on_cube(x, y, z);
    return __treadle_sample(T(), texture, 2, 2, (int)at.x, 0.0f, at.y, at.z, 0.0f);
}
template <class T>
__device__ T texCubemapLod(cudaTextureObject_t texture, float x, float y, float z, float level) {
    float3 at = __treadle_on_cube(x, y, z);
    return __treadle_sample(T(), texture, 2, 2, (int)at.x, level, at.y, at.z, 0.0f);
}
template <class T>
__device__ T texCubemapLayered(cudaTextureObject_t texture, float x, float y, float z, int layer) {
    float3 at = __treadle_on_cube(x, y, z);
    return __treadle_sample(T(), texture, 2, 2, 6 * max(layer, 0) + (int)at.x, 0.0f, at.y, at.z, 0.0f);
}
template <class T>
__device__ T texCubemapLayeredLod(cudaTextureObject_t texture, float x, float y, float z, int layer, float level) {
    float3 at = __treadle_on_cube(x, y, z);
    return __treadle_sample(T(), texture, 2, 2, 6 * max(layer, 0) + (int)at.x, level, at.y, at.z, 0.0f);
}
template <class T>
__device__ T tex2Dgather(cudaTextureObject_t texture, float x, float y, int component = 0) {
    return __treadle_gather(T(), texture, component, x, y);
}
template <class T>
__device__ T tex1Dfetch(cudaTextureObject_t texture, int at) {
    return __treadle_fetch(T(), texture, at);
}
// The result through a pointer, as before CUDA 5.
template <class T>
__device__ void tex1D(T *result, cudaTextureObject_t texture, float x) {
    *result = tex1D<T>(texture, x);
}
template <class T>
__device__ void tex2D(T *result, cudaTextureObject_t texture, float x, float y) {
    *result = tex2D<T>(texture, x, y);
}
template <class T>
__device__ void tex3D(T *result, cudaTextureObject_t texture, float x, float y, float z) {
    *result = tex3D<T>(texture, x, y, z);
}
template <class T>
__device__ void tex1Dfetch(T *result, cudaTextureObject_t texture, int at) {
    *result = tex1Dfetch<T>(texture, at);
}

// --- texture references ---

// Integers are read as floats with the mode cudaReadModeNormalizedFloat.
template <class T, int Mode> struct __treadle_read { typedef T type; };
#define __treadle_reads(integer, number) \
    template <> struct __treadle_read<integer, cudaReadModeNormalizedFloat> { typedef number type; };
__treadle_reads(char, float) __treadle_reads(signed char, float) __treadle_reads(unsigned char, float)
__treadle_reads(short, float) __treadle_reads(unsigned short, float)
__treadle_reads(char1, float1) __treadle_reads(uchar1, float1) __treadle_reads(short1, float1)
__treadle_reads(ushort1, float1) __treadle_reads(char2, float2) __treadle_reads(uchar2, float2)
__treadle_reads(short2, float2) __treadle_reads(ushort2, float2) __treadle_reads(char4, float4)
__treadle_reads(uchar4, float4) __treadle_reads(short4, float4) __treadle_reads(ushort4, float4)

enum __treadle_texture_type {
    cudaTextureType1D = 1, cudaTextureType2D = 2, cudaTextureType3D = 3, cudaTextureType1DLayered = 0xF1,
    cudaTextureType2DLayered = 0xF2, cudaTextureTypeCubemap = 0x0C, cudaTextureTypeCubemapLayered = 0xFC
};
template <class T, int Type = cudaTextureType1D, int Mode = cudaReadModeElementType>
struct texture {
    cudaTextureObject_t object;
};
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type tex1Dfetch(texture<T, Type, Mode> reference, int at) {
    return tex1Dfetch<typename __treadle_read<T, Mode>::type>(reference.object, at);
}
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type tex1D(texture<T, Type, Mode> reference, float x) {
    return tex1D<typename __treadle_read<T, Mode>::type>(reference.object, x);
}
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type tex2D(texture<T, Type, Mode> reference, float x, float y) {
    return tex2D<typename __treadle_read<T, Mode>::type>(reference.object, x, y);
}
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type tex3D(texture<T, Type, Mode> reference, float x, float y, float z) {
    return tex3D<typename __treadle_read<T, Mode>::type>(reference.object, x, y, z);
}
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type tex1DLayered(texture<T, Type, Mode> reference, float x, int layer) {
    return tex1DLayered<typename __treadle_read<T, Mode>::type>(reference.object, x, layer);
}
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type tex2DLayered(texture<T, Type, Mode> reference, float x, float y,
                                                               int layer) {
    return tex2DLayered<typename __treadle_read<T, Mode>::type>(reference.object, x, y, layer);
}

template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type tex1DLod(texture<T, Type, Mode> reference, float x, float level) {
    return tex1DLod<typename __treadle_read<T, Mode>::type>(reference.object, x, level);
}
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type tex2DLod(texture<T, Type, Mode> reference, float x, float y, float level) {
    return tex2DLod<typename __treadle_read<T, Mode>::type>(reference.object, x, y, level);
}
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type tex3DLod(texture<T, Type, Mode> reference, float x, float y, float z, float level) {
    return tex3DLod<typename __treadle_read<T, Mode>::type>(reference.object, x, y, z, level);
}
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type texCubemap(texture<T, Type, Mode> reference, float x, float y, float z) {
    return texCubemap<typename __treadle_read<T, Mode>::type>(reference.object, x, y, z);
}
template <class T, int Type, int Mode>
__device__ typename __treadle_read<T, Mode>::type texCubemapLayered(texture<T, Type, Mode> reference, float x, float y, float z, int layer) {
    return texCubemapLayered<typename __treadle_read<T, Mode>::type>(reference.object, x, y, z, layer);
}
template <class T> struct __treadle_four { typedef T type; };
#define __treadle_fours(number) \
    template <> struct __treadle_four<number> { typedef number##4 type; }; \
    template <> struct __treadle_four<number##1> { typedef number##4 type; }; \
    template <> struct __treadle_four<number##2> { typedef number##4 type; };
__treadle_fours(float) __treadle_fours(int) __treadle_fours(char) __treadle_fours(short)
template <> struct __treadle_four<unsigned int> { typedef uint4 type; };
template <> struct __treadle_four<unsigned char> { typedef uchar4 type; };
template <> struct __treadle_four<unsigned short> { typedef ushort4 type; };
template <> struct __treadle_four<uint2> { typedef uint4 type; };
template <> struct __treadle_four<uchar2> { typedef uchar4 type; };
template <> struct __treadle_four<ushort2> { typedef ushort4 type; };
template <class T, int Type, int Mode>
__device__ typename __treadle_four<typename __treadle_read<T, Mode>::type>::type tex2Dgather(
    texture<T, Type, Mode> reference, float x, float y, int component = 0) {
    return tex2Dgather<typename __treadle_four<typename __treadle_read<T, Mode>::type>::type>(reference.object, x, y,
                                                                                            component);
}

// --- surfaces: the first coordinate is in bytes ---

__device__ inline int __treadle_surface_index(int3 extent, int mode, int x, int y, int z) {
    if (mode == cudaBoundaryModeClamp) {
        x = max(min(x, extent.x - 1), 0);
        y = max(min(y, extent.y - 1), 0);
        z = max(min(z, extent.z - 1), 0);
    }
    bool inside = x >= 0 && x < extent.x && y >= 0 && y < extent.y && z >= 0 && z < extent.z;
    return inside ? (z * extent.y + y) * extent.x + x : -1;
}
template <class T, class Texel>
__device__ T __treadle_surface_read_from(T zero, const Texel *texels, int3 extent, int mode, int x, int y, int z) {
    int at = __treadle_surface_index(extent, mode, x, y, z);
    T found = zero;
    if (at >= 0)
        found = texels[at];
    return found;
}
template <class T, class Texel>
__device__ T __treadle_surface_written_to(T value, Texel *texels, int3 extent, int mode, int x, int y, int z) {
    int at = __treadle_surface_index(extent, mode, x, y, z);
    if (at >= 0)
        texels[at] = value;
    return value;
}
template <class T>
__device__ T surf1Dread(cudaSurfaceObject_t surface, int x, int mode = cudaBoundaryModeTrap) {
    return __treadle_surface_read(T(), surface, 1, mode, x, 0, 0);
}
template <class T>
__device__ T surf2Dread(cudaSurfaceObject_t surface, int x, int y, int mode = cudaBoundaryModeTrap) {
    return __treadle_surface_read(T(), surface, 2, mode, x, y, 0);
}
template <class T>
__device__ T surf3Dread(cudaSurfaceObject_t surface, int x, int y, int z, int mode = cudaBoundaryModeTrap) {
    return __treadle_surface_read(T(), surface, 3, mode, x, y, z);
}
template <class T>
__device__ T surf2DLayeredread(cudaSurfaceObject_t surface, int x, int y, int layer, int mode = cudaBoundaryModeTrap) {
    return __treadle_surface_read(T(), surface, 3, mode, x, y, layer);
}
template <class T>
__device__ void surf1Dread(T *result, cudaSurfaceObject_t surface, int x, int mode = cudaBoundaryModeTrap) {
    *result = surf1Dread<T>(surface, x, mode);
}
template <class T>
__device__ void surf2Dread(T *result, cudaSurfaceObject_t surface, int x, int y, int mode = cudaBoundaryModeTrap) {
    *result = surf2Dread<T>(surface, x, y, mode);
}
template <class T>
__device__ void surf3Dread(T *result, cudaSurfaceObject_t surface, int x, int y, int z,
                           int mode = cudaBoundaryModeTrap) {
    *result = surf3Dread<T>(surface, x, y, z, mode);
}
template <class T>
__device__ void surf1Dwrite(T value, cudaSurfaceObject_t surface, int x, int mode = cudaBoundaryModeTrap) {
    __treadle_surface_write(value, surface, 1, mode, x, 0, 0);
}
template <class T>
__device__ void surf2Dwrite(T value, cudaSurfaceObject_t surface, int x, int y, int mode = cudaBoundaryModeTrap) {
    __treadle_surface_write(value, surface, 2, mode, x, y, 0);
}
template <class T>
__device__ void surf3Dwrite(T value, cudaSurfaceObject_t surface, int x, int y, int z,
                            int mode = cudaBoundaryModeTrap) {
    __treadle_surface_write(value, surface, 3, mode, x, y, z);
}
template <class T>
__device__ void surf2DLayeredwrite(T value, cudaSurfaceObject_t surface, int x, int y, int layer,
                                   int mode = cudaBoundaryModeTrap) {
    __treadle_surface_write(value, surface, 3, mode, x, y, layer);
}
// One-dimensional surfaces with layers, and the faces of cubes.
template <class T>
__device__ T surf1DLayeredread(cudaSurfaceObject_t surface, int x, int layer, int mode = cudaBoundaryModeTrap) {
    return __treadle_surface_read(T(), surface, 2, mode, x, layer, 0);
}
template <class T>
__device__ void surf1DLayeredwrite(T value, cudaSurfaceObject_t surface, int x, int layer,
                                   int mode = cudaBoundaryModeTrap) {
    __treadle_surface_write(value, surface, 2, mode, x, layer, 0);
}
template <class T>
__device__ T surfCubemapread(cudaSurfaceObject_t surface, int x, int y, int face, int mode = cudaBoundaryModeTrap) {
    return __treadle_surface_read(T(), surface, 3, mode, x, y, face);
}
template <class T>
__device__ void surfCubemapwrite(T value, cudaSurfaceObject_t surface, int x, int y, int face,
                                 int mode = cudaBoundaryModeTrap) {
    __treadle_surface_write(value, surface, 3, mode, x, y, face);
}
template <class T>
__device__ T surfCubemapLayeredread(cudaSurfaceObject_t surface, int x, int y, int face,
                                    int mode = cudaBoundaryModeTrap) {
    return __treadle_surface_read(T(), surface, 3, mode, x, y, face);
}
template <class T>
__device__ void surfCubemapLayeredwrite(T value, cudaSurfaceObject_t surface, int x, int y, int face,
                                        int mode = cudaBoundaryModeTrap) {
    __treadle_surface_write(value, surface, 3, mode, x, y, face);
}
