"""Why there are no CUDA devices, and what those say that are there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.fake_cuda_driver import FakeCard, FakeDriver
from treadle.core.dim3 import Dim3
from treadle.core.errors import DeviceNotFound
from treadle.drivers.cuda import library
from treadle.drivers.cuda.backend import CudaBackend


def why_none() -> str:
    backend = CudaBackend()
    assert backend.list_devices() == []
    return backend.why_none()


def test_no_driver(install):
    install(driver=False)
    assert "no NVIDIA driver is installed" in why_none()


def test_no_packages(install, monkeypatch):
    install()
    monkeypatch.setattr(library, "_import_bindings", lambda: None)
    assert 'pip install "treadle[cuda]"' in why_none()


def test_a_driver_too_old_names_both_versions(install):
    install(FakeDriver(version=11040))
    reason = why_none()
    assert "CUDA 11.4" in reason
    assert "CUDA 12.0" in reason
    assert "driver 525" in reason


def test_a_driver_that_lacks_a_function(install):
    install(FakeDriver(missing=frozenset({"cuGraphUpload"})))
    backend = CudaBackend()
    (info,) = backend.list_devices()
    with pytest.raises(DeviceNotFound, match="cuGraphUpload"):
        backend.open(info)


@pytest.mark.parametrize("driver", [FakeDriver(init=100), FakeDriver(cards=[])])
def test_no_device_is_visible(install, monkeypatch, driver):
    install(driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert "plugged in" in why_none()
    install(driver)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    assert "CUDA_VISIBLE_DEVICES is '7'" in why_none()


def test_a_driver_that_does_not_start(install):
    install(FakeDriver(init=803))
    assert "CUDA_ERROR_803 (803): words about 803" in why_none()


def test_a_package_that_cannot_load_the_driver(install, monkeypatch):
    fake = install()

    def fail(_flags):
        raise RuntimeError("no such file")

    monkeypatch.setattr(fake, "cuInit", fail)
    assert "no such file" in why_none()


def test_listing_never_raises(install, monkeypatch):
    fake = install()
    monkeypatch.setattr(fake, "cuDeviceTotalMem", lambda device: (999,))
    assert CudaBackend().list_devices() == []

    def fail(_device):
        raise RuntimeError("no such function")

    monkeypatch.setattr(fake, "cuDeviceGet", fail)
    assert "no such function" in why_none()


def test_cards_that_are_too_old(install):
    install(FakeDriver(cards=[FakeCard("GTX 1080", (6, 1)), FakeCard("K80", (3, 7))]))
    reason = why_none()
    assert "GTX 1080 (sm_61), K80 (sm_37)" in reason
    assert "sm_70" in reason


def test_what_a_device_says(install):
    install(FakeDriver(cards=[FakeCard("NVIDIA H100"), FakeCard("GTX 1080", (6, 1)),
                              FakeCard("Orin", (8, 7), integrated=True)]))  # fmt: skip
    first, second = CudaBackend().list_devices()
    assert (first.id, first.name, first.kind) == ("cuda:0", "NVIDIA H100", "discrete")
    assert first.driver == "CUDA 13.0, driver 580.95.05"
    assert first.dialect == "sm_90"
    assert first.limits.max_grid == Dim3((1 << 31) - 1, 65535, 65535)
    assert first.limits.max_shared_memory == 232448
    assert first.limits.max_buffer_size == first.limits.max_binding_size == 1 << 30
    assert "unified_memory" not in first.features
    assert (second.id, second.dialect, second.kind) == ("cuda:2", "sm_87", "integrated")
    assert "unified_memory" in second.features


def test_a_device_that_went_away(install):
    install(FakeDriver(cards=[FakeCard(), FakeCard()]))
    info = CudaBackend().list_devices()[1]
    install(FakeDriver())
    with pytest.raises(DeviceNotFound, match="cuda:1"):
        CudaBackend().open(info)
    install(driver=False)
    with pytest.raises(DeviceNotFound, match="no NVIDIA driver"):
        CudaBackend().open(info)


@pytest.mark.parametrize("card", [False, True])
@pytest.mark.parametrize("package", [False, True])
def test_a_hint_for_those_who_only_lack_the_packages(monkeypatch, card, package):
    monkeypatch.setattr(library, "_card_visible", lambda: card)
    monkeypatch.setattr(library, "driver_installed", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if package else None)
    hint = CudaBackend().hint()
    assert (hint is not None) == (card and not package)
    assert hint is None or 'pip install "treadle[cuda]"' in hint


def test_nobody_loads_cuda_unasked():
    program = (
        "import sys, treadle as td\n"
        "td.ones(3, device='cpu').tolist()\n"
        "print([name for name in sys.modules if 'cuda' in name and 'cuda_cpp' not in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
