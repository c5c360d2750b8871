"""Functions, structs, templates, namespaces: what a device file declares."""

import re
from pathlib import Path

import pytest

from tests.support.cuda_syntax import declarations, function, shown, statements
from treadle.cuda_cpp.syntax import translation_unit, tree
from treadle.cuda_cpp.syntax.refusals import REFUSALS

STATIC = {"static", "device", "forceinline"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__device__ int f() { return 1; }", {"device"}),
        ("static __device__ __forceinline__ int f() { return 1; }", STATIC),
        ("__forceinline__ __device__ static int f() { return 1; }", STATIC),
        ("inline __host__ __device__ int f() { return 1; }", {"inline", "host", "device"}),
        ("int __device__ f() { return 1; }", {"device"}),
        ("__device__ __noinline__ int f() { return 1; }", {"device", "noinline"}),
        ("constexpr int f() { return 1; }", {"constexpr"}),
        ('extern "C" __device__ int f() { return 1; }', {"device"}),
        ("__device__ __attribute__((always_inline)) int f() { return 1; }", {"device"}),
        ("[[nodiscard]] __device__ int f() { return 1; }", {"device"}),
        ("__device__ int f() noexcept { return 1; }", {"device"}),
        ("__device__ auto f() -> int { return 1; }", {"device"}),
        ("template <class T> extern __device__ int f() { return 1; }", {"device", "extern"}),
    ],
)  # fmt: skip
def test_specifiers_in_any_place(text: str, words: set[str]) -> None:
    found = function(text)
    assert found.specifiers == words
    assert shown(found.result) == "int"
    assert found.body is not None


@pytest.mark.parametrize(
    "head",
    [
        "__global__ void __launch_bounds__(256, N * 2) k(int *p)",
        "__global__ __launch_bounds__(256, N * 2) void k(int *p)",
        "__launch_bounds__(256, N * 2) __global__ void k(int *p)",
        "void __global__ __launch_bounds__(256, N * 2) k(int *p)",
    ],
)
def test_launch_bounds(head: str) -> None:
    found = function(head + " { }")
    assert [shown(bound) for bound in found.launch_bounds] == ["256", "(N * 2)"]
    assert found.specifiers == {"global"}
    assert found.name.text == "k"


def test_parameters() -> None:
    found = function(
        """__device__ void f(int, float x = 1.0f, int a[], float m[][4], void (*g)(int), float4 &v,
                             const int &&r, int h(float), __grid_constant__ const S s, ...) { }""",
    )
    assert [(p.name, shown(p.type)) for p in found.parameters] == [
        ("", "int"),
        ("x", "float"),
        ("a", "array[] of int"),
        ("m", "array[] of array[4] of float"),
        ("g", "pointer to function(int) to void"),
        ("v", "reference to float4"),
        ("r", "rvalue reference to const int"),
        ("h", "function(float) to int"),
        ("s", "const S"),
    ]
    assert shown(found.parameters[1].default) == "1.0f"
    assert found.parameters[8].specifiers == {"grid_constant"}
    assert found.variadic
    assert function("__device__ void f(void) { }").parameters == ()


def test_global_variables() -> None:
    found = declarations(
        """__constant__ float coefficients[3] = {1, 2, 3};
        __device__ int counter, *pointer = &counter;
        __device__ __managed__ float m;
        static __constant__ __align__(16) int4 table[N];
        __shared__ int s;
        const int host_constant = 3;
        constexpr float pi = 3.14f;
        __device__ unsigned char (*varying)(float);""",
    )
    assert [shown(declared) for declared in found] == [
        "constant coefficients: array[3] of float = {1, 2, 3}",
        "device counter: int",
        "device pointer: pointer to int = (&counter)",
        "device managed m: float",
        "constant static table: array[N] of int4",
        "shared s: int",
        "host_constant: const int = 3",
        "constexpr pi: float = 3.14f",
        "device varying: pointer to function(float) to unsigned char",
    ]
    assert isinstance(found[4], tree.VariableDeclaration)
    assert shown(found[4].alignment) == "16"


