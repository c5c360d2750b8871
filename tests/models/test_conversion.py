"""Folders of Hugging Face's libraries as GGUF files: names, numbers, tokens; and llama.cpp runs
what they become.

That the logits of each architecture are those of transformers (within 1e-6, and 1e-3 for Gemma,
whose activation llama.cpp reads from a table) was checked by hand: transformers is not among the
packages of the tests.
"""

from __future__ import annotations

import json
import math

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy as peer

from tests.support import llama_server
from treadle.cli.quantize import Choice, quantize_file
from treadle.core.errors import FormatError
from treadle.formats.gguf import read_gguf
from treadle.formats.gguf_values import encode
from treadle.formats.hugging_face import read_folder
from treadle.models.conversion import converted_folder
from treadle.models.conversion.rows import interleaved
from treadle.models.conversion.sizes import Config, rope_factors, sizes
from treadle.models.conversion.vocabulary import vocabulary

SIZES = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 8, "intermediate_size": 64, "max_position_embeddings": 64, "vocab_size": 263,
    "rms_norm_eps": 1e-6,
}  # fmt: skip
MOE = {
    "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "norm_topk_prob": True,
}  # fmt: skip
FAMILIES = {
    "llama": {"tie_word_embeddings": False}, "mistral": {"sliding_window": 32}, "qwen2": {},
    "qwen3": {}, "qwen3_moe": MOE, "phi3": {},
    "gemma3_text": {"num_hidden_layers": 6, "sliding_window": 16, "query_pre_attn_scalar": 8},
}  # fmt: skip
TOKENS = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "ab", "▁ab"]
# A tokenizer as SentencePiece's become: bytes, a space, two letters and what they merge to.
TOKENIZER = {
    "model": {
        "type": "BPE", "byte_fallback": True, "unk_token": "<unk>",
        "vocab": {text: at for at, text in enumerate(TOKENS)},
        "merges": [["a", "b"], "▁ ab"],
    },
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}]},
    "added_tokens": [
        {"id": 0, "content": "<unk>", "special": True},
        {"id": 262, "content": "<s>", "special": True},
    ],
    "post_processor": {
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}],
    },
}  # fmt: skip


def weights(kind, config):
    """Tensors of small random numbers by Hugging Face's names."""
    drawn = np.random.default_rng(3)
    width, hidden, depth = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * depth, config["num_key_value_heads"] * depth
    shapes = {"model.embed_tokens.weight": (263, width), "model.norm.weight": (width,)}
    if not kind.startswith("gemma"):
        shapes["lm_head.weight"] = (263, width)
    for layer in range(config["num_hidden_layers"]):
        part = {
            "input_layernorm": (width,), "post_attention_layernorm": (width,),
            "self_attn.o_proj": (width, queries),
            **{f"mlp.{name}_proj": (hidden, width) for name in ("gate", "up")},
            "mlp.down_proj": (width, hidden),
            "self_attn.q_proj": (queries, width),
            **{f"self_attn.{name}_proj": (keys, width) for name in "kv"},
        }  # fmt: skip
        if kind == "phi3":
            part = {name: part[name] for name in list(part)[:3]} | {
                "mlp.down_proj": (width, hidden), "mlp.gate_up_proj": (2 * hidden, width),
                "self_attn.qkv_proj": (queries + 2 * keys, width),
            }  # fmt: skip
        if kind.startswith(("qwen3", "gemma3")):
            part |= {f"self_attn.{name}_norm": (depth,) for name in "qk"}
        if kind.startswith("gemma3"):
            part |= {f"{at}_feedforward_layernorm": (width,) for at in ("pre", "post")}
        if kind == "qwen3_moe":
            part = {name: shape for name, shape in part.items() if not name.startswith("mlp")}
            part["mlp.gate"] = (4, width)
            for expert in range(4):
                for name in ("gate", "up"):
                    part[f"mlp.experts.{expert}.{name}_proj"] = (32, width)
                part[f"mlp.experts.{expert}.down_proj"] = (width, 32)
        shapes |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in part.items()}
        if kind == "qwen2":
            for name, extent in (("q", queries), ("k", keys), ("v", keys)):
                shapes[f"model.layers.{layer}.self_attn.{name}_proj.bias"] = (extent,)
    return {
        name: drawn.standard_normal(shape).astype(ml_dtypes.bfloat16)
        for name, shape in shapes.items()
    }


def make(folder, kind, tensors=None, tokenizer=TOKENIZER, **changes):
    """A folder of a small model."""
    folder.mkdir(exist_ok=True)
    config = SIZES | FAMILIES.get(kind, {}) | {"model_type": kind} | changes
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text('{"bos_token": "<s>", "unk_token": "<unk>"}')
    made = weights(kind, config) if tensors is None else tensors
    peer.save_file(made, folder / "model.safetensors")
    return made


