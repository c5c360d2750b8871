"""The suite `programs`: each program computes what is right at a small size. Never how fast."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import treadle as td
from benchmarks import programs as aims
from benchmarks import programs_table
from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs import (
    decoder,
    digits,
    first_use,
    lengths,
    loops,
    operations,
    perceptron,
    resnet,
    rows,
    sequences,
    setting,
)
from treadle.core.errors import TreadleError

_QUICK = (operations, perceptron, rows, sequences, loops, digits, lengths)


@pytest.fixture(scope="module")
def small():
    """The setting of small programs without a peer, each of which runs once for its figure."""

    def once(wait, run):
        run()
        wait()
        return [1.0]

    with pytest.MonkeyPatch.context() as patch, td.use_device("cpu"):
        patch.setattr(setting, "wall_seconds", once)
        patch.setattr(setting, "_CALM", 0.0)
        found = setting.setting_for("programs", td.device("cpu"), small=True)
        yield dataclasses.replace(found, peer=None)


@pytest.fixture(scope="module")
def quick(small):
    """The figures of the programs that compile little, each compared with what is right."""
    parts = [part for program in _QUICK for part in program.measurements(small)]
    return [figure for part in [*parts, lambda: decoder.tokens(small)] for figure in part()]


def test_programs_are_right(quick):
    assert {figure.suite for figure in quick} == {"programs"}
    assert len({figure.name for figure in quick}) == len(quick)
    assert [f.name.partition("token: ")[2] for f in quick if "a token: " in f.name] == [
        "growing caches, eager", "caches of fixed room, eager",
        "caches of fixed room, compiled, index a number",
        "caches of fixed room, compiled, index on the device",
    ]  # fmt: skip


def test_every_target_and_row_of_the_table_finds_a_figure(quick):
    names = [figure.name for figure in quick]
    # What takes long to compile, or is measured at full size alone.
    image = resnet.program(setting.HOST.image).name
    names += [f"{image}, a step: eager", f"{image}, a step: compiled"]
    for what in ("decoder, first token", "ResNet-18, first step"):
        names += [f"{what} of a process, empty cache", f"{what} of a process, from disk"]
    names += [
        "small operation, realized at once: host time", "one small operation with its read",
        "operation of a chain of 50, built and scheduled: host time",
    ]  # fmt: skip
    wanted = [(aim.begin, aim.end) for aim in aims.AIMS]
    wanted += [(begin, end) for begin, end, _ in programs_table.ROWS]
    for begin, end in wanted:
        assert any(n.startswith(begin) and n.endswith(end) for n in names), (begin, end)


def test_a_decoder_begins_anew_when_its_room_is_full(small):
    sizes = dataclasses.replace(small.sizes.decoder, room=3)
    for keep in (decoder.grown, decoder.written):
        text = decoder.Generation(small.ours, decoder.model_of(small.ours, sizes), sizes, keep)
        first = [setting.numbers(text.scores(1)) for _ in range(3)]
        again = [setting.numbers(text.scores(1)) for _ in range(3)]
        np.testing.assert_allclose(again, first, rtol=1e-5)


def test_a_resnet_has_the_layers_of_one(small):
    model = resnet.resnet(small.ours, setting.ImageSizes(1, 32))
    assert sum(np.prod(shape) for shape in setting.shapes_of(model).values()) == (
        11_689_512 + 2 * 4800 + 20  # the parameters, running means and variances, counts
    )


def test_the_first_step_of_a_process(small):
    empty, kept = first_use.first_uses(small, "decoder", "first token")
    assert empty.name == "first token of a process, empty cache"
    assert kept.name == "first token of a process, from disk"
    assert min(empty.ours, kept.ours) > 0


def test_a_process_that_fails_says_why(small, monkeypatch):
    monkeypatch.setitem(first_use._MODULES, "other", "decoder")
    with pytest.raises(TreadleError, match=r"no_such cpu small ended with 1: KeyError: 'no_such'"):
        first_use.first_uses(small, "no_such", "first token")


def test_a_wrong_result_is_not_timed(small, monkeypatch):
    right = sequences.reference
    monkeypatch.setattr(sequences, "reference", lambda *given: right(*given) + 0.1)
    (part,) = sequences.measurements(small)
    with pytest.raises(TreadleError, match=r"LSTM is wrong: .* Nothing was timed"):
        part()


def test_a_result_with_nan_or_another_shape_is_wrong():
    for found in ([1.0, np.nan], [1.0]):
        with pytest.raises(TreadleError, match="f is wrong"):
            setting.compare("f", found, [1.0, 2.0], 1e-3)


def test_targets():
    figures = [
        Figure("programs-cuda", name, "s", ours, peer="PyTorch", peers=peers)
        for name, ours, peers in (
            ("ResNet-18, a step: eager", 0.047, 0.0146),
            ("ResNet-18, a step: compiled", 0.0187, 0.0146),
            ("MLP, a step: eager", 0.0018, 0.0009),
            ("softmax of 4096 × 8192, in a loop of 20", 1e-4, 1e-4),
        )
    ]
    resnet_eager, resnet_compiled, mlp, softmax = aims.with_targets(figures, "cuda")
    assert (resnet_eager.peer, resnet_eager.peers) == ("compiled", 0.0187)
    assert resnet_eager.others == (("PyTorch", 0.0146),)
    assert (resnet_eager.target, resnet_eager.met) == (1.3, False)
    assert resnet_compiled == figures[1]
    assert (mlp.target, mlp.ratio, mlp.met) == (1.0, True, False)
    assert softmax.met
    assert aims.with_targets(figures, "cpu")[2].target is None
    peak = Figure("s", "softmax, in a loop of 20: peak memory", "results", 2.5, peers=1.0)
    assert aims.with_targets([peak], "cuda")[0].target == 2.0
    assert aims.with_targets([dataclasses.replace(peak, peers=None)], "cuda")[0].target is None
