"""Kernels and device functions travel to other processes by their names."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import pytest

import treadle as td


@td.kernel
def fill(x: td.Array[td.i32], value: td.i32):
    x[td.grid(1)] = value


@td.func
def twice(x):
    return 2 * x


@td.elementwise
def negated(x):
    return -x


class Box:
    @td.kernel
    def inside(x: td.Array[td.i32]):
        x[0] = 1


renamed = fill
from_text = td.kernel(source="def text(x: td.Array[td.f32]):\n    x[0] = 1.0\n")


@pytest.mark.parametrize("one", [fill, renamed, twice, negated, Box.inside])
def test_at_the_top_level_by_name(one):
    assert pickle.loads(pickle.dumps(one)) is one
    assert pickle.loads(pickle.dumps({"step": [one]}))["step"][0] is one


def test_in_a_function_with_the_reason():
    @td.kernel
    def local(x: td.Array[td.i32]):
        x[0] = 1

    with pytest.raises(pickle.PicklingError, match=r"local.*defined in a function.*top level"):
        pickle.dumps(local)
    with pytest.raises(pickle.PicklingError, match=r"text.*is not there.*top level"):
        pickle.dumps(from_text)


def test_hidden_by_another_of_its_name(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "fill", 3)
    with pytest.raises(pickle.PicklingError, match="something else"):
        pickle.dumps(renamed)


def test_a_copy_is_the_kernel_itself():
    assert copy.copy(fill) is copy.deepcopy(fill) is fill
    assert copy.deepcopy([from_text])[0] is from_text


WORKERS = """
import multiprocessing
import treadle as td

@td.kernel
def fill(x: td.Array[td.i32], value: td.i32):
    x[td.grid(1)] = value

def work(kernel, value):
    x = td.zeros(3, dtype=td.i32, device="cpu")
    kernel.launch(3, x, value)
    return x.tolist()

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(work, (fill, 7)))
"""


def test_as_arguments_of_spawned_workers(tmp_path):
    program = tmp_path / "workers.py"
    program.write_text(WORKERS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "[7, 7, 7]\n"