@pytest.mark.parametrize("kind", FAMILIES)
def test_llama_cpp_runs_each_architecture(tmp_path, kind):
    folder, target = tmp_path / "model", tmp_path / "out.gguf"
    make(folder, kind)
    quantize_file(folder, target, Choice("q8_0"), overwrite=False)
    assert llama_server.answer(target, "ab ab", 3) == 3


def test_tensors_and_numbers_of_llama(tmp_path):
    given = make(tmp_path, "llama")
    found = converted_folder(tmp_path)
    assert found.metadata["general.architecture"] == "llama"
    assert found.metadata["llama.attention.head_count_kv"] == 2
    assert found.metadata["llama.rope.dimension_count"] == 8
    part = found.tensors["blk.1.ffn_down.weight"]
    assert (part.shape, part.type) == ((32, 64), "bf16")
    assert part.raw().tobytes() == given["model.layers.1.mlp.down_proj.weight"].tobytes()
    norm = found.tensors["blk.0.ffn_norm.weight"]
    original = given["model.layers.0.post_attention_layernorm.weight"].astype(np.float32)
    assert norm.raw().view(np.float32).tolist() == original.tolist()
    query = found.tensors["blk.0.attn_q.weight"].raw().view(ml_dtypes.bfloat16).reshape(32, 32)
    rows = given["model.layers.0.self_attn.q_proj.weight"]
    assert (query[:4] == rows[[0, 4, 1, 5]]).all()  # a head has 8 rows, whose halves rotate
    assert (query[8] == rows[8]).all()


def test_pairs_side_by_side_rotate_as_halves_do():
    drawn = np.random.default_rng(0)
    heads, depth = 3, 8
    query, key = drawn.standard_normal((2, heads * depth))
    angles = drawn.standard_normal(depth // 2)

    def halves(x):
        one, other = x.reshape(heads, 2, depth // 2).swapaxes(0, 1)
        return (one + 1j * other) * np.exp(1j * angles)

    def pairs(x):
        one, other = np.moveaxis(interleaved(heads, x).reshape(heads, depth // 2, 2), -1, 0)
        return (one + 1j * other) * np.exp(1j * angles)

    def score(one, other):
        return (one * other.conj()).real.sum(axis=1)

    assert np.allclose(score(halves(query), halves(key)), score(pairs(query), pairs(key)))


def test_norms_of_gemma_and_experts_of_qwen(tmp_path):
    given = make(tmp_path / "gemma", "gemma3_text")
    norm = converted_folder(tmp_path / "gemma").tensors["blk.5.post_ffw_norm.weight"]
    original = given["model.layers.5.post_feedforward_layernorm.weight"].astype(np.float32)
    assert norm.raw().view(np.float32).tolist() == (original + 1).tolist()
    given = make(tmp_path / "qwen", "qwen3_moe")
    experts = converted_folder(tmp_path / "qwen").tensors["blk.1.ffn_up_exps.weight"]
    assert experts.shape == (4, 32, 32)
    stacked = [given[f"model.layers.1.mlp.experts.{at}.up_proj.weight"] for at in range(4)]
    assert experts.raw().tobytes() == np.stack(stacked).tobytes()


def test_tied_weights_are_left_out(tmp_path):
    make(tmp_path, "llama", tie_word_embeddings=True)
    assert "output.weight" not in converted_folder(tmp_path).tensors


def test_frequencies_of_llama_3():
    scaling = {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }  # fmt: skip
    config = Config(SIZES | {"head_dim": 64, "rope_theta": 5e5, "rope_scaling": scaling}, "it")
    factors = rope_factors(config)["rope_freqs.weight"]
    waves = 2 * math.pi * 5e5 ** (np.arange(0, 64, 2) / 64)
    assert (factors[waves < 8192 / 4] == 1).all()
    assert np.allclose(factors[waves > 8192], 8)
    between = factors[(waves > 8192 / 4) & (waves < 8192)]
    assert len(between)
    assert ((between > 1) & (between < 8)).all()
    assert (np.diff(factors) >= 0).all()


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        ({"rope_type": "linear", "factor": 8.0},
         {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0}),
        ({"type": "yarn", "factor": 4.0, "beta_fast": 32, "original_max_position_embeddings": 32},
         {"rope.scaling.type": "yarn", "rope.scaling.original_context_length": 32}),
        ({"rope_type": "longrope", "original_max_position_embeddings": 32},
         {"rope.scaling.original_context_length": 32,
          "rope.scaling.attn_factor": math.sqrt(1 + math.log(2) / math.log(32))}),
    ],
)  # fmt: skip
def test_scaled_positions(scaling, expected):
    found = sizes(Config(SIZES | {"rope_scaling": scaling}, "it"), "qwen2")
    assert expected.items() <= {key.removeprefix("qwen2."): v for key, v in found.items()}.items()


def test_tokens_of_sentencepiece(tmp_path):
    make(tmp_path, "llama")
    found = converted_folder(tmp_path).metadata
    assert found["tokenizer.ggml.model"] == "llama"
    assert found["tokenizer.ggml.tokens"][258:] == ["a", "b", "ab", "▁ab", "<s>"]
    assert found["tokenizer.ggml.token_type"][[0, 1, 257, 262]].tolist() == [2, 6, 1, 3]
    assert found["tokenizer.ggml.scores"][[258, 260, 261]].tolist() == [-1e6, 0, -1]
    assert found["tokenizer.ggml.add_space_prefix"] is True
    assert found["tokenizer.ggml.add_bos_token"] is True
    assert found["tokenizer.ggml.bos_token_id"] == 262


def test_tokens_of_bytes_are_those_that_llama_cpp_wrote(tmp_path, smollm):
    """SmolLM2's GGUF file, whose tokens are put into a tokenizer.json as its folder has one."""
    expected = read_gguf(smollm).metadata
    tokens, types = expected["tokenizer.ggml.tokens"], expected["tokenizer.ggml.token_type"]
    tokenizer = {
        "model": {
            "type": "BPE", "vocab": {text: at for at, text in enumerate(tokens)},
            "merges": expected["tokenizer.ggml.merges"], "unk_token": None,
        },
        "added_tokens": [
            {"id": int(at), "content": tokens[at], "special": True}
            for at in np.flatnonzero(types == 3)
        ],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        ]},
    }  # fmt: skip
    make(tmp_path, "llama", tokenizer=tokenizer)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({
        "bos_token": "<|im_start|>", "eos_token": {"content": "<|im_end|>"},
        "unk_token": "<|endoftext|>", "pad_token": "<|im_end|>",
        "chat_template": expected["tokenizer.chat_template"],
    }))  # fmt: skip
    found = vocabulary(read_folder(tmp_path), len(tokens))
    for key in ("tokens", "merges", "token_type", "pre", "model", "add_bos_token"):
        key = f"tokenizer.ggml.{key}"
        assert np.array_equal(found[key], expected.get(key, False))
    for key in expected:
        if key.endswith("_token_id") or key == "tokenizer.chat_template":
            assert found[key] == expected[key]


