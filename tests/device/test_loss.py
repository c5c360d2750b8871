"""What a kernel that reads where nothing is does to CUDA, and what it leaves alone."""

import subprocess
import sys

import pytest

import treadle as td

_FAULT = """
import treadle as td

@td.kernel(checked=False)
def astray(x: td.Array[td.f32]):
    x[td.grid(1) + 1_000_000_000] = 1.0

@td.kernel
def double(x: td.Array[td.f32]):
    i = td.grid(1)
    x[i] = x[i] * 2.0

x = td.ones(64, device="cuda")
double.launch(64, x)
assert x.tolist() == [2.0] * 64
astray[1, 64](x)
for use in (x.numpy, lambda: double.launch(64, x), lambda: td.ones(3, device="cuda"),
            td.device("cuda").synchronize):
    try:
        use()
    except td.errors.DeviceLost as error:
        assert "astray" in str(error) and "new process" in str(error), error
    else:
        raise AssertionError("used after the fault")
td.device("cuda").close()
try:
    td.ones(3, device="cuda")
except td.errors.DeviceLost as error:
    print(error)
for name in ("cpu", "webgpu"):
    if td.is_available(name):
        y = td.ones(64, device=name)
        double.launch(64, y)
        assert y.tolist() == [2.0] * 64
        print(name, "works")
"""


@pytest.mark.cuda
def test_an_illegal_address_names_the_kernel_and_spares_other_devices(tmp_path):
    if not td.is_available("cuda"):
        pytest.skip("there is no NVIDIA card")
    script = tmp_path / "fault.py"
    script.write_text(_FAULT, encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "astray" in done.stdout
    assert "cpu works" in done.stdout
    assert done.stderr == ""
