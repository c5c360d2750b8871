"""`td.distributed` over NCCL, on this machine's cards: a rank each for two or four of them, or two
ranks on a single one. The scripts are those that the other tests run over MPI.

    python -m pytest tests/distributed/test_cards.py
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile

import pytest

import treadle as td
from tests.distributed.test_distributed import FAILURES, HERE, launched

pytestmark = [pytest.mark.cuda, pytest.mark.timeout(300)]

# A wrong receive is found by MPI, or in debug mode; NCCL gives what arrives. Its sends wait for
# their receives.
_OF_MPI = ("other", "check-message")
_FAILURES = {mode: words for mode, words in FAILURES.items() if mode not in _OF_MPI}
# Without an mpiexec between, the launcher sees how a rank ended.
_FAILURES["killed"] = ("rank 1 failed first: it was ended by SIGKILL", "then rank 0 ended")
# Ranks on one card are hosts to NCCL, which find each other by the loopback interface.
_OF_ONE_CARD = {"NCCL_SOCKET_IFNAME": "lo", "NCCL_NVLS_ENABLE": "0"}


@pytest.fixture(scope="module")
def cards():
    """How many cards are used."""
    if importlib.util.find_spec("nccl") is None:
        pytest.skip('NCCL is not installed: pip install "treadle[nccl]"')
    found = sum(each.id.startswith("cuda:") for each in td.devices())
    if not found:
        pytest.skip("there is no NVIDIA card")
    return next(count for count in (4, 2, 1) if count <= found)


def over_nccl(cards, script, *arguments, most=4, options=()):
    """How many ranks there are, two or as many as cards, and what a script gives on them."""
    ranks = min(max(cards, 2), most)
    done = launched(
        ranks, script, *arguments, device="cuda:0" if cards == 1 else "cuda", backend="nccl",
        variables={**(_OF_ONE_CARD if cards == 1 else {}), **dict(options)},
    )  # fmt: skip
    return ranks, done


def right(ranks, done):
    assert done.returncode == 0, done.stdout + done.stderr
    found = sorted(re.findall(r"\[(\d)\] right (\d) of (\d)", done.stdout))
    assert found == [(str(rank), str(rank), str(ranks)) for rank in range(ranks)]


def seed():
    return int.from_bytes(os.urandom(4), "little")


@pytest.mark.parametrize("check", ["", "1"])
def test_everything(cards, check):
    """In debug mode the ranks compare what they start, in replays too."""
    parts = ["compiled", "uneven", "groups", "messages"] if check else ["all"]
    options = {"TREADLE_CHECK": check}
    right(*over_nccl(cards, "everything.py", "cuda", seed(), 24, *parts, options=options))


def test_layers(cards):
    parts = ["all divided", "all piped", "all normed", *["piped copies"][: cards >= 4]]
    right(*over_nccl(cards, "layers.py", seed(), *parts))


def test_sharded(cards, tmp_path):
    """Training and checkpoints, which another number of ranks reads."""
    parts = ["training", "narrow", "memory", "frozen", "unreached", "refused", "save"]
    right(*over_nccl(cards, "sharding.py", "cuda", seed(), tmp_path, *parts, most=2))
    right(*over_nccl(cards, "sharding.py", "cuda", seed(), tmp_path, "short", "load"))


@pytest.mark.parametrize("mode", _FAILURES)
def test_failures_end_all_ranks(cards, mode):
    _, done = over_nccl(cards, "failing.py", mode, most=2)
    assert done.returncode == 1, done.stdout + done.stderr
    for words in _FAILURES[mode]:
        assert re.search(words, done.stderr), done.stderr


def test_ray_starts_a_training_again_from_its_checkpoint(cards, tmp_path):
    if importlib.util.find_spec("ray") is None:
        pytest.skip('Ray is not installed: pip install "treadle[ray]"')
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as temporary:
        done = subprocess.run(
            [sys.executable, HERE / "ray_trained.py", tmp_path, temporary, str(cards)],
            capture_output=True, text=True, timeout=280, check=False,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", **_OF_ONE_CARD},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "right" in done.stdout.splitlines()