def test_factors_of_phi_3():
    scaling = {
        "type": "longrope", "long_factor": [2, 3.5, 4, 5], "short_factor": [1.0] * 4,
        "original_max_position_embeddings": 32,
    }  # fmt: skip
    found = rope_factors(Config(SIZES | {"rope_scaling": scaling}, "it"))
    assert found["rope_factors_long.weight"].tolist() == [2, 3.5, 4, 5]
    assert found["rope_factors_short.weight"].tolist() == [1] * 4
    for wrong in ([1.0] * 3, [1, 2, 3, "x"], "x", None, [0, 1, 2, 3]):
        config = Config(SIZES | {"rope_scaling": scaling | {"long_factor": wrong}}, "it")
        with pytest.raises(FormatError, match="long_factor"):
            rope_factors(config)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mamba"}, "the architecture 'mamba' is not supported; supported are llama"),
        ({"model_type": ["llama"]}, r"the architecture \['llama'\] is not supported"),
        ({"hidden_size": "32"}, "hidden_size is '32', which cannot be a size"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0"),
        ({"num_attention_heads": 5}, "has 32 rows for 5 heads"),
        ({"rope_scaling": {"rope_type": "dynamic"}}, "of the kind 'dynamic' are not supported"),
        ({"rope_scaling": [1]}, "rope_scaling is not an object"),
    ],
)
def test_what_config_json_may_not_say(tmp_path, changes, message):
    make(tmp_path, "llama", weights("llama", SIZES), **changes)
    with pytest.raises(FormatError, match=message):
        converted_folder(tmp_path)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("llama", {"hidden_act": "relu"}, "hidden_act is 'relu'.* as with 'silu' or 'swish'"),
        ("qwen3_moe", {"norm_topk_prob": False}, "norm_topk_prob is False.* as with True"),
        ("gemma3_text", {"final_logit_softcapping": 5.0}, "final_logit_softcapping is 5.0"),
        ("gemma3_text", {"hidden_activation": "gelu"}, "hidden_activation is 'gelu'"),
    ],
)
def test_settings_that_files_have_no_key_for(tmp_path, kind, changes, message):
    """A model would be computed as another one."""
    make(tmp_path, kind, weights(kind, SIZES | FAMILIES[kind]), **changes)
    with pytest.raises(FormatError, match=message):
        converted_folder(tmp_path)


