"""Arrays in files: NumPy's own formats, `.npy`, `.npz` and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from treadle.numpy.arrays import Values, ndarray, wrap
from treadle.numpy.operations import operands


def _host(value: Any) -> Any:
    return value._inner.numpy() if isinstance(value, Values) else value


def _array(data: Any) -> ndarray:
    return wrap(operands.array(data))


def save(file: Any, arr: Any, allow_pickle: bool = False) -> None:
    """Write an array to a `.npy` file.

    >>> import io, treadle.numpy as np
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(3))
    >>> _ = file.seek(0)
    >>> np.load(file)
    array([0, 1, 2])
    """
    np.save(file, _host(arr), allow_pickle=False)


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """Write several arrays to a `.npz` file.

    >>> import io, treadle.numpy as np
    >>> file = io.BytesIO()
    >>> np.savez(file, x=np.arange(2))
    >>> _ = file.seek(0)
    >>> np.load(file)["x"]
    array([0, 1])
    """
    np.savez(file, *map(_host, args), **{name: _host(each) for name, each in kwds.items()})


def savez_compressed(file: Any, *args: Any, **kwds: Any) -> None:
    """Write several arrays to a compressed `.npz` file.

    >>> import io, treadle.numpy as np
    >>> file = io.BytesIO()
    >>> np.savez_compressed(file, np.arange(2))
    >>> _ = file.seek(0)
    >>> np.load(file).files
    ['arr_0']
    """
    np.savez_compressed(
        file, *map(_host, args), **{name: _host(each) for name, each in kwds.items()}
    )


class NpzFile:
    """The arrays of a `.npz` file by their names; each is read when it is asked for."""

    def __init__(self, file: Any) -> None:
        self._file = file

    @property
    def files(self) -> list[str]:
        """The names."""
        found: list[str] = self._file.files
        return found

    def __getitem__(self, name: str) -> ndarray:
        return _array(self._file[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def keys(self) -> list[str]:
        """The names."""
        return self.files

    def items(self) -> list[tuple[str, ndarray]]:
        """The names with their arrays."""
        return [(name, self[name]) for name in self.files]

    def values(self) -> list[ndarray]:
        """The arrays."""
        return [self[name] for name in self.files]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> NpzFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def load(file: Any, mmap_mode: Any = None, allow_pickle: bool = False, **keywords: Any) -> Any:
    """Read a `.npy` or `.npz` file. ValueError for pickled objects, which are not read.

    >>> import io, treadle.numpy as np
    >>> file = io.BytesIO()
    >>> np.save(file, np.ones(2))
    >>> _ = file.seek(0)
    >>> np.load(file)
    array([1., 1.])
    """
    if allow_pickle:
        raise ValueError("allow_pickle=True: arrays of objects have no form for devices")
    found = np.load(file, mmap_mode=mmap_mode, allow_pickle=False, **keywords)
    return _array(found) if isinstance(found, np.ndarray) else NpzFile(found)


def savetxt(fname: Any, X: Any, *args: Any, **kwargs: Any) -> None:
    r"""Write an array to a text file.

    >>> import io, treadle.numpy as np
    >>> file = io.StringIO()
    >>> np.savetxt(file, np.arange(2), fmt="%d")
    >>> file.getvalue()
    '0\n1\n'
    """
    np.savetxt(fname, _host(X), *args, **kwargs)


def loadtxt(fname: Any, *args: Any, **kwargs: Any) -> Any:
    r"""Read an array of numbers from a text file.

    >>> import io, treadle.numpy as np
    >>> np.loadtxt(io.StringIO("1 2\n3 4")).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    found: Any = np.loadtxt(fname, *args, **kwargs)
    return [_array(each) for each in found] if isinstance(found, (list, tuple)) else _array(found)


def genfromtxt(fname: Any, *args: Any, **kwargs: Any) -> Any:
    """Read an array of numbers from a text file in which some may be missing.

    >>> import io, treadle.numpy as np
    >>> np.genfromtxt(io.StringIO("1,,3"), delimiter=",").tolist()
    [1.0, nan, 3.0]
    """
    return _array(np.genfromtxt(fname, *args, **kwargs))


def array2string(a: Any, *args: Any, **kwargs: Any) -> str:
    """The text of an array, as NumPy writes it.

    >>> import treadle.numpy as np
    >>> np.array2string(np.arange(3), separator=",")
    '[0,1,2]'
    """
    return np.array2string(_host(a), *args, **kwargs)


def array_repr(arr: Any, *args: Any, **kwargs: Any) -> str:
    """The text of an array that says that it is one.

    >>> import treadle.numpy as np
    >>> np.array_repr(np.arange(3))
    'array([0, 1, 2])'
    """
    return np.array_repr(_host(arr), *args, **kwargs)


def array_str(a: Any, *args: Any, **kwargs: Any) -> str:
    """The text of an array's elements.

    >>> import treadle.numpy as np
    >>> np.array_str(np.arange(3))
    '[0 1 2]'
    """
    return np.array_str(_host(a), *args, **kwargs)
