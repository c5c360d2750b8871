"""PyTorch's built-in layers, made from treadle's.

For each of treadle's layers there is a class of the same name and bases here. What it does, the
class of treadle does, on an object of its own that shares the attributes of the layer: it is given
treadle's tensors, and its results are shown as PyTorch's. Layers that a layer makes for itself are
replaced by those of PyTorch's interface over the same attributes.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, ClassVar

import treadle.nn as inner_nn
from treadle.core.dtypes import DType
from treadle.nn.function_module import FunctionModule
from treadle.nn.module import Module as InnerModule
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.devices import place
from treadle.torch.dtypes import get_default_dtype, integers
from treadle.torch.errors import CAUGHT, of_another_library, translated
from treadle.torch.nn import containers, functional
from treadle.torch.nn.module import Module
from treadle.torch.nn.sequences import OverPacked
from treadle.torch.operations import neural, shapes
from treadle.torch.operations.bounds import looking
from treadle.torch.tensors import Tensor, kept, unwrapped, wrap, wrapped

# Methods that subclasses of PyTorch's layers call or replace, beside the public ones.
_METHODS = ("_reset_parameters",)


class Layer(Module):
    """The base of layers that treadle has: `_native` is the class that computes."""

    _native: ClassVar[type[InnerModule]]

    def _as_native(self) -> Any:
        """The layer as one of treadle's, with the same attributes."""
        native = self._native
        made: Any = object.__new__(native)
        own = made.__dict__ = self.__dict__
        if "_plain_tensors" in own or "_computed" in own:
            names = (*own.get("_plain_tensors", ()), *own.get("_computed", ()))
            values = {name: unwrapped(getattr(self, name, None)) for name in names}
            made.__dict__ = {**own, **values}
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_forward_hooks" not in state:
            return
        # A layer that PyTorch has saved.
        own, native = self.__dict__, self._native
        if issubclass(native, FunctionModule):
            names = inspect.signature(native.__init__).parameters
            own["_settings"] = tuple([name for name in names if name in own])
        for name, value in state.items():
            if isinstance(value, types.FunctionType):
                own[name] = CalledByLayers(value)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if type(value) is Tensor and name in self.__dict__:
            # Neither a parameter nor a buffer, as a weight that is computed before each call.
            self.__dict__.setdefault("_plain_tensors", {})[name] = None


class CalledByLayers:
    """A function of PyTorch's tensors that a layer of treadle's calls, as an activation."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function makes of treadle's tensors."""
        return unwrapped(self._function(*wrapped(args), **wrapped(kwargs)))


def _argument(value: Any) -> Any:
    if isinstance(value, (type, DType, InnerModule, Tensor)) or not callable(value):
        return unwrapped(value)
    return CalledByLayers(value)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(self: Layer, *args: Any, **kwargs: Any) -> Any:
        given = [each._inner if type(each) is Tensor else unwrapped(each) for each in args]
        if kwargs:
            kwargs = unwrapped(kwargs)
        try:
            result = function(self._as_native(), *given, **kwargs)
        except CAUGHT as error:
            foreign = of_another_library([*given, *kwargs.values()], type(self).__name__)
            raise foreign or translated(error) from None
        if type(result) is not Inner:
            return wrapped(result)
        # What is unchanged, or changed in place, is the same object.
        return args[0] if given and result is given[0] else wrap(result)

    return method


def _property(function: Any) -> property:
    """A property whose values are, or have in lists, parameters of the layer."""

    def shown(value: Any) -> Any:
        if isinstance(value, list):
            return [shown(each) for each in value]
        return kept(value) if type(value) is Inner else value

    @functools.wraps(function)
    def get(self: Layer) -> Any:
        return shown(function(self._as_native()))

    return property(get)


def _class_method(function: Callable[..., Any]) -> Any:
    @functools.wraps(function)
    def method(cls: type[Layer], *args: Any, **kwargs: Any) -> Any:
        return wrapped(function(cls, *unwrapped(args), **unwrapped(kwargs)))

    return classmethod(method)