def test_windows_leave_the_context_where_all_layers_have_them():
    window = {"sliding_window": 16}
    found = sizes(Config(SIZES | window, "it"), "llama")
    assert (found["llama.context_length"], found["llama.attention.sliding_window"]) == (64, 16)
    found = sizes(Config(SIZES | window, "it"), "qwen2")
    assert found["qwen2.context_length"] == 16
    assert "qwen2.attention.sliding_window" not in found
    found = sizes(Config(SIZES | window | {"use_sliding_window": False}, "it"), "qwen2")
    assert found["qwen2.context_length"] == 64


def test_tensors_that_do_not_belong(tmp_path):
    tensors = weights("llama", SIZES)
    make(tmp_path, "llama", tensors | {"model.layers.0.mlp.extra.weight": np.ones(3, np.float32)})
    with pytest.raises(FormatError, match=r"'model\.layers\.0\.mlp\.extra\.weight' is not one"):
        converted_folder(tmp_path)
    make(tmp_path, "llama", tensors | {"model.norm.weight": np.ones(32, np.int64)})
    with pytest.raises(FormatError, match="is int64; supported are float32"):
        converted_folder(tmp_path)
    tensors = weights("qwen3_moe", SIZES)
    del tensors["model.layers.1.mlp.experts.2.up_proj.weight"]
    make(tmp_path, "qwen3_moe", tensors)
    with pytest.raises(FormatError, match=r"experts of blk\.1\.ffn_up_exps\.weight are missing"):
        converted_folder(tmp_path)
    make(tmp_path, "gemma3_text", layer_types=["full_attention"] * 6)
    with pytest.raises(FormatError, match="every sixth layer without a window"):
        converted_folder(tmp_path)


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ({}, "the tokenizer None is not supported; BPE is"),
        ({"model": {"type": "Unigram", "vocab": []}}, "the tokenizer 'Unigram' is not supported"),
        ({"model": {"vocab": {}, "merges": [7], "byte_fallback": True}}, "tokenizers are saved as"),
        ({"model": {"vocab": {}, "merges": []}}, "neither of bytes nor falls back to them"),
        ({"model": {"vocab": {}, "merges": []}, "pre_tokenizer": {"type": "Sequence",
          "pretokenizers": [{"type": "Split", "pattern": {"Regex": "x+"}}, {"type": "ByteLevel",
          "use_regex": False}]}}, r"text is split by \['x\+'\]"),
        ({"model": {"vocab": {}, "merges": []}, "added_tokens": [{"id": "x"}]}, "saved as"),
    ],
)  # fmt: skip
def test_what_tokenizer_json_may_not_say(tmp_path, tokenizer, message):
    make(tmp_path, "llama", tokenizer=tokenizer)
    with pytest.raises(FormatError, match=message):
        converted_folder(tmp_path)


def test_a_folder_without_a_tokenizer(tmp_path):
    make(tmp_path, "llama")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(FormatError, match=r"has no tokenizer\.json: transformers'"):
        converted_folder(tmp_path)


JUNK = (
    None,
    True,
    -1,
    0,
    7,
    2**70,
    0.5,
    math.nan,
    "",
    "x",
    [],
    [1],
    [[]],
    {},
    {"a": 1},
    ["a", "b"],
)


def places(value, path=()):
    """Each value within a JSON value, by its keys; of long lists and objects the first ones."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items)[: 6 if path else 20]:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def replaced(value, path, new):
    """A copy of a JSON value with another one at a place."""
    made = json.loads(json.dumps(value))
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return made


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_junk_at_each_place_of_the_json_files(tmp_path, name):
    """It is refused in words, or does not matter."""
    scaling = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 32}
    split = {"type": "Split", "pattern": {"Regex": "x"}, "behavior": "Isolated"}
    steps = {"type": "Sequence", "pretokenizers": [split, {"type": "Metaspace"}]}
    make(
        tmp_path, "qwen3_moe", tokenizer=TOKENIZER | {"pre_tokenizer": steps}, rope_scaling=scaling
    )
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": {"content": "<s>"}, "chat_template": [{"name": "default"}]})
    )
    original = json.loads((tmp_path / name).read_text())
    converted_folder(tmp_path)
    refused = 0
    for path in places(original):
        for junk in JUNK:
            (tmp_path / name).write_text(json.dumps(replaced(original, path, junk)))
            try:
                metadata = converted_folder(tmp_path).metadata
            except FormatError:
                refused += 1
            else:
                assert all(encode(value, key) for key, value in metadata.items())
    assert refused > 10