def test_a_struct_with_everything() -> None:
    (struct,) = declarations(
        """struct __align__(16) V : Base<int>, public Other {
            float x, y;
            int low : 3, : 2, high : 5;
            static const int n = 4;
            float values[4] = {1, 2};
            union { int i; float f; };
            struct Inner { int z; } inner;
            enum Kind { A, B };
            typedef float value_type;
            __device__ V() : x(0), y{1} { }
            __device__ V(float a, float b = 2) : x(a), y(b), Other(a) { }
            V(const V &) = default;
            V &operator=(const V &) = delete;
            __device__ ~V() { }
            __host__ __device__ V operator+(const V &o) const { return V(x + o.x, y + o.y); }
            __device__ float operator()(int i) const { return x < i; }
            __device__ float &operator[](int i) { return (&x)[i]; }
            __device__ explicit operator float() const { return x; }
            __device__ static V zero() { return V(0); }
            template <typename T> __device__ T get() const { return T(x); }
            __device__ friend V operator*(float a, const V &b) { return V(a * b.x); }
            virtual __device__ void v() = 0;
            host_type host() { return std::vector<int>{1, 2}; }
        private:
            Inner later() const;
        };""",
    )
    assert isinstance(struct, tree.StructDeclaration)
    assert shown(struct.alignment) == "16"
    assert [shown(base.name) for base in struct.bases] == ["Base<int>", "Other"]
    functions = [m for m in struct.members if isinstance(m, tree.FunctionDeclaration)]
    assert [method.name.text for method in functions] == [
        "V", "V", "V", "operator=", "~V", "operator+", "operator()", "operator[]", "operator ()",
        "zero", "get", "operator*", "v", "host", "later",
    ]  # fmt: skip
    assert functions[0].result is None
    assert [name.text for name, _ in functions[0].initializers] == ["x", "y"]
    assert [len(values.items) for _, values in functions[1].initializers] == [1, 1, 1]
    assert functions[2].note == "defaulted"
    assert functions[3].note == "deleted"
    assert functions[5].const
    assert shown(functions[8].result) == "float"
    assert functions[9].specifiers == {"device", "static"}
    assert functions[10].template is not None
    assert "friend" in functions[11].specifiers
    assert functions[12].note == "pure"
    variables = [m for m in struct.members if isinstance(m, tree.VariableDeclaration)]
    assert [v.name for v in variables] == [
        "x", "y", "low", "", "high", "n", "values", "inner",
    ]  # fmt: skip
    assert [shown(v.bits) for v in variables[2:5]] == ["3", "2", "5"]
    assert functions[13].note == "host"


def test_anonymous_members_are_structs_of_their_own() -> None:
    (struct,) = declarations("struct A { union { int i; float f; }; struct { int a, b; } pair; };")
    assert isinstance(struct, tree.StructDeclaration)
    union, pair = struct.members
    assert isinstance(union, tree.StructDeclaration)
    assert (union.kind, union.name, len(union.members)) == ("union", "", 2)
    assert isinstance(pair, tree.VariableDeclaration)
    assert isinstance(pair.type, tree.DefinedType)


def test_typedefs() -> None:
    found = declarations(
        """typedef struct { float x; } Anonymous;
        typedef struct Named { struct Named *next; } Named;
        typedef struct Tag { int a; } Alias, *Pointer;
        typedef unsigned int uint32;
        typedef float Row[4];
        typedef float (*Function)(int);
        using Real = float;
        template <class T> using Pointer2 = T *;
        struct Forward;""",
    )
    shapes = [(type(declared).__name__.removesuffix("Declaration"), getattr(declared, "name", ""))
              for declared in found]  # fmt: skip
    assert shapes == [
        ("Struct", "Anonymous"),
        ("Struct", "Named"),
        ("Struct", "Tag"),
        ("Typedef", "Alias"),
        ("Typedef", "Pointer"),
        ("Typedef", "uint32"),
        ("Typedef", "Row"),
        ("Typedef", "Function"),
        ("Typedef", "Real"),
        ("Typedef", "Pointer2"),
        ("Struct", "Forward"),
    ]
    assert isinstance(found[-1], tree.StructDeclaration)
    assert not found[-1].complete


