"""What is said of paths that name nothing, by every function that takes one."""

from __future__ import annotations

from pathlib import Path

import pytest

import treadle as td

STATE = {"a": 1}


def _profile_save(path):
    with td.profile() as measured:
        pass
    measured.save(path)


def _include(path):
    td.cuda_module("", include=[path])


WRITERS = {"save": lambda path: td.save(STATE, path), "profile": _profile_save}
READERS = {"load": lambda path: td.load(path, device="cpu")}
ALL = WRITERS | READERS | {"include": _include}


@pytest.mark.parametrize("name", ALL)
def test_what_is_no_path(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in (3, None, True, 1.5, ["a"], object()):
        kind = type(given).__name__
        with pytest.raises(TypeError, match=f"a path is text or a pathlib.Path, not {kind}$"):
            ALL[name](given)
    with pytest.raises(TypeError, match=r"not bytes: os\.fsdecode\(path\)$"):
        ALL[name](b"a")
    with pytest.raises(ValueError, match="the path is empty"):
        ALL[name]("")
    with pytest.raises(ValueError, match="no path has a null character in it"):
        ALL[name]("a\0b")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", WRITERS | READERS)
def test_folders_that_are_missing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    act = ALL[name]
    with pytest.raises(FileNotFoundError, match="there is no folder absent: ") as caught:
        act("absent/x")
    assert caught.value.filename == "absent/x"
    with pytest.raises(FileNotFoundError, match=r"no folder ~ \(~ is not expanded: .*expanduser"):
        act("~/x")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        act(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match=r"file/x"):
        act(Path("file/x"))
    Path("~").mkdir()  # which may exist, and is then a folder like others
    if name in WRITERS:
        act("~/x")
        assert (tmp_path / "~" / "x").is_file()
    else:
        with pytest.raises(FileNotFoundError, match=r"there is no such file: '~/x'$"):
            act("~/x")


def test_paths_of_other_classes_are_taken(tmp_path):
    class Named:
        def __fspath__(self):
            return str(tmp_path / "x")

    td.save(STATE, Named())
    assert td.load(Named()) == STATE


def test_cuda_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for path, said in {
        "absent.cu": "there is no file absent.cu$",
        "~/k.cu": r"there is no file ~/k.cu \(~ is not expanded",
        ".": "is a folder, not a file",
        "x" * 300: "there is no file xxx",
    }.items():
        with pytest.raises(td.errors.TreadleError, match=said):
            td.cuda_module(Path(path))
    with pytest.raises(td.errors.TreadleError, match="include: file is a file, not a folder"):
        _include("file")
    with pytest.raises(td.errors.TreadleError, match=r"include: there is no folder ~/a \(~ is not"):
        _include("~/a")
    with pytest.raises(TypeError, match="include: folders are a list of paths, not int"):
        td.cuda_module("", include=3)
    with pytest.raises(td.errors.CompileError, match="looks like the name of a file"):
        td.cuda_module(".")
