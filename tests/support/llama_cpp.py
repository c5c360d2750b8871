"""llama.cpp's tokenizer, through the C functions of the library that `xllamacpp` brings.

Its Python interface has only a server. The C interface takes a model's parameters by value; they
are handed on as they come, in a buffer larger than any version's.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

_ROOM = 256
_VOCABULARY_ONLY = 72  # where the parameters say whether to leave the tensors out
_MOST_TOKENS = 100_000


class _Parameters(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * _ROOM)]


@cache
def _library() -> ctypes.CDLL:
    import xllamacpp

    (path,) = Path(xllamacpp.__file__).parent.glob("xllamacpp*.so")
    library = ctypes.CDLL(str(path))
    library.llama_model_default_params.restype = _Parameters
    library.llama_model_load_from_file.restype = ctypes.c_void_p
    library.llama_model_load_from_file.argtypes = [ctypes.c_char_p, _Parameters]
    library.llama_model_get_vocab.restype = ctypes.c_void_p
    library.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
    library.llama_model_free.argtypes = [ctypes.c_void_p]
    library.llama_vocab_is_eog.restype = ctypes.c_bool
    library.llama_vocab_is_eog.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    library.llama_tokenize.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32),
        ctypes.c_int32, ctypes.c_bool, ctypes.c_bool,
    ]  # fmt: skip
    _keep_quiet(library)
    return library


_Log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_ignore = _Log(lambda level, text, data: None)


def _keep_quiet(library: ctypes.CDLL) -> None:
    library.llama_log_set(_ignore, None)


class LlamaVocabulary:
    """The vocabulary of a GGUF file, as llama.cpp reads it; the file may have no tensors."""

    def __init__(self, path: Path) -> None:
        parameters = _library().llama_model_default_params()
        parameters.bytes[_VOCABULARY_ONLY] = 1
        self._model = _library().llama_model_load_from_file(str(path).encode(), parameters)
        assert self._model, f"llama.cpp cannot read {path}"
        self._vocabulary = _library().llama_model_get_vocab(self._model)
        self._tokens = (ctypes.c_int32 * _MOST_TOKENS)()

    def encode(self, text: str, special: bool, add_ends: bool) -> list[int]:
        data = text.encode()
        count = _library().llama_tokenize(
            self._vocabulary, data, len(data), self._tokens, _MOST_TOKENS, add_ends, special
        )
        assert count >= 0
        return self._tokens[:count]

    def ends(self, tokens: range) -> set[int]:
        """The tokens that end a generation."""
        is_end = _library().llama_vocab_is_eog
        return {token for token in tokens if is_end(self._vocabulary, token)}

    def close(self) -> None:
        _library().llama_model_free(self._model)
