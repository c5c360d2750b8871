"""Host code beside kernels: recognized, skipped, and never an error."""

import pytest

import treadle as td
from tests.support.cuda_syntax import declarations, parsed, shown
from treadle.core.errors import CompileError
from treadle.cuda_cpp.syntax import tree

KERNEL = "__global__ void k(int *p) { p[0] = 1; }"

HOST = {
    "main": "int main() { std::vector<int> v{1, 2}; k<<<1, 32>>>(p); return [&] { return 0; }(); }",
    "lambda": "auto twice = [](auto x) { return x + x; };",
    "device lambda": "void f() { run([=] __device__ (int i) { return i; }); }",
    "function template": "template <class T> std::vector<T> f(T &&x) { return std::make<T>(x); }",
    "try": "void f() try { g(); } catch (const std::exception &e) { throw; } catch (...) { }",
    "constructor": "Host::Host(int n) : data_{n}, size_(n), Base<int>{n} { run(); }",
    "destructor": "Host::~Host() { delete[] data_; }",
    "conversion": "Host::operator std::string() const { return name_; }",
    "operator": "std::ostream &operator<<(std::ostream &out, const V &v) { return out << v.x; }",
    "prototype": "std::vector<float> load(const std::string &path, size_t n = 3);",
    "old style": "int f(a, b) int a; char b; { return a; }",
    "macro": "REGISTER_TEST(k)",
    "macro with braces": "TEST(suite, name) { EXPECT_EQ(1, 1); }",
    "bare macro": "BEGIN_DECLARATIONS",
    "class": "class H : public B { public: H() : x{1} {} std::map<int, int> m; private: int x; };",
    "class with macros": "class Host { Q_OBJECT int x = UNKNOWN(int); signals: void changed(); };",
    "global": 'static std::map<std::string, std::vector<int>> table = {{"a", {1}}};',
    "pointer": "static float *host_data = nullptr, **rows;",
    "array": 'const char *names[] = {"a", "b"};',
    "assembly": 'void f() { asm volatile("nop" ::: "memory"); }',
    "attributes": "[[noreturn]] __attribute__((cold)) void die(const char *, ...);",
    "unbalanced parentheses": "void f() { g((1); }",
    "using": "using namespace std; using std::vector; using M = std::map<int, int>;",
    "typedef": "typedef std::pair<int, std::vector<float>> Entry;",
    "concept": "template <class T> concept Small = sizeof(T) < 8;",
    "constexpr": "constexpr auto table = make_table<int, 3>([](int i) { return i; });",
    "constexpr function": "constexpr int f(std::initializer_list<int> l) { auto [a, b] = g(); }",
    "nonsense": "@ # $ ` unknown tokens;",
    "statement": "x = 3; f(x);",
}


@pytest.mark.parametrize("name", HOST)
def test_kernels_are_found_whatever_stands_around_them(name: str) -> None:
    text = f"{HOST[name]}\n{KERNEL}\n{HOST[name]}\n{KERNEL}\n{HOST[name]}\n"
    found = declarations(text)
    kernels = [d for d in found if isinstance(d, tree.FunctionDeclaration) and d.body]
    kernels = [kernel for kernel in kernels if "global" in kernel.specifiers]
    assert [kernel.name.text for kernel in kernels] == ["k", "k"]
    assert [kernel.span.line for kernel in kernels] == [2, 4]


def test_what_was_skipped_says_what_it_was() -> None:
    main, method, broken, prototype = declarations(
        """int main() { return 0; }
        template <class T> void f(T x) { }
        struct Broken { int x = (; };
        float g(float);""",
    )
    assert isinstance(main, tree.HostCode)
    assert (main.names, main.what, main.reason) == (("main",), "function", "")
    assert [token.text for token in main.tokens][:4] == ["int", "main", "(", ")"]
    assert isinstance(method, tree.HostCode)
    assert (method.names, method.what) == (("f",), "function")
    assert isinstance(broken, tree.HostCode)
    assert (broken.names, broken.what) == (("Broken",), "struct")
    assert "never closed" in broken.reason or "expected" in broken.reason
    assert isinstance(prototype, tree.HostCode)
    assert (prototype.names, prototype.what) == (("g",), "function")


