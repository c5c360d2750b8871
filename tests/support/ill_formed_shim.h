// What CUDA declares, for checking programs with a compiler of C++: nothing is run.
#pragma once
#define __global__
#define __device__
#define __host__
#define __constant__ const
#define __shared__ static
struct uint3 { unsigned x, y, z; };
struct float2 { float x, y; };
struct float3 { float x, y, z; };
struct float4 { float x, y, z, w; };
struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
float2 make_float2(float x, float y);
float3 make_float3(float x, float y, float z);
float4 make_float4(float x, float y, float z, float w);
int2 make_int2(int x, int y);
int4 make_int4(int x, int y, int z, int w);
extern const uint3 threadIdx, blockIdx, blockDim, gridDim;
void __syncthreads();
int atomicAdd(int *p, int v);
unsigned atomicAdd(unsigned *p, unsigned v);
float atomicAdd(float *p, float v);
float sqrtf(float x);
float fmaf(float x, float y, float z);
float max(float a, float b);
int max(int a, int b);
float min(float a, float b);
int min(int a, int b);
