"""Mistakes that are made often: each is one error, which has the line, the cause and what to do."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import CompileErrors, DtypeError, LaunchError

START = "__global__ void k(float *x, int n) { int i = threadIdx.x;\n"
END = "\n}\n"
V = "struct V { float x, y; }; "
MAIN = "__global__ void k(float *x, int n = 1) { x[0] = n; }\nint main() { float *d = 0;\n"

# (before the kernel, in its one line, what the error says)
IN_KERNELS = [
    (V, "V a, b; V c = a + b;", "no operator+ takes (V, V): declare it, as in __device__ V "
     "operator+(V a, V b)"),
    (V, "V a; x[i] = 2 * a == a;", "no operator* takes (int, V): declare it, as in __device__ V"),
    (V, "V a, b; if (a == b) x[i] = 1;", "no operator== takes (V, V): declare it, as in "
     "__device__ bool operator==(V a, V b)"),
    (V, "V a; a = -a;", "no operator- takes (V): declare it, as in __device__ V operator-(V a)"),
    (V, "V a; if (a) x[i] = 1;", "V does not convert to bool, which a condition is"),
    (V, "V a; if (!a) x[i] = 1;", "V does not convert to bool, which a condition is"),
    (V + "__device__ V operator*(float s, V a);", "V a; a = a * 2.0f;",
     "no operator* takes (V, float): operator* of line 1 takes (float, V) (argument 1, V, does not "
     "convert to float)"),
    ("struct W { int a; __device__ W operator+(int b); };", "W a; a = a + a;",
     "no operator+ of W takes (W): operator+ of line 1 takes (int) (argument 1, W, does not"),
    ("", "x[threadIdx] = 1;", "not a value of type uint3: name one of its components, .x, .y, .z"),
    ("enum class E { a };", "E e = E::a; x[i] = e + 1;", "cast it, as in static_cast<int>(…)"),
    (V + "__device__ float f(V a, float b);", "x[i] = f(1.0f, 2.0f);",
     "no function f takes (float, float): f of line 1 takes (V, float) (argument 1, float, does "
     "not convert to V)"),
    (V + "__device__ int f(V a); __device__ int f(int *a, int b); __device__ int f(float *a, V b);"
     "__device__ int f(V *a, int b);", "x[i] = f(x, 2);",
     "f of line 1 takes 1 argument; f of line 1 takes (int*, int) (argument 1, float*, does not "
     "convert to int*); f of line 1 takes (float*, V) (argument 2, int, does not convert to V); "
     "and 1 more"),
    ("template <class T, int N> __device__ T f(T a) { return a; }", "x[i] = f(1.0f);",
     "template parameter N cannot be deduced: give it in <>"),
    ("template <class T> __device__ T f(T a, T b) { return a; }", "x[i] = f(1.0f, 2);",
     "T would be float and int: give it in <>, or convert an argument"),
    ("template <class T> __device__ T f(T *a) { return a[0]; }", "x[i] = f(x[i]);",
     "(T cannot be deduced: T* does not match float)"),
    ("#include <concepts>\ntemplate <std::integral T> __device__ T f(T a) { return a; }",
     "x[i] = f(x[i]);", "the constraints of f are not satisfied: std::integral<float> is false"),
    ("template <class T> requires (sizeof(T) == 8) __device__ T f(T a) { return a; }",
     "x[i] = f(x[i]);", "the constraints of f are not satisfied: sizeof(T) == 8 is false"),
    (V + "template <class T> concept Has = requires(T a) { a.x; a.size(); };"
     "template <Has T> __device__ int f(T a) { return 1; }", "x[i] = f(V{});",
     "the constraints of f are not satisfied: Has<V> is false, as a.size() is not valid"),
    ("template <class T> concept Small = sizeof(T) < 4; template <Small T> struct S { T a; };",
     "S<double> s; x[i] = s.a;",
     "the constraints of S are not satisfied: Small<double> is false, as sizeof(T) < 4 is false"),
    ("template <class T> struct A { T a; };", "A<int, 3> a;",
     "2 template arguments for 1 parameters: <T>"),
    ("template <class T, int N> struct A { T a[N]; };", "A<3, 3> a;",
     "template parameter T takes a type, not a value"),
    ("struct P { float position; };", "P p; x[i] = p.positon;", "did you mean position?"),
    ("struct P { __device__ float length() { return 1; } };", "P p; x[i] = p.length;",
     "the function length does not convert to float: call it, as in length(…)"),
    ("", "x[i] = i ? 1 : x;", "the operands of ?: are int and float*, which have no common type"),
    ("", "if (i) goto done;", "the function has no label done"),
    ("", "x[i] = strlen(0);", "strlen is for host code: write a loop"),
    ("", "x[i] = x[i] ^ 2;", "operator ^ takes integers, not float: powers are pow(x, y)"),
    ("", "x[i] = rand();", "rand is for host code: kernels draw numbers by curand_init"),
    ("", "retrun;", "retrun is not declared (did you mean return?)"),
    ("", "retrun i;", "retrun is not declared (did you mean return?)"),
    ("", "fro (int j = 0; j < 3; j++) x[j] = 1;", "fro is neither a keyword nor declared (did you "
     "mean for?)"),
    ("", "whlie (i < n) i++;", "did you mean while?"),
    ("", "if (i) x[i] = 1; esle x[i] = 2;", "esle is not declared (did you mean else?)"),
    ("", "shared float s[32];", "shared is not a specifier: write __shared__"),
    ("", "if (i < n { x[i] = 1; }", "expected ')' after the condition of 'if', found '{'"),
    ("#define N = 10", "int a[N];", "found '=', in what the macro N stands for"),
    ("#define N 10;", "int a[N];", "found ';', in what the macro N stands for"),
    ("", 'printf("abc);', 'the literal that begins here has no closing "'),
    ("", "printf(“abc”);", "'“' is not a token of C++ (write \")"),
    ("", "elif (i > 2) x[i] = 2;", "did you mean else if?"),
    ("", "bool b = True;", "True is not declared (did you mean true?)"),
    ("", "float *p = None;", "None is not declared (did you mean nullptr?)"),
    ("", "var a = 1;", "var is not declared (did you mean auto?)"),
    ("", "uint8 a = 1;", "uint8 is not declared (did you mean unsigned char?)"),
    ("", "x[i] = i ** 2;", "there is no operator **: powers are powf(a, b) and pow(a, b)"),
    ("", "x(i) = 1;", "float* cannot be called: an index is in brackets, [ ]"),
    ("", "int a[3], b[3]; a = b;", "int[3] cannot be assigned to: copy its elements"),
    ("", "x[i] = 1f;", "'f' is not a suffix of an integer: write 1.0f"),
    ("", "float g(float a) { return a; }", "g is defined in another function: move it out of"),
    ("/* a /* b */ c */", "", "found '/' (comments in comments end with the first */)"),
    ("#define SQ(a) ((a) * (a)", "x[i] = SQ(2);", "behind what the macro SQ stands for"),
    ("__device__ float f(a, b) { return a; }", "x[i] = f(1, 2);", "a is not a known type"),
    ("int total;", "total++;", "total is a host variable: declare it __device__"),
    ("float table[2] = {1, 2};", "x[i] = table[i];", "table is a host variable"),
    ("int helper(int a) { return a; }", "x[i] = helper(i);", "helper is a host function: declare"),
    ("template <class T> T helper(T a) { return a; }", "x[i] = helper(i);", "a host function"),
    ("struct P { int a; int get() { return a; } };", "P p; x[i] = p.get();", "P::get() is for the"),
    ("struct P { int a; P(int b) : a(b) {} };", "P p(1); x[i] = p.a;", "P::P(int) is for the host"),
    ("__global__ void other(float *x) {}", "other(x);", "a kernel is launched, not called"),
    ("", "atomicMax(x, 1.0f);", "atomicMax works on integers, not on float"),
    ("", "short s[2]; atomicAdd(s, 1);", "atomicAdd on short"),
    ("", "printf('%d', i);", "the format of printf must be a string literal"),
    ("", "x[i] = 1 − 2;", "'−' is not a token of C++ (write -)"),
]  # fmt: skip

# (the file, the line, what the error says)
FILES = [
    ("#inclde <math.h>\n", 1, "#inclde is not a directive (did you mean #include?)"),
    ("#if 1\n#elseif 2\n#endif\n", 2, "#elseif is not a directive (did you mean #elif?)"),
    ("#include <cuda_fp61.h>\n", 1, "cuda_fp61.h (did you mean cuda_fp16.h?) is neither"),
    ("struct P { float a; }\n__global__ void k(P *x) {}\n", 1, "expected ';' after the definition"),
    ("#ifdef A\n__global__ void k() {}\n", 1, "#ifdef has no #endif in this file"),
    ("__global__ void k(int n) {\n if (n) {\n}\n", 1, "the '{' of the function's body is never"),
    ("global void k(float *x) {}\n", 1, "global is not a specifier: write __global__"),
    ("__kernel void k(float *x) {}\n", 1, "__kernel is not a specifier: write __global__"),
    ("__global__ __device__ void k() {}\n", 1, "k is __global__, so it cannot be __device__, too"),
    ("__global__ void k(int n, ...) {}\n", 1, "the kernel k takes any number of arguments"),
    (MAIN + "k<<<1, 32(d);\n}", 3, "this launch of k has no >>>"),
    (MAIN + "k<<1, 32>>(d);\n}", 3, "a launch has three angle brackets"),
    (MAIN + "k<<<32>>>(d);\n}", 3, "a launch has a grid and a block"),
    (MAIN + "k<<<1, 32>>>;\n}", 3, "behind >>> are the arguments of k in parentheses"),
    (MAIN + "k<<<1, 32>>>(d, 1, 2);\n}", 3, "kernel k takes 1 to 2 arguments, and this launch has"),
    (MAIN + "k<<<1, 32, 0, 0, 1>>>(d);\n}", 3, "and this one 5 values in <<<>>>"),
    ("__global__ void __launch_bounds__(1, 2, 3, 4) k(int *x) {}\n", 1, "__launch_bounds__ has"),
    ("struct P { private int b; };\n__global__ void k() {}", 1, "expected ':' after 'private'"),
    (MAIN + "k(d, 1);\n}", 3, "the kernel k is called, not launched"),
]  # fmt: skip


def errors_of(source: str) -> list[tuple[int, str]]:
    with pytest.raises(CompileErrors) as caught:
        td.cuda_module(source)
    return [(error.line, error.message) for error in caught.value.errors]


def test_mistakes_in_kernels():
    for before, line, says in IN_KERNELS:
        source = f"{before}\n{START}{line}{END}"
        found = errors_of(source)
        assert len(found) == 1, (line, found)
        number, message = found[0]
        first = before.startswith(("/*", "__device__ float f(a,"))  # the mistake is there
        start = 1 if first else source[: source.index(START)].count("\n") + 2
        assert number == start, (line, number, message)
        assert says in message, (line, message)


def test_mistakes_in_files():
    for source, line, says in FILES:
        found = errors_of(source)
        assert [number for number, _ in found] == [line], (source, found)
        assert says in found[0][1], (source, found)


def test_launches_of_the_host_that_are_right():
    module = td.cuda_module(
        "template <class T, class... A> __global__ void many(T *x, A... a) {}\n"
        "__global__ void add(float *x, int n) {}\nvoid add(int n) {}\n"
        "__global__ void scale(float *x, int a, int b = 2) {}\n"
        "template <class A, class B> int pick(A, B);\n"
        "struct Runner { void scale(int); void run() { scale(1); } };\n"
        "int main(int argc, char **argv) {\n"
        "    float *d = 0; cudaStream_t s = 0; dim3 g{1, 2};\n"
        "    scale<<<g, dim3(1, 2), 0, s>>>(d, (1, 2));\n"
        "    scale<<<1, 2>>>(d, pick<int, int>(1, 2), 3);\n"
        "    many<<<1, 1>>>(d, 1, 2, 3); many<float><<<1, 1>>>(d);\n"
        "    add(3); add<<<1, 1>>>(d, 1);\n"
        "    { auto scale = [](int a) { return a; }; scale(1); }\n"
        "    std::cout << scale << 1; void (*f)(float *, int, int) = scale; f<<<1, 2>>>(d, 1, 2);\n"
        "    return argc << 1;\n"
        "}\n"
    )
    assert set(module.kernels) == {"many", "add", "scale"}


def test_arguments_of_another_kind():
    module = td.cuda_module(
        "__global__ void k(float *x, int n) { extern __shared__ float s[]; s[0] = n; x[0] = s[0]; }"
    )
    x = np.zeros(2, np.float32)
    for values, says in [
        ((np.array([None]), 1), "argument 1 (x) of kernel k is float*, but an array of Python "
         "objects was given: make it an array of numbers"),
        (([0.0], 1), "but a list was given: pass an array (a tensor, a NumPy array, or one that "
         "speaks DLPack), or None for a null pointer; of a list of numbers np.array(x, dtype="),
        ((b"abc", 1), "but 3 bytes was given: pass an array"),
        ((object(), 1), "but an object was given: pass an array"),
        ((x, x), "argument 2 (n) of kernel k is int, but an array of float32 and shape (2,) was "
         "given: pass a number, or one of its elements"),
        ((x, x[:1]), "an array of float32 and shape (1,) was given: pass x.item()"),
        ((x, 2j), "but the number 2j was given: pass its real part"),
    ]:  # fmt: skip
        with pytest.raises(DtypeError) as caught:
            module.k[1, 1, 4](*values)
        assert says in str(caught.value)
    with pytest.raises(LaunchError, match=r"needs to know of how many bytes \(4 at least, not 3\)"):
        module.k[1, 1, 3](x, 1)


@pytest.mark.parametrize("launch", ["k << < 1, 32 >> >(d)", "k<< <1, 32>>>(d)", "k<<<1, 32>> >(d)"])
def test_brackets_of_launches_may_stand_apart(launch):
    td.cuda_module(f"{MAIN}{launch};\n}}")
