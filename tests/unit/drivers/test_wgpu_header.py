"""The tables of wgpu-native's header are those of the installed package, and they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools import wgpu_header as tool
from treadle.drivers.webgpu_native import wgpu_header, wgpu_native


def test_the_tables_are_up_to_date():
    assert tool.WRITTEN.read_text() == tool.text(), "run python tools/wgpu_header.py"


def test_the_header_is_not_read():
    code = """
import sys
from treadle.drivers.webgpu_native.native import load
from treadle.drivers.webgpu_native.wgpu_native import WGPU_NATIVE
assert load(WGPU_NATIVE).version.count(".") == 3
assert not {"wgpu", "cffi", "pycparser"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_header_is_read_by_cffi(monkeypatch):
    usual = wgpu_native._load()
    assert usual.ffi is wgpu_header.ffi
    monkeypatch.setattr(wgpu_header, "SHA256", "0" * 64)
    other = wgpu_native._load()
    assert other.ffi is not wgpu_header.ffi
    assert other.version == usual.version


@pytest.mark.parametrize("variable", ["WGPU_LIB_PATH", "WGPU_DEBUG"])
def test_another_library_is_loaded_as_wgpu_does(monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    assert wgpu_native._from_tables() is None


def test_without_the_package_the_library_is_not_usable(monkeypatch):
    monkeypatch.setattr(wgpu_native, "find_spec", lambda name: None)
    with pytest.raises(ImportError):
        wgpu_native._load()
