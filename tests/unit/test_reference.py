"""The reference of the documentation has every public name, and the site's links are checked."""

from __future__ import annotations

import doctest
import inspect
from collections import Counter

import griffe
import pytest

import treadle as td
from tools.website import links, model, pages, sections


def test_every_public_name_has_one_entry():
    assert Counter(pages.names()) == Counter(sections.expected_names()), (
        "add new names to a section of tools/website/sections.py"
    )


def test_every_public_module_is_a_room():
    found = {name for name in sections.public_names(td) if inspect.ismodule(getattr(td, name))}
    for name in sorted(found):
        inner = getattr(td, name)
        if name != "errors":
            found |= {
                f"{name}.{n}"
                for n in sections.public_names(inner)
                if inspect.ismodule(getattr(inner, n))
            }
    assert found == set(sections.ROOMS)


def test_every_entry_says_something():
    root = model.package(pages.names())
    for name in pages.names():
        entry = root[name]
        assert entry.path == f"td.{name}"
        assert entry.docstring is not None, name
        assert entry.docstring.value.strip(), name


def test_an_entry_is_the_object_at_run_time():
    root = model.package(
        [
            "nn.Linear",
            "clip",
            "atomic_add",
            "sync_threads",
            "float32",
            "pi",
            "Tensor",
            "errors.ShapeError",
        ]
    )
    linear = root["nn.Linear"]
    assert [p.name for p in linear["__init__"].parameters] == [
        "in_features", "out_features", "bias", "device", "dtype",
    ]  # fmt: skip
    assert linear["__init__"].parameters["bias"].default == "True"
    assert str(linear["__init__"].parameters["bias"].annotation) == "bool"
    assert "forward" in linear.members
    assert "state_dict" not in linear.members  # it has its entry at td.nn.Module
    assert [p.name for p in root["clip"].parameters] == ["x", "min", "max"]
    assert [p.name for p in root["atomic_add"].parameters] == ["array", "index", "value"]
    assert list(root["sync_threads"].parameters) == []
    assert root["float32"].docstring.value == "float32: `td.float32`, in kernels also `td.f32`."
    assert root["pi"].value == "3.141592653589793"
    # Of bases that users do not know, and set at run time.
    assert {"numpy", "exp", "backward", "T"} <= set(root["Tensor"].members)
    assert isinstance(root["Tensor"]["T"], griffe.Attribute)
    assert next(p.name for p in root["Tensor"]["sum"].parameters) == "axis"
    assert "__init__" not in root["Tensor"].members  # users do not call the class
    assert root["errors.ShapeError"].bases == ["TreadleError", "ValueError"]


def test_aliases_of_types_are_written_out():
    root = model.package(["nn.functional.max_pool2d"])
    sizes = root["nn.functional.max_pool2d"].parameters["kernel_size"].annotation
    assert str(sizes) == "int | Sequence[int]"


def test_docstrings_become_markdown():
    assert doctest.testmod(model).failed == 0
    assert model.markdown("a[i][j] * `b[i][j]`") == "a[i]\\[j] \\* `b[i][j]`"


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ("other/", []),
        ("other/#here", []),
        ("#top", []),
        ("https://example.org/x#y", []),
        ("missing/", ["index.html: missing/ leads to no file"]),
        ("other/#there", ["index.html: other/#there leads to no anchor"]),
        ("#bottom", ["index.html: #bottom leads to no anchor"]),
        ("picture.png", ["index.html: picture.png leads to no file"]),
    ],
)
def test_links_that_lead_nowhere_are_found(tmp_path, link, wrong):
    (tmp_path / "index.html").write_text(f'<h1 id="top">x</h1><a href="{link}">y</a>')
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text('<h2 id="here">x</h2>')
    assert links.broken(tmp_path) == wrong


def test_entries_that_a_page_lacks_are_found(tmp_path):
    (tmp_path / "index.html").write_text('<h2 id="td.exp">td.exp</h2>')
    assert links.missing(tmp_path, {"index.html": ["td.exp"]}) == []
    assert links.missing(tmp_path, {"index.html": ["td.log"]}) == ["index.html: no entry of td.log"]
