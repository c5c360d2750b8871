"""Adapters: what they compute, what they learn, and the files that PEFT reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.models.peer_models import drawn, references, write_peer
from treadle.formats.safetensors_files import read_safetensors
from treadle.models.lora import Lora
from treadle.models.model import Model

PROMPT = list(range(3, 75))  # two full pages, which another generation shares


def peer(
    name: str, folder: Path, device: str = "cpu", kind: str | None = "q8_0", **changed: Any
) -> Model:
    context = 64 if name == "phi3-short" else None
    path = write_peer(name, folder / f"{name}.gguf", kind, **changed)
    return td.models.load(path, device, cache="f32", activations="float", context=context)


def stir(lora: Lora, size: float = 0.1) -> None:
    """Adapters that change something: `b` begins with zeros."""
    numbers = np.random.default_rng(5)
    with td.no_grad():
        for adapter in lora.adapters:
            shape = adapter.b.shape
            values = (numbers.standard_normal(shape) * size).astype(np.float32)
            adapter.b[...] = td.asarray(values, device=adapter.b.device)


@pytest.mark.parametrize("name", ["mistral", "qwen3moe", "phi3-short", "gemma3"])
def test_whole_texts_give_what_the_cache_gives(name: str, tmp_path: Path) -> None:
    model = peer(name, tmp_path)
    tokens = references()[name]["tokens"]
    with td.no_grad():
        found = model.training_logits(tokens).numpy()
    np.testing.assert_allclose(found, model.logits(tokens).numpy(), atol=1e-3)


def check_gradients(name: str, folder: Path, device: str) -> None:
    """Derivatives along drawn directions, beside differences of losses in float64."""
    model = peer(name, folder, device, block_count=1)
    lora = model.add_lora(rank=2, alpha=4, seed=1)
    stir(lora)
    tokens = np.array([references()[name]["tokens"][at : at + 9] for at in (0, 9)])
    model.loss(tokens).backward()
    parameters = list(lora.parameters())
    gradients = [each.grad.numpy().astype(np.float64) for each in parameters]
    values = [each.detach().numpy().astype(np.float64) for each in parameters]
    numbers = np.random.default_rng(2)

    def loss(directions: list[np.ndarray], step: float) -> float:
        with td.no_grad():
            for each, value, way in zip(parameters, values, directions, strict=True):
                moved = (value + step * way).astype(np.float32)
                each[...] = td.asarray(moved, device=model.device)
            logits = model.training_logits(tokens).numpy().astype(np.float64)
        largest = logits.max(-1, keepdims=True)
        sums = np.log(np.exp(logits - largest).sum(-1)) + largest[..., 0]
        chosen = np.take_along_axis(logits[:, :-1], tokens[:, 1:, None], 2)[..., 0]
        return float((sums[:, :-1] - chosen).mean())

    for kind in (0, 1):  # directions of all `a`, then of all `b`
        ways = [
            numbers.standard_normal(value.shape) * (index % 2 == kind)
            for index, value in enumerate(values)
        ]
        step = 1e-3
        wanted = (loss(ways, step) - loss(ways, -step)) / (2 * step)
        found = sum(float((g * way).sum()) for g, way in zip(gradients, ways, strict=True))
        scale = float(np.sqrt(sum(float((g**2).sum()) for g in gradients)))
        assert abs(found - wanted) < 5e-3 * scale, (kind, found, wanted)
        assert abs(wanted) > 0.05 * scale  # the check sees something


@pytest.mark.parametrize("name", ["llama-3", "qwen3moe"])
def test_gradients_are_those_of_differences(name: str, tmp_path: Path) -> None:
    check_gradients(name, tmp_path, "cpu")


def test_gradients_on_webgpu(tmp_path: Path) -> None:
    check_gradients("llama-3", tmp_path, "webgpu")


def attended_in_numpy(query, key, value, cap, window, sinks):  # type: ignore[no-untyped-def]
    """Attention with caps and sinks in float64, of arrays (length, heads, depth)."""
    length, heads, depth = query.shape
    found = np.zeros(query.shape)
    group = heads // key.shape[1]
    for head in range(heads):
        scores = query[:, head] @ key[:, head // group].T * depth**-0.5
        scores = np.tanh(scores / cap) * cap if cap else scores
        for at in range(length):
            seen = slice(max(0, at + 1 - window) if window else 0, at + 1)
            weights = np.exp(scores[at, seen])
            total = weights.sum() + (0 if sinks is None else np.exp(sinks[head]))
            found[at, head] = weights @ value[seen, head // group] / total
    return found


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
@pytest.mark.parametrize(("cap", "window", "sinks"), [(2.0, 0, False), (0.5, 3, True)])
def test_caps_and_sinks(cap: float, window: int, sinks: bool, device: str) -> None:
    from treadle.models.config import DecoderConfig, RopeConfig
    from treadle.models.rope import Rotary
    from treadle.models.whole_attention import Seen, Texts, attend_whole

    length, heads, keys, depth = 7, 4, 2, 8
    numbers = np.random.default_rng(3)
    arrays = [numbers.standard_normal((length, n, depth)) for n in (heads, keys, keys)]
    sink_values = numbers.standard_normal(heads) if sinks else None
    config = DecoderConfig(
        "llama", "", 1, heads * depth, heads, keys, depth, 8, 9, 16, 1e-6,
        RopeConfig(2, 1.0, 1.0), attention_cap=cap,
    )  # fmt: skip
    rotary = Rotary(np.zeros(1))  # nothing turns
    put: Callable[[Any], Any] = lambda x: td.asarray(np.asarray(x, np.float32), device=device)  # noqa: E731
    found = attend_whole(
        config, Texts(td.zeros(length, dtype=td.int32, device=device), length),
        tuple(put(x.reshape(length, -1)) for x in arrays), rotary,
        put(rotary.table(16).reshape(-1)),
        Seen(None, window, None, None if sink_values is None else put(sink_values)),
    )  # fmt: skip
    wanted = attended_in_numpy(*arrays, cap, window, sink_values).reshape(length, -1)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-5)


# --- learning ------------------------------------------------------------------------------------


def test_a_compiled_step_learns_and_generation_follows(tmp_path: Path) -> None:
    model = peer("llama", tmp_path, block_count=1)
    before = model.generate(PROMPT, max_tokens=4)
    before.text()
    lora = model.add_lora(rank=4, seed=0)
    same = model.generate(PROMPT, max_tokens=4)
    same.text()
    assert same.tokens == before.tokens  # new adapters change nothing
    answer = [7, 70, 17, 2]
    tokens = np.array([PROMPT + answer])
    mask = np.arange(tokens.shape[1])[None] >= len(PROMPT)
    optimizer = td.optim.AdamW(lora.parameters(), lr=0.02)

    @td.compile
    def step(tokens: td.Tensor, mask: td.Tensor) -> td.Tensor:
        optimizer.zero_grad()
        loss = model.loss(tokens, mask)
        loss.backward()
        optimizer.step()
        return loss.detach()

    given = td.asarray(tokens.astype(np.int32), device="cpu"), td.asarray(mask, device="cpu")
    losses = [step(*given).item() for _ in range(60)]
    assert step.traces == 1
    assert losses[-1] < 0.3 * losses[0]
    learned = model.generate(PROMPT, max_tokens=4)  # its first pages were filled before
    learned.text()
    wanted, text = [], list(PROMPT)
    for _ in range(4):
        text.append(int(model.logits(text)[-1].argmax()))
        wanted.append(text[-1])
    assert learned.tokens == wanted
    assert wanted != before.tokens
    model.remove_lora()
    after = model.generate(PROMPT, max_tokens=4)
    after.text()
    assert after.tokens == before.tokens


def test_a_mask_says_what_counts(tmp_path: Path) -> None:
    model = peer("llama", tmp_path)
    tokens = np.array([[5, 9, 11, 4, 8], [7, 30, 2, 0, 0]])
    mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
    scores = model.training_logits(tokens).numpy().astype(np.float64)
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    each = -np.take_along_axis(logs[:, :-1], tokens[:, 1:, None], 2)[..., 0]
    assert model.loss(tokens).item() == pytest.approx(each.mean(), rel=1e-5)
    wanted = each[mask[:, 1:]].mean()
    assert model.loss(tokens, mask).item() == pytest.approx(wanted, rel=1e-5)
    on_device = td.asarray(mask, device="cpu")
    assert model.loss(tokens, on_device).item() == pytest.approx(wanted, rel=1e-5)
    one = np.array([5, 9, 11, 4, 8])
    np.testing.assert_allclose(model.training_logits(one).numpy(), scores[0], atol=1e-4)


def test_dropout_is_for_learning_alone(tmp_path: Path) -> None:
    model = peer("llama", tmp_path)
    lora = model.add_lora(rank=2, dropout=0.5, seed=1)
    stir(lora)
    tokens = [5, 9, 11, 4]
    losses = {model.loss(tokens).item() for _ in range(3)}
    assert len(losses) == 3
    with td.no_grad():
        assert len({model.loss(tokens).item() for _ in range(3)}) == 1
    lora.eval()
    assert len({model.loss(tokens).item() for _ in range(3)}) == 1


def test_a_seed_draws_the_same_and_layers_may_be_chosen(tmp_path: Path) -> None:
    model = peer("llama", tmp_path)
    first = model.add_lora(targets=("q_proj", "ffn_down"), seed=3, layers=(1, 2))
    assert first.names == [
        "blk.1.attn_q", "blk.1.ffn_down", "blk.2.attn_q", "blk.2.ffn_down",
    ]  # fmt: skip
    values = [each.numpy() for each in first.parameters()]
    model.remove_lora()
    again = model.add_lora(targets=("attn_q", "down_proj"), seed=3, layers=(1, 2))
    for mine, other in zip(again.parameters(), values, strict=True):
        np.testing.assert_array_equal(mine.numpy(), other)


# --- files ---------------------------------------------------------------------------------------

# What PEFT 0.21 writes for these targets, with transformers 5's names.
_STEMS = {
    "llama": {
        "self_attn.q_proj": (64, 64), "self_attn.k_proj": (32, 64), "self_attn.v_proj": (32, 64),
        "self_attn.o_proj": (64, 64), "mlp.gate_proj": (96, 64), "mlp.up_proj": (96, 64),
        "mlp.down_proj": (64, 96),
    },
    "phi3": {
        "self_attn.qkv_proj": (128, 64), "self_attn.o_proj": (64, 64),
        "mlp.gate_up_proj": (192, 64), "mlp.down_proj": (64, 96),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", _STEMS)
def test_saved_adapters_have_the_names_of_peft(name: str, tmp_path: Path) -> None:
    model = peer(name, tmp_path)
    stir(model.add_lora(rank=3, alpha=6, dropout=0.1, seed=1))
    model.save_lora(tmp_path / "adapter")
    file = read_safetensors(tmp_path / "adapter" / "adapter_model.safetensors")
    wanted = {}
    for layer in range(3):
        for stem, (rows, columns) in _STEMS[name].items():
            full = f"base_model.model.model.layers.{layer}.{stem}"
            wanted[f"{full}.lora_A.weight"] = (3, columns)
            wanted[f"{full}.lora_B.weight"] = (rows, 3)
    assert {key: tuple(each.shape) for key, each in file.tensors.items()} == wanted
    assert {each.dtype.name for each in file.tensors.values()} == {"float32"}
    assert file.metadata["format"] == "pt"
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert config == {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 3, "lora_alpha": 6.0,
        "base_model_name_or_path": f"small {name}", "lora_dropout": 0.1, "bias": "none",
        "target_modules": [stem.split(".")[1] for stem in _STEMS[name]], "fan_in_fan_out": False,
        "inference_mode": True, "use_rslora": False, "use_dora": False, "modules_to_save": None,
    }  # fmt: skip


def test_rows_of_queries_and_keys_are_in_the_order_of_transformers(tmp_path: Path) -> None:
    """A row of `b` in a file belongs to the row of the weight there."""
    model = peer("llama", tmp_path, kind=None)
    lora = model.add_lora(rank=1, targets=("attn_q", "attn_k", "attn_v"))
    with td.no_grad():
        for name, adapter in zip(lora.names, lora.adapters, strict=True):
            matrix = dict(_projections(model))[name].matrix
            adapter.b[...] = matrix[:, :1]  # as rows lie in the GGUF file
    model.save_lora(tmp_path / "adapter")
    file = read_safetensors(tmp_path / "adapter" / "adapter_model.safetensors")
    weights = drawn("llama", references()["llama"]["shapes"])
    for part in ("q_proj", "k_proj", "v_proj"):
        stem = f"model.layers.1.self_attn.{part}"
        found = file.array(f"base_model.model.{stem}.lora_B.weight")
        np.testing.assert_array_equal(found, weights[f"{stem}.weight"][:, :1])


def _projections(model: Model):  # type: ignore[no-untyped-def]
    from treadle.models.lora import projections_of

    return projections_of(model.decoder).items()


@pytest.mark.parametrize("name", ["llama", "phi3"])
def test_a_loaded_adapter_computes_what_the_saved_one_did(name: str, tmp_path: Path) -> None:
    model = peer(name, tmp_path)
    tokens = references()[name]["tokens"]
    plain = model.logits(tokens).numpy()
    stir(model.add_lora(rank=3, alpha=6, seed=1))
    wanted = model.logits(tokens).numpy()
    assert np.abs(wanted - plain).max() > 0.5
    model.save_lora(tmp_path / "adapter")
    model.remove_lora()
    np.testing.assert_allclose(model.logits(tokens).numpy(), plain, atol=1e-5)
    config = tmp_path / "adapter" / "adapter_config.json"
    given = json.loads(config.read_text())
    lora = model.load_lora(tmp_path / "adapter")
    assert not any(each.requires_grad for each in lora.parameters())
    np.testing.assert_allclose(model.logits(tokens).numpy(), wanted, atol=1e-5)
    model.remove_lora()
    # The same by the square root of the rank.
    changed = {**given, "use_rslora": True, "lora_alpha": 6 / 3**0.5}
    config.write_text(json.dumps(changed))
    lora = model.load_lora(tmp_path / "adapter", trainable=True)
    assert all(each.requires_grad for each in lora.parameters())
    np.testing.assert_allclose(model.logits(tokens).numpy(), wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"use_dora": True}, "use_dora is True, and adapters are read that have False there"),
        ({"peft_type": "IA3"}, "peft_type is 'IA3', and adapters are read that have 'LORA'"),
        ({"r": 4}, "is float32 of shape (3, 64), and blk.0.attn_q needs numbers of shape (4, 64)"),
        ({"r": "x"}, "r is 'x', and a rank is a whole number above 0"),
        ({"lora_alpha": None}, "lora_alpha is None, where a number is needed"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern is {'q_proj': 2}"),
    ],
)
def test_adapters_that_are_not_supported(
    changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    model = peer("llama", tmp_path)
    model.add_lora(rank=3, targets="attn_q", seed=1)
    model.save_lora(tmp_path / "adapter")
    model.remove_lora()
    config = tmp_path / "adapter" / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **changed}))
    with pytest.raises(td.errors.FormatError) as raised:
        model.load_lora(tmp_path / "adapter")
    assert said in str(raised.value)
    assert model.lora is None


def test_adapters_of_another_model_are_refused(tmp_path: Path) -> None:
    model = peer("phi3", tmp_path)
    model.add_lora(rank=3, seed=1)
    model.save_lora(tmp_path / "adapter")
    other = peer("llama", tmp_path)
    with pytest.raises(td.errors.FormatError, match=r"small llama has no product for '.*qkv_proj"):
        other.load_lora(tmp_path / "adapter")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        other.load_lora(tmp_path / "missing")
    with pytest.raises(td.errors.FormatError, match=r"has no adapter_config\.json"):
        other.load_lora(tmp_path)


def test_wrong_uses_are_refused(tmp_path: Path) -> None:
    model = peer("phi3", tmp_path)
    with pytest.raises(ValueError, match=r"attn_qkv, attn_output, .*gate_up_proj.* not 'attn_q'"):
        model.add_lora(targets=("attn_q",))
    with pytest.raises(ValueError, match="not nothing"):
        model.add_lora(targets=())
    with pytest.raises(ValueError, match="rank is an integer from 1 on"):
        model.add_lora(rank=0)
    with pytest.raises(ValueError, match="dropout is a probability"):
        model.add_lora(dropout=1.0)
    with pytest.raises(ValueError, match="alpha is a number above 0"):
        model.add_lora(alpha=-1)
    for wrong in ({"rank": "x"}, {"alpha": "x"}, {"dropout": None}, {"layers": 5}, {"targets": 5}):
        (name,) = wrong
        with pytest.raises(TypeError, match=f"^{name} (is|are) "):
            model.add_lora(**wrong)
    with pytest.raises(ValueError, match="layers are numbers from 0 to 2, not 3"):
        model.add_lora(layers=(1, 3))
    with pytest.raises(ValueError, match="no adapters to remove"):
        model.remove_lora()
    with pytest.raises(ValueError, match="no adapters to save"):
        model.save_lora(tmp_path)
    model.add_lora()
    with pytest.raises(ValueError, match="has adapters already"):
        model.add_lora()
    with pytest.raises(ValueError, match="token 96 is outside"):
        model.loss([5, 96])
    with pytest.raises(td.errors.ShapeError, match="texts of 2 tokens at least"):
        model.loss([5])
    with pytest.raises(td.errors.ShapeError, match="whole numbers of shape"):
        model.training_logits([[[1]]])
    with pytest.raises(ValueError, match="longer than the context, 256"):
        model.loss([1] * 257)
    for mask in ([0, 0.5, 1], ["a", "b", "c"]):
        with pytest.raises(ValueError, match="mask is of True and False, or 1 and 0"):
            model.loss([1, 2, 3], mask)
    with pytest.raises(td.errors.ShapeError, match="mask has shape"):
        model.loss([5, 6], [True])