def test_enums() -> None:
    plain, scoped, opaque = declarations(
        """enum Color { RED, GREEN = 3, BLUE, };
        enum class E : unsigned char { A = 1 };
        enum F : int;"""
    )
    assert isinstance(plain, tree.EnumDeclaration)
    assert [(name, shown(value)) for name, value in plain.enumerators] == [
        ("RED", ""), ("GREEN", "3"), ("BLUE", ""),
    ]  # fmt: skip
    assert isinstance(scoped, tree.EnumDeclaration)
    assert scoped.scoped
    assert shown(scoped.underlying) == "unsigned char"
    assert isinstance(opaque, tree.EnumDeclaration)
    assert opaque.name == "F"


def test_template_parameters() -> None:
    found = function(
        """template <typename T, class U = float, int N = 4, bool B = (N > 3), typename... Rest,
                     template <typename> class C = V, T value = T(3), unsigned, typename = int>
        __global__ void k(T *x) { }""",
    )
    assert found.template is not None
    parameters = [(p.kind, p.name, shown(p.default), p.pack) for p in found.template]
    assert parameters == [
        ("type", "T", "", False),
        ("type", "U", "float", False),
        ("value", "N", "4", False),
        ("value", "B", "(N > 3)", False),
        ("type", "Rest", "", True),
        ("template", "C", "V", False),
        ("value", "value", "new_value T(3)", False),
        ("value", "", "", False),
        ("type", "", "int", False),
    ]


def test_templates_of_everything() -> None:
    found = declarations(
        """template <class T> struct S { T x; __device__ T get() const; };
        template <class T> __device__ T S<T>::get() const { return x; }
        template <> struct S<float> { float y; };
        template <class T> struct S<T *> { T *z; };
        template <> __device__ float f<float>(float x) { return x; }
        template <class T> __device__ constexpr T pi = T(3.14);
        template __global__ void k<float>(float *);
        template struct S<int>;
        extern template __global__ void k<double>(double *);
        template <class T, class = typename enable_if<(sizeof(T) > 4)>::type>
        __device__ T g(T x) { return x; }
        template <int N> __device__ typename S<int>::type h() { return N; }""",
    )
    primary, method, full, partial, specialized, variable, enabled, dependent = found
    assert isinstance(primary, tree.StructDeclaration)
    assert primary.template is not None
    assert isinstance(method, tree.FunctionDeclaration)
    assert shown(method.name) == "S<T>::get"
    assert isinstance(full, tree.StructDeclaration)
    assert full.template is None
    assert full.specialized is not None
    assert isinstance(partial, tree.StructDeclaration)
    assert partial.template is not None
    assert shown(partial.specialized[0]) == "pointer to T" if partial.specialized else False
    assert isinstance(specialized, tree.FunctionDeclaration)
    assert specialized.specialization
    assert specialized.template is None
    assert shown(specialized.name) == "f<float>"
    assert isinstance(variable, tree.VariableDeclaration)
    assert variable.template is not None
    assert isinstance(enabled, tree.FunctionDeclaration)
    assert isinstance(dependent, tree.FunctionDeclaration)


def test_packs() -> None:
    found = function(
        "template <typename... Ts> __device__ int f(Ts... xs) { return g(xs...) + h<Ts...>(0); }"
    )
    assert found.parameters[0].pack
    assert found.body is not None
    (statement,) = found.body.body
    assert isinstance(statement, tree.Return)
    assert shown(statement.value) == "(g(xs...) + h<Ts...>(0))"


