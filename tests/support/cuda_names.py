"""The names of the functions in CUDA's mathematics: those of its documentation and its headers."""

from __future__ import annotations

_UNARY = """
acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 erf erfc
erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs floor ilogb j0 j1 lgamma llrint llround log log10
log1p log2 logb lrint lround nearbyint normcdf normcdfinv rcbrt rint round rsqrt sin sinh sinpi sqrt
tan tanh tgamma trunc y0 y1
"""
_OTHER = """
atan2 copysign fdim fma fmax fmin fmod frexp hypot jn ldexp modf nan nextafter norm norm3d norm4d
pow remainder remquo rhypot rnorm rnorm3d rnorm4d scalbln scalbn sincos sincospi yn
"""
_BOTH = (_UNARY + _OTHER).split()
_TESTS = "isfinite isinf isnan signbit"
_SINGLE_ONLY = "fdividef"

_INTRINSICS = """
__cosf __exp10f __expf __fadd_rd __fadd_rn __fadd_ru __fadd_rz __fdiv_rd __fdiv_rn __fdiv_ru
__fdiv_rz __fdividef __fmaf_ieee_rd __fmaf_ieee_rn __fmaf_ieee_ru __fmaf_ieee_rz __fmaf_rd __fmaf_rn
__fmaf_ru __fmaf_rz __fmul_rd __fmul_rn __fmul_ru __fmul_rz __frcp_rd __frcp_rn __frcp_ru __frcp_rz
__frsqrt_rn __fsqrt_rd __fsqrt_rn __fsqrt_ru __fsqrt_rz __fsub_rd __fsub_rn __fsub_ru __fsub_rz
__log10f __log2f __logf __powf __saturatef __sincosf __sinf __tanf __tanhf __dadd_rd __dadd_rn
__dadd_ru __dadd_rz __ddiv_rd __ddiv_rn __ddiv_ru __ddiv_rz __dmul_rd __dmul_rn __dmul_ru __dmul_rz
__drcp_rd __drcp_rn __drcp_ru __drcp_rz __dsqrt_rd __dsqrt_rn __dsqrt_ru __dsqrt_rz __dsub_rd
__dsub_rn __dsub_ru __dsub_rz __fma_rd __fma_rn __fma_ru __fma_rz
"""
_INTEGERS = """
abs labs llabs min max umin umax llmin llmax ullmin ullmax __brev __brevll __byte_perm __clz __clzll
__ffs __ffsll __funnelshift_l __funnelshift_lc __funnelshift_r __funnelshift_rc __hadd __mul24
__mul64hi __mulhi __popc __popcll __rhadd __sad __uhadd __umul24 __umul64hi __umulhi __urhadd __usad
__dp2a_hi __dp2a_lo __dp4a
"""
_CASTS = """
__double2float_rd __double2float_rn __double2float_ru __double2float_rz __double2hiint
__double2int_rd __double2int_rn __double2int_ru __double2int_rz __double2ll_rd __double2ll_rn
__double2ll_ru __double2ll_rz __double2loint __double2uint_rd __double2uint_rn __double2uint_ru
__double2uint_rz __double2ull_rd __double2ull_rn __double2ull_ru __double2ull_rz
__double_as_longlong __float2int_rd __float2int_rn __float2int_ru __float2int_rz __float2ll_rd
__float2ll_rn __float2ll_ru __float2ll_rz __float2uint_rd __float2uint_rn __float2uint_ru
__float2uint_rz __float2ull_rd __float2ull_rn __float2ull_ru __float2ull_rz __float_as_int
__float_as_uint __hiloint2double __int2double_rn __int2float_rd __int2float_rn __int2float_ru
__int2float_rz __int_as_float __ll2double_rd __ll2double_rn __ll2double_ru __ll2double_rz
__ll2float_rd __ll2float_rn __ll2float_ru __ll2float_rz __longlong_as_double __uint2double_rn
__uint2float_rd __uint2float_rn __uint2float_ru __uint2float_rz __uint_as_float __ull2double_rd
__ull2double_rn __ull2double_ru __ull2double_rz __ull2float_rd __ull2float_rn __ull2float_ru
__ull2float_rz
"""
_LANES = """
vabs vabsdiffs vabsdiffu vabsss vadd vaddss vaddus vavgs vavgu vcmpeq vcmpges vcmpgeu vcmpgts
vcmpgtu vcmples vcmpleu vcmplts vcmpltu vcmpne vhaddu vmaxs vmaxu vmins vminu vneg vnegss vsads
vsadu vseteq vsetges vsetgeu vsetgts vsetgtu vsetles vsetleu vsetlts vsetltu vsetne vsub vsubss
vsubus
"""
_DPX = """
__viaddmax_s16x2 __viaddmax_s16x2_relu __viaddmax_s32 __viaddmax_s32_relu __viaddmax_u16x2
__viaddmax_u32 __viaddmin_s16x2 __viaddmin_s16x2_relu __viaddmin_s32 __viaddmin_s32_relu
__viaddmin_u16x2 __viaddmin_u32 __vibmax_s16x2 __vibmax_s32 __vibmax_u16x2 __vibmax_u32
__vibmin_s16x2 __vibmin_s32 __vibmin_u16x2 __vibmin_u32 __vimax3_s16x2 __vimax3_s16x2_relu
__vimax3_s32 __vimax3_s32_relu __vimax3_u16x2 __vimax3_u32 __vimax_s16x2_relu __vimax_s32_relu
__vimin3_s16x2 __vimin3_s16x2_relu __vimin3_s32 __vimin3_s32_relu __vimin3_u16x2 __vimin3_u32
__vimin_s16x2_relu __vimin_s32_relu
"""
# T is half or bfloat16; of numbers, and of pairs.
_NARROW = """
__habs __hadd __hadd_rn __hadd_sat __hdiv __hfma __hfma_relu __hfma_sat __hmul __hmul_rn __hmul_sat
__hneg __hsub __hsub_rn __hsub_sat __h2div __habs2 __hadd2 __hadd2_rn __hadd2_sat __hcmadd __hfma2
__hfma2_relu __hfma2_sat __hmul2 __hmul2_rn __hmul2_sat __hneg2 __hsub2 __hsub2_rn __hsub2_sat __heq
__hequ __hge __hgeu __hgt __hgtu __hisinf __hisnan __hle __hleu __hlt __hltu __hmax __hmax_nan
__hmin __hmin_nan __hne __hneu __hbeq2 __hbequ2 __hbge2 __hbgeu2 __hbgt2 __hbgtu2 __hble2 __hbleu2
__hblt2 __hbltu2 __hbne2 __hbneu2 __heq2 __heq2_mask __hequ2 __hequ2_mask __hge2 __hge2_mask __hgeu2
__hgeu2_mask __hgt2 __hgt2_mask __hgtu2 __hgtu2_mask __hisnan2 __hle2 __hle2_mask __hleu2
__hleu2_mask __hlt2 __hlt2_mask __hltu2 __hltu2_mask __hmax2 __hmax2_nan __hmin2 __hmin2_nan __hne2
__hne2_mask __hneu2 __hneu2_mask hceil hcos hexp hexp10 hexp2 hfloor hlog hlog10 hlog2 hrcp hrint
hrsqrt hsin hsqrt htanh htanh_approx htrunc h2ceil h2cos h2exp h2exp10 h2exp2 h2floor h2log h2log10
h2log2 h2rcp h2rint h2rsqrt h2sin h2sqrt h2tanh h2tanh_approx h2trunc __high2float __low2float
__lowhigh2highlow __double2T __float2T __float2T_rd __float2T_rn __float2T_ru __float2T_rz
__float2T2_rn __float22T2_rn __floats2T2_rn __T2float __T22float2 __T2T2 __halves2T2 __high2T
__high2T2 __highs2T2 __low2T __low2T2 __lows2T2 __T2char_rz __T2uchar_rz __T_as_short __T_as_ushort
__short_as_T __ushort_as_T
"""
# In CUDA's headers, but not in its documentation: older names, and what C++ adds.
_HEADERS = """
__all __any __ballot __finite __finitef __isfinited __isinf __isinff __isnan __isnanf __shfl
__shfl_down __shfl_up __shfl_xor __signbit __signbitd __signbitf fdivide isgreater isgreaterequal
isless islessequal islessgreater isnormal isunordered mul24 mul64hi mulhi umul24
"""
_NARROW_INTEGERS = ("int", "uint", "short", "ushort", "ll", "ull")
_ROUNDINGS = ("rn", "rz", "ru", "rd")


def api_names() -> frozenset[str]:
    """Every name."""
    names = {*_BOTH, *(f"{name}f" for name in _BOTH), *_TESTS.split(), _SINGLE_ONLY}
    for text in (_INTRINSICS, _INTEGERS, _CASTS, _DPX, _HEADERS):
        names.update(text.split())
    names.update(f"__{name}{lanes}" for name in _LANES.split() for lanes in (2, 4))
    for type in ("half", "bfloat16"):
        names.update(name.replace("T", type) for name in _NARROW.split())
        for integer in _NARROW_INTEGERS:
            for mode in _ROUNDINGS:
                names.add(f"__{type}2{integer}_{mode}")
                names.add(f"__{integer}2{type}_{mode}")
    elements = "char uchar short ushort int uint long ulong longlong ulonglong float double"
    names.update(f"make_{element}{count}" for element in elements.split() for count in (2, 3, 4))
    names.update(("make_half2", "make_bfloat162"))
    return frozenset(names)