def _static_method(function: Callable[..., Any]) -> Any:
    """A function that makes a tensor, on the default device unless another is named."""

    @functools.wraps(function)
    def method(*args: Any, **kwargs: Any) -> Any:
        return wrapped(function(*unwrapped(args), **_placed(unwrapped(kwargs))))

    return staticmethod(method)


def _placed(options: dict[str, Any]) -> dict[str, Any]:
    """The options `device` and `dtype`, with PyTorch's defaults."""
    dtype = options.get("dtype")
    return {
        **options,
        "device": place(options.get("device")),
        "dtype": get_default_dtype() if dtype is None else dtype,
    }


def _constructor(function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)
    has_place = "device" in signature.parameters

    @functools.wraps(function)
    def construct(self: Layer, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        given = bound.arguments
        for name, value in list(given.items())[1:]:
            given[name] = _argument(value)
        if has_place and given.get("_weight") is None:
            given.update(_placed(given))
        given["self"] = self._as_native()
        try:
            function(*bound.args, **bound.kwargs)
        except CAUGHT as error:
            raise translated(error) from None
        _count_widely(self)
        _adopt(self)
        _drawn_by_subclass(self)

    return construct


def _count_widely(layer: InnerModule) -> None:
    """Have a layer count batches in 64 bits, where its device has them."""
    counter = layer._buffers.get("num_batches_tracked")
    if counter is not None:
        layer._buffers["num_batches_tracked"] = counter.to(integers(counter.device))


def _adopt(layer: InnerModule) -> None:
    """Replace layers of treadle's within a layer by those of PyTorch's interface."""
    for name, child in layer._modules.items():
        if child is not None and not isinstance(child, Module):
            kind = made_from(type(child))
            if isinstance(layer, made_from(inner_nn.MultiheadAttention)):
                kind = _named(_PROJECTION)
            made: Any = object.__new__(kind)
            made.__dict__ = child.__dict__
            layer._modules[name] = made
            _adopt(made)


def _drawn_by_subclass(layer: Layer) -> None:
    """The constructors of layers call `reset_parameters`: that of a subclass, if it has one."""
    for kind in type(layer).__mro__:
        if "reset_parameters" in vars(kind):
            if "_native" not in vars(kind):
                layer.reset_parameters()
            return


def _named(name: str) -> Any:
    found = globals().get(name)
    return __getattr__(name) if found is None else found


_MADE: dict[type, type] = {
    InnerModule: Layer,
    **{
        getattr(inner_nn, name): getattr(containers, name)
        for name in ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
    },
}
# Classes that PyTorch has under another name.
_NAMES = {
    "_Convolution": "_ConvNd", "Recurrent": "RNNBase", "_Running": "_NormBase",
    "_Cell": "RNNCellBase", "Loss": "_Loss",
    "_Dropout": "_DropoutNd", "BatchNorm": "_BatchNorm",
}  # fmt: skip


class _CTCLoss(inner_nn.CTCLoss):
    """With PyTorch's gradient."""

    def forward(
        self, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any
    ) -> Inner:
        settings = self.blank, self.reduction, self.zero_infinity
        return neural.ctc_loss(log_probs, targets, input_lengths, target_lengths, *settings)


class _NLLLoss(inner_nn.NLLLoss):
    """Looks at the target classes on the CPU."""

    def forward(self, input: Any, target: Any) -> Inner:
        neural.check_classes(input, target, self.ignore_index)
        return super().forward(input, target)


class _CrossEntropyLoss(inner_nn.CrossEntropyLoss):
    """Looks at the target classes on the CPU."""

    def forward(self, input: Any, target: Any) -> Inner:
        neural.check_classes(input, target, self.ignore_index)
        return super().forward(input, target)


class _BCELoss(inner_nn.BCELoss):
    """Looks at the probabilities on the CPU."""

    def forward(self, input: Any, target: Any) -> Inner:
        neural.check_probabilities(input)
        return super().forward(input, target)


_SECOND_VERSIONS = frozenset(
    {f"{kind}Norm{axes}d" for kind in ("Batch", "Instance") for axes in (1, 2, 3)}
)


class _Flatten(inner_nn.Flatten):
    # A view, where treadle's is a copy.
    _function = staticmethod(shapes.flatten)  # type: ignore[assignment]


# Layers whose own class computes.
_OWN = {
    inner_nn.Flatten: _Flatten,
    inner_nn.BCELoss: _BCELoss,
    inner_nn.CTCLoss: _CTCLoss,
    inner_nn.CrossEntropyLoss: _CrossEntropyLoss,
    inner_nn.NLLLoss: _NLLLoss,
}


def _computing(native: type) -> type:
    """The class that computes: treadle's, with the function of PyTorch's interface if that is
    another one."""
    if native in _OWN:
        return _OWN[native]
    if native in (inner_nn.RNN, inner_nn.LSTM, inner_nn.GRU):
        return type(native.__name__, (native, OverPacked), {})
    if native in (inner_nn.Embedding, inner_nn.EmbeddingBag):
        forward = looking(native.forward)  # type: ignore[attr-defined]
        return type(native.__name__, (native,), {"forward": forward})
    name = getattr(vars(native).get("_function"), "__name__", "")
    if name not in functional.OWN:
        return native
    function = getattr(functional.OWN[name], name)
    return type(native.__name__, (native,), {"_function": staticmethod(function)})


def made_from(native: type) -> type:
    """The class of PyTorch's interface for one of treadle's layers."""
    known = _MADE.get(native)
    if known is not None:
        return known
    bases = tuple(dict.fromkeys(made_from(base) for base in native.__bases__ if base is not object))
    name = _NAMES.get(native.__name__, native.__name__)
    computing = _computing(native)
    members: dict[str, Any] = {
        "_native": computing,
        "__doc__": native.__doc__,
        "__module__": __name__,
        "__qualname__": name,
    }
    if native.__name__ in _SECOND_VERSIONS:
        members["_version"] = 2  # of the state, which has had a count of batches since
    for each, value in {**vars(native), **vars(computing)}.items():
        if each == "__init__":
            members[each] = _constructor(value)
        elif each.startswith("__"):
            continue
        elif isinstance(value, types.FunctionType):
            if not each.startswith("_") or each in _METHODS:
                members[each] = _method(value)
        elif isinstance(value, property):
            members[each] = _property(value.fget)
        elif isinstance(value, classmethod):
            members[each] = _class_method(value.__func__)
        elif isinstance(value, staticmethod):
            if not each.startswith("_"):
                members[each] = _static_method(value.__func__)
        elif not callable(value):
            members[each] = value
    made = _MADE[native] = type(name, bases or (Layer,), members)
    return made


def __getattr__(name: str) -> Any:
    if name in inner_nn.__all__:
        found = made_from(getattr(inner_nn, name))
    elif name == _PROJECTION:
        linear = made_from(inner_nn.Linear)
        found = type(name, (linear,), {"_native": inner_nn.Linear, "__module__": __name__})
    else:
        found = made_from(_base(name))
    globals()[name] = found
    return found


# The class of the last product in `MultiheadAttention`, which programs tell from others.
_PROJECTION = "NonDynamicallyQuantizableLinear"


_BASES = {
    "_BatchNorm": "BatchNorm1d", "_InstanceNorm": "InstanceNorm1d", "_NormBase": "BatchNorm1d",
    "_ConvNd": "Conv1d", "RNNBase": "RNN", "RNNCellBase": "RNNCell",
    "_Loss": "MSELoss", "_WeightedLoss": "NLLLoss", "_DropoutNd": "Dropout",
}  # fmt: skip


def _base(name: str) -> type:
    if name in _BASES:
        for kind in getattr(inner_nn, _BASES[name]).__mro__:
            if _NAMES.get(kind.__name__, kind.__name__) == name:
                found: type = kind
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