def test_namespaces_and_using() -> None:
    outer, alias, using, everything, after = declarations(
        """namespace a::b { struct T { int x; }; namespace { __device__ T f() { T t; return t; } } }
        namespace c = a::b;
        using a::b::T;
        using namespace c;
        __device__ T g(T *p) { T * q = p; return *q; }""",
    )
    assert isinstance(outer, tree.NamespaceDeclaration)
    (inner,) = outer.members
    assert isinstance(inner, tree.NamespaceDeclaration)
    assert (outer.name, inner.name, len(inner.members)) == ("a", "b", 2)
    assert isinstance(alias, tree.NamespaceDeclaration)
    assert shown(alias.alias) == "a::b"
    assert isinstance(using, tree.UsingDeclaration)
    assert isinstance(everything, tree.UsingDeclaration)
    assert everything.namespace
    assert isinstance(after, tree.FunctionDeclaration)


def test_linkage_blocks_are_no_scope() -> None:
    found = declarations(
        'extern "C" { __global__ void k() { } } extern "C" __global__ void l() { }'
    )
    assert [f.name.text for f in found if isinstance(f, tree.FunctionDeclaration)] == ["k", "l"]


def test_methods_know_the_types_of_their_class_wherever_they_are_written() -> None:
    early, out = declarations(
        """template <class T> struct A {
            __device__ void f() { Later * p = 0; Element * e = 0; Kind * k = 0; Row * r; U<3> u; }
            struct __align__(8) Later : Base { int x; };
            template <class V> __device__ V g(V v) { return v; }
            enum class Kind { A };
            typedef T Row[3];
            template <int N> struct U { };
            using Element = T;
            __device__ void g();
        };
        template <class T> __device__ void A<T>::g() { Later * p = 0; Element * e = 0; }""",
    )
    assert isinstance(early, tree.StructDeclaration)
    methods = [m for m in (*early.members, out) if isinstance(m, tree.FunctionDeclaration)]
    bodies = [method.body for method in methods if method.body and method.template is None]
    for body in (*bodies, methods[-1].body):
        if body is not None:
            assert {type(statement).__name__ for statement in body.body} == {"DeclarationStatement"}


def test_static_assert() -> None:
    (found,) = declarations('static_assert(sizeof(int) == 4, "an int " "has 4 bytes");')
    assert isinstance(found, tree.StaticAssert)
    assert found.message == "an int has 4 bytes"
    assert len(statements("static_assert(true);")) == 1


def test_packed_structs() -> None:
    found = declarations(
        """struct A { char c; int i; };
        #pragma pack(push, 1)
        struct B { char c; int i; };
        #pragma pack(pop)
        struct C { char c; int i; };
        struct __attribute__((packed)) D { char c; int i; };
        struct E { char c; int i; } __attribute__((packed, aligned(8)));""",
    )
    packings = [f.packing for f in found if isinstance(f, tree.StructDeclaration)]
    assert packings == [None, 1, None, 1, 1]


def test_specifiers_behind_a_star() -> None:
    found = function("float * __device__ __forceinline__ f(float *p) { return p; }")
    assert found.specifiers == {"device", "forceinline"}
    assert shown(found.result) == "pointer to float"


def test_each_refused_construct_has_its_sentence() -> None:
    folder = Path(translation_unit.__file__).parent
    sources = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    keys = set(re.findall(r'Refused(?:Statement)?\("(\w+)"', sources))
    assert len(keys) > 5
    assert keys <= REFUSALS.keys()


def test_each_refusal_is_a_sentence() -> None:
    for key, refusal in REFUSALS.items():
        assert key == key.lower()
        assert refusal.construct
        assert refusal.reason
        assert refusal.alternative
        assert refusal.message.count("; ") >= 1
