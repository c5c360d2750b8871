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
__device__ T __treadle_texel_or_border(T zero, const Texel *texels, int3 extent, int border, int x, int y, int z) {
    int at = (z * extent.y + y) * extent.x + x;
    if (!border)
        return __treadle_texel(zero, texels, at);
    T found = zero;
    if ((x | y | z) >= 0)
        found = __treadle_texel(zero, texels, at);
    return found;
}
template <class T, class Texel>
__device__ T __treadle_nearest(T zero, const Texel *texels, int3 extent, int dimensions, int ax, int ay, int az,
                               int normalized, float x, float y, float z) {
    int border = ax == cudaAddressModeBorder || ay == cudaAddressModeBorder || az == cudaAddressModeBorder;
    int i = __treadle_texel_at(floorf(__treadle_in_texels(x, extent.x, ax, normalized)), extent.x, ax), j = 0, k = 0;
    if (dimensions > 1)
        j = __treadle_texel_at(floorf(__treadle_in_texels(y, extent.y, ay, normalized)), extent.y, ay);
    if (dimensions > 2)
        k = __treadle_texel_at(floorf(__treadle_in_texels(z, extent.z, az, normalized)), extent.z, az);
    return __treadle_texel_or_border(zero, texels, extent, border, i, j, k);
}
// The mean of two texels in a row, and of two rows.
template <class T, class Texel>
__device__ T __treadle_in_row(T zero, const Texel *texels, int3 extent, int border, int i0, int i1, int j, int k,
                              float u) {
    return __treadle_mixed(__treadle_texel_or_border(zero, texels, extent, border, i0, j, k),
                           __treadle_texel_or_border(zero, texels, extent, border, i1, j, k), u);
}
template <class T, class Texel>
__device__ T __treadle_in_plane(T zero, const Texel *texels, int3 extent, int border, int i0, int i1, int j0, int j1,
                                int k, float u, float v) {
    return __treadle_mixed(__treadle_in_row(zero, texels, extent, border, i0, i1, j0, k, u),
                           __treadle_in_row(zero, texels, extent, border, i0, i1, j1, k, u), v);
}
template <class T, class Texel>
__device__ T __treadle_interpolated(T zero, const Texel *texels, int3 extent, int dimensions, int ax, int ay, int az,
                                    int normalized, float x, float y, float z) {
    int border = ax == cudaAddressModeBorder || ay == cudaAddressModeBorder || az == cudaAddressModeBorder;
    x = __treadle_in_texels(x, extent.x, ax, normalized) - 0.5f;
    float u = __treadle_fraction(x);
    int i0 = __treadle_texel_at(floorf(x), extent.x, ax), i1 = __treadle_texel_at(floorf(x) + 1.0f, extent.x, ax);
    if (dimensions == 1) {
        return __treadle_in_row(zero, texels, extent, border, i0, i1, 0, 0, u);
    } else {
        y = __treadle_in_texels(y, extent.y, ay, normalized) - 0.5f;
        float v = __treadle_fraction(y);
        int j0 = __treadle_texel_at(floorf(y), extent.y, ay), j1 = __treadle_texel_at(floorf(y) + 1.0f, extent.y, ay);
        if (dimensions == 2) {
            return __treadle_in_plane(zero, texels, extent, border, i0, i1, j0, j1, 0, u, v);
        } else {
            z = __treadle_in_texels(z, extent.z, az, normalized) - 0.5f;
            int k0 = __treadle_texel_at(floorf(z), extent.z, az);
            int k1 = __treadle_texel_at(floorf(z) + 1.0f, extent.z, az);
            return __treadle_mixed(__treadle_in_plane(zero, texels, extent, border, i0, i1, j0, j1, k0, u, v),
                                   __treadle_in_plane(zero, texels, extent, border, i0, i1, j0, j1, k1, u, v),
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

// A dimension, whether there are layers, the layer, and three coordinates.
template <class T>
__device__ T tex1D(cudaTextureObject_t texture, float x) {
    return __treadle_sample(T(), texture, 1, 0, 0, x, 0.0f, 0.0f);
}
template <class T>
__device__ T tex2D(cudaTextureObject_t texture, float x, float y) {
    return __treadle_sample(T(), texture, 2, 0, 0, x, y, 0.0f);
}
template <class T>
__device__ T tex3D(cudaTextureObject_t texture, float x, float y, float z) {
    return __treadle_sample(T(), texture, 3, 0, 0, x, y, z);
}
template <class T>
__device__ T tex1DLayered(cudaTextureObject_t texture, float x, int layer) {
    return __treadle_sample(T(), texture, 1, 1, layer, x, 0.0f, 0.0f);
}
template <class T>
__device__ T tex2DLayered(cudaTextureObject_t texture, float x, float y, int layer) {
    return __treadle_sample(T(), texture, 2, 1, layer, x, y, 0.0f);
}
template <class T>
__device__ T tex1Dfetch(cudaTextureObject_t texture, int at) {
    return __treadle_fetch(T(), texture, at);
}
// There are no smaller copies of an image, so each level is the image itself.
template <class T>
__device__ T tex1DLod(cudaTextureObject_t texture, float x, float level) {
    return tex1D<T>(texture, x);
}
template <class T>
__device__ T tex2DLod(cudaTextureObject_t texture, float x, float y, float level) {
    return tex2D<T>(texture, x, y);
}
template <class T>
__device__ T tex3DLod(cudaTextureObject_t texture, float x, float y, float z, float level) {
    return tex3D<T>(texture, x, y, z);
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
    cudaTextureType2DLayered = 0xF2
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