def test_what_is_not_only_the_hosts_is_read() -> None:
    found = declarations(
        """struct Params { float dt; int n; };
        typedef float real;
        enum { BLOCK = 128 };
        const int radius = 4;
        constexpr int twice(int x) { return 2 * x; }
        __host__ __device__ inline real f(real x) { return x; }
        __host__ real g(real x) { return x; }""",
    )
    assert [type(d).__name__ for d in found] == [
        "StructDeclaration", "TypedefDeclaration", "EnumDeclaration", "VariableDeclaration",
        "FunctionDeclaration", "FunctionDeclaration", "HostCode",
    ]  # fmt: skip
    assert shown(found[3]) == "radius: const int = 4"


def test_bodies_of_host_methods_of_a_device_class_are_skipped() -> None:
    (struct,) = declarations(
        """struct Both {
            std::string name() const { return std::string("x") + [&] { return "y"; }(); }
            Both(std::initializer_list<int> l) : a{*l.begin()}, b(2) { std::cout << a; }
            void unreadable(int x = @);
            __device__ int get() const { return a; }
            int a, b;
        };""",
    )
    assert isinstance(struct, tree.StructDeclaration)
    assert [type(member).__name__ for member in struct.members] == [
        "FunctionDeclaration", "FunctionDeclaration", "HostCode", "FunctionDeclaration",
        "VariableDeclaration", "VariableDeclaration",
    ]  # fmt: skip
    methods = [one for one in struct.members if isinstance(one, tree.FunctionDeclaration)]
    assert [(one.name.text, one.note, one.body is None) for one in methods] == [
        ("name", "host", True), ("Both", "host", True), ("get", "", False),
    ]  # fmt: skip


def test_a_host_class_that_fails_is_still_a_type() -> None:
    *_, kernel = declarations(
        """class Host { Q_OBJECT(@) int x = ; };
        __global__ void k(Host *h) { Host * g = h; (Host *)g; }""",
    )
    assert isinstance(kernel, tree.FunctionDeclaration)
    assert kernel.body is not None
    assert isinstance(kernel.body.body[0], tree.DeclarationStatement)


def test_a_host_class_that_fails_may_be_a_base() -> None:
    td.cuda_module(f"""class App;
        class App {{ Q_OBJECT(@) int x = ; }};
        class Group : public App {{ int y; }};
        {KERNEL}""")


def test_members_of_a_class_that_a_header_of_the_host_defines() -> None:
    """PyTorch's extensions declare at::Tensor themselves, beside the header that defines it."""
    module = td.cuda_module("""
        #include <ATen/core/Tensor.h>
        namespace at { class Tensor; }
        struct Result { at::Tensor first; const at::Tensor others[2]; int count; };
        template <class T> struct Both { at::Tensor tensor; T value; };
        at::Tensor made(at::Tensor);
        __global__ void k(int *out) { out[0] = 7; }
        __global__ void uses(int *out, Result *given) { out[0] = given->count; }
    """)
    out = td.zeros(1, dtype=td.int32, device="cpu")
    module.k[1, 1](out)
    assert out.item() == 7
    with pytest.raises(CompileError, match="first is a at::Tensor, which is of the host's"):
        module.uses[1, 1](out, out)


def test_a_device_lambda_does_not_make_its_function_device_code() -> None:
    found = declarations("void f() { g([] __device__ () { @ }); } __device__ void h() { }")
    assert isinstance(found[0], tree.HostCode)
    assert isinstance(found[1], tree.FunctionDeclaration)


def test_a_host_function_that_is_never_closed_hides_no_kernel() -> None:
    result = parsed(f"void f() {{\n  if (x) {{\n}}\n{KERNEL}\n")
    assert not result.errors
    assert any(isinstance(d, tree.FunctionDeclaration) for d in result.unit.declarations)


def test_namespaces_hold_both() -> None:
    (space,) = declarations(f"namespace a {{ void f() {{ std::sort(x); }} {KERNEL} }}")
    assert isinstance(space, tree.NamespaceDeclaration)
    assert [type(d).__name__ for d in space.members] == ["HostCode", "FunctionDeclaration"]
