"""Which type each tensor of a model gets when a file is quantized: llama.cpp's recipes.

Most weights get the type that a recipe is named for. The last product of a model, which makes the
logits, gets more bits, since errors there change tokens directly. The mixed recipes (`…_k_m`) also
give more bits to values and to the products back from the hidden layer, in half of the layers.
What is small or delicate stays as it is: vectors, norms, the routers of experts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from treadle.formats.ggml_types import TYPES


@dataclass(frozen=True)
class Recipe:
    """A way to quantize a model."""

    name: str
    file_type: int  # llama.cpp's number for `general.file_type`
    weights: str  # the type of most weights
    output: str  # of the matrix that makes the logits
    better: str = ""  # of values and `ffn_down` in some layers
    joined: str = ""  # of query, key and value in one matrix


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("f32", 0, "f32", "f32"),
        Recipe("f16", 1, "f16", "f16"),
        Recipe("bf16", 32, "bf16", "bf16"),
        Recipe("q8_0", 7, "q8_0", "q8_0"),
        Recipe("q6_k", 18, "q6_k", "q6_k"),
        Recipe("q5_k_m", 17, "q5_k", "q6_k", "q6_k", "q6_k"),
        Recipe("q5_k", 16, "q5_k", "q6_k"),
        Recipe("q5_1", 9, "q5_1", "q6_k"),
        Recipe("q5_0", 8, "q5_0", "q6_k"),
        Recipe("q4_k_m", 15, "q4_k", "q6_k", "q6_k", "q5_k"),
        Recipe("q4_k", 14, "q4_k", "q6_k"),
        Recipe("q4_1", 3, "q4_1", "q6_k"),
        Recipe("q4_0", 2, "q4_0", "q6_k"),
        Recipe("iq4_nl", 25, "iq4_nl", "q6_k"),
        Recipe("iq4_xs", 30, "iq4_xs", "q6_k"),
        Recipe("mxfp4", 38, "mxfp4", "q8_0"),
        Recipe("q3_k", 11, "q3_k", "q6_k"),
        Recipe("q2_k", 10, "q2_k", "q6_k"),
    )
}

# The type for rows that are not whole blocks of 256: one of about as many bits in blocks of 32.
_SMALLER = {
    "q2_k": "iq4_nl", "q3_k": "iq4_nl", "iq4_xs": "iq4_nl", "q4_k": "q5_0", "q5_k": "q5_1",
    "q6_k": "q8_0",
}  # fmt: skip
_LEFT = re.compile(
    r"_norm\.weight$|ffn_gate_inp|position_embd|token_types|ssm_conv1d|shortconv|altup|laurel"
    r"|per_layer_model_proj|time_mix_|attn_rel_b|_sinks"
)
_LAYER = re.compile(r"blk\.(\d+)\.(attn_v|attn_qkv|ffn_down(?:_exps|_shexp)?)\.weight")


def types_of_recipe(shapes: Mapping[str, tuple[int, ...]], recipe: Recipe) -> dict[str, str]:
    """The types of the tensors that a recipe changes, by their names; of others nothing is said."""
    return {
        name: type_that_fits(wanted, shapes[name])
        for name, wanted in wanted_types(shapes, recipe).items()
    }


def wanted_types(shapes: Mapping[str, tuple[int, ...]], recipe: Recipe) -> dict[str, str]:
    """`types_of_recipe`, if all rows were whole blocks."""
    layers = {
        kind: sorted({int(found[1]) for found in _matches(shapes) if found[2] == kind})
        for kind in {found[2] for found in _matches(shapes)}
    }
    last = "output.weight" if "output.weight" in shapes else "token_embd.weight"
    types = {}
    for name, shape in shapes.items():
        if len(shape) < 2 or not name.endswith("weight") or _LEFT.search(name):
            continue
        wanted = recipe.weights
        found = _LAYER.fullmatch(name)
        if name == last:
            wanted = recipe.output
        elif found and found[2] == "attn_qkv":
            wanted = recipe.joined or wanted
        elif found and recipe.better:
            among = layers[found[2]]
            if _has_more_bits(among.index(int(found[1])), len(among)):
                wanted = recipe.better
        types[name] = wanted
    return types


OF_VECTORS = ("f32", "f16")
"""The types that vectors and the weights of norms may have."""


def stays(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor is never quantized: a vector, or the weights of a norm."""
    return len(shape) < 2 or name.endswith("_norm.weight")


def type_that_fits(wanted: str, shape: tuple[int, ...]) -> str:
    """A type for rows of this length: the one that is wanted, if they are whole blocks of it."""
    if shape[-1] % TYPES[wanted].elements:
        wanted = _SMALLER.get(wanted, wanted)
    return "f16" if shape[-1] % TYPES[wanted].elements else wanted


def _matches(names: Iterable[str]) -> list[re.Match[str]]:
    return [found for name in names if (found := _LAYER.fullmatch(name))]


def _has_more_bits(layer: int, layers: int) -> bool:
    """Whether a layer is in the first or last eighth, or every third between."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2
