"""Methods, operators and attributes of tensors that are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from treadle.core.deferred_imports import DeferredAttribute, importing
from treadle.torch.table import Entry, entries, function_of

OPERATORS = (
    "abs add and bool contains deepcopy div dlpack dlpack_device eq float floordiv format ge gt "
    "iadd iand ifloordiv ilshift imatmul imod imul index int invert ior ipow irshift isub iter "
    "itruediv ixor le len lshift lt matmul mod mul ne neg or pos pow radd rand rdiv rfloordiv "
    "rlshift rmatmul rmod rmul ror rpow rrshift rshift rsub rtruediv rxor array array_wrap "
    "complex getitem reduce_ex repr reversed setitem sub truediv xor"
)
ATTRIBUTES = {
    "treadle.torch.attributes": (
        "_base _version device dtype grad grad_fn is_leaf ndim requires_grad retains_grad shape "
        "data T mT H mH"
    ),
    "treadle.torch.attributes:PARTS": "real imag",
    "treadle.torch.conversions": (
        "is_cpu is_cuda is_ipu is_maia is_meta is_mkldnn is_mps is_mtia is_nested is_quantized "
        "is_sparse is_sparse_csr is_vulkan is_xla is_xpu itemsize layout nbytes"
    ),
}
PLAIN = {
    "treadle.torch.attributes": (
        "backward detach dim item nelement=numel ndimension=dim numel numpy register_hook "
        "register_post_accumulate_grad_hook requires_grad_ retain_grad size "
        "stride tolist"
    ),
    "treadle.torch.conversions": (
        "apply_ contiguous cpu cuda data_ptr element_size get_device is_contiguous new pin_memory "
        "share_memory_ storage_offset to type type_as"
    ),
    # Of dense tensors most of these are errors that say so.
    "treadle.torch.sparse.conversions:METHODS": (
        "ccol_indices coalesce col_indices crow_indices dense_dim indices is_coalesced row_indices "
        "sparse_dim to_sparse to_sparse_coo to_sparse_csc to_sparse_csr values"
    ),
    "treadle.torch.sparse.arithmetic": "sparse_mask",
    "treadle.torch.sparse.products": "smm",
    "treadle.torch.conversions:CASTS": (
        "bfloat16 bool byte cdouble cfloat char double float half int long short"
    ),
}


_OF_FUNCTIONS = str.maketrans("", "", "fo")  # the other flags are methods


class _Attribute(DeferredAttribute):
    """A function of the tensor, or a property, as an attribute."""

    def found(self) -> Any:
        """The property, from here on that of the class."""
        value = super().found()
        value = value if isinstance(value, property) else property(value)
        setattr(self._owner, self._name, value)
        return value

    def __set__(self, instance: object, value: object) -> None:
        self.found().__set__(instance, value)


class _Method(DeferredAttribute):
    """A function of the table as a method."""

    def __init__(self, entry: Entry, flag: str) -> None:
        super().__init__(entry.module, entry.function)
        self._entry, self._adapt = entry, {"m": "adapted", "i": "in_place", "v": "shown"}[flag]

    def found(self) -> Any:
        """The method, from here on that of the class."""
        with importing():
            adapting = import_module("treadle.torch.adapting")
            adapt, function = getattr(adapting, self._adapt), function_of(self._entry)
            is_plain = self._adapt == "adapted"
            method = adapt(function, self._entry.name) if is_plain else adapt(function)
        setattr(self._owner, self._name, method)
        return method


def add_to(tensor: type) -> None:
    """Add all of them to the class."""
    for name in dict.fromkeys(OPERATORS.split()):
        special = f"__{name}__"
        if special in vars(tensor):
            delattr(tensor, special)
        DeferredAttribute("treadle.torch.operators:OPERATORS", special).add_to(tensor, special)
    for table, kind in ((ATTRIBUTES, _Attribute), (PLAIN, DeferredAttribute)):
        for place, names in table.items():
            for each in names.split():
                name, _, function = each.partition("=")
                kind(place, function or name).add_to(tensor, name)
    for entry in entries():
        for flag in entry.flags.translate(_OF_FUNCTIONS):
            name = entry.name if flag == "m" else f"{entry.name}_"
            _Method(entry, flag).add_to(tensor, name)
