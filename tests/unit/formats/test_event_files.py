"""TensorBoard's files: records and messages, read here by an independent reader."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

from treadle.formats import event_files
from treadle.torch.utils.tensorboard import SummaryWriter


def messages(data):
    """The records of a file, whose checksums are compared."""
    file = io.BytesIO(data)
    while head := file.read(12):
        (length,) = struct.unpack("<Q", head[:8])
        body, tail = file.read(length), file.read(4)
        for part, mark in ((head[:8], head[8:]), (body, tail)):
            found = event_files.crc32c(part)
            turned = ((found >> 15) | ((found << 17) & 0xFFFFFFFF)) + 0xA282EAD8
            assert struct.unpack("<I", mark)[0] == turned % (1 << 32)
        yield fields(body)


def varint(data, at):
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return found, at


def fields(data):
    """A message's fields, by number; of repeated ones the last."""
    at, found = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            found[number], at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            found[number], at = data[at : at + length], at + length
        else:
            size, form = {1: (8, "<d"), 5: (4, "<f")}[kind]
            (found[number],), at = struct.unpack(form, data[at : at + size]), at + size
    assert at == len(data)
    return found


def values(folder):
    (path,) = folder.glob("events.out.tfevents.*")
    first, *rest = messages(path.read_bytes())
    assert first[3] == b"brain.Event:2"
    return [(each.get(2), fields(fields(each[5])[1])) for each in rest]


def test_checksum():
    assert event_files.crc32c(b"") == 0
    assert event_files.crc32c(bytes(32)) == 0x8A9136AA  # of RFC 3720


def test_a_writer_writes_numbers_texts_and_histograms(tmp_path):
    torch = pytest.importorskip("treadle.torch")
    drawn = np.random.default_rng().normal(size=37)
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss/train", torch.tensor(0.25), 3)
        writer.add_scalar("large", 1e300, 1 << 40)
        writer.add_scalar("nan", float("nan"))
        writer.add_text("note", "grüße " * 50, 0)
        writer.add_histogram("weights", torch.tensor(drawn), 7, bins=5)
        writer.add_scalars("both", {"a": 1, "b": torch.tensor(2)}, 9)
        writer.flush()
    (loss, large, nan, note, weights) = values(tmp_path)
    assert (loss[0], loss[1][1], loss[1][2]) == (3, b"loss/train", 0.25)
    assert (large[0], large[1][2]) == (1 << 40, float("inf"))
    assert nan[0] is None
    assert np.isnan(nan[1][2])
    assert note[1][1] == b"note/text_summary"
    assert fields(note[1][8])[8].decode() == "grüße " * 50
    assert fields(fields(note[1][9])[1])[1] == b"text"
    shown = fields(weights[1][5])
    np.testing.assert_allclose(
        [shown[each] for each in range(1, 6)],
        [drawn.min(), drawn.max(), 37, drawn.sum(), (drawn**2).sum()],
    )
    counts, edges = np.histogram(drawn, 5)
    np.testing.assert_array_equal(np.frombuffer(shown[7]), counts)
    np.testing.assert_array_equal(np.frombuffer(shown[6]), edges[1:])
    for tag, value in (("a", 1), ("b", 2)):
        assert values(tmp_path / f"both_{tag}")[0][1] == {1: b"both", 2: value}


def test_what_is_not_written_says_so(tmp_path):
    writer = SummaryWriter(tmp_path / "none")
    with pytest.raises(AttributeError, match="tensorboardX"):
        writer.add_image("x", None)
    with pytest.raises(ValueError, match="finite"):
        writer.add_histogram("x", [])
    writer.close()
    assert not (tmp_path / "none").exists()
