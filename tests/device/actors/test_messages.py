"""What is taken as a message: numbers, arrays, sequences, records; what fits no message."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


@td.struct
class Reading:
    kind: td.u8
    place: td.vec2[td.i16]
    heat: td.f32
    weights: td.i32[2]


@td.actor(capacity=16)
def twice(message: td.f32) -> td.f32:
    return 2 * message


@td.actor(capacity=16)
def whole(message: td.i32) -> td.i32:
    return message + 1


@td.actor(capacity=16)
def small(message: td.u8) -> td.u8:
    return message


@td.actor(capacity=16)
def opposite(message: td.bool) -> td.i32:
    return 0 if message else 1


@td.actor(capacity=16)
def length(message: td.vec3[td.f32]) -> td.f32:
    return td.dot(message, message)


@td.actor(capacity=16)
def halves(message: td.vec2[td.bf16]) -> td.f32:
    return td.f32(message.x) + td.f32(message.y)


@td.actor(capacity=16)
def total(message: Reading) -> td.f32:
    at = td.f32(message.place.x + message.place.y)
    return td.f32(message.kind) + at + message.heat + td.f32(message.weights[1])


def test_numbers(device: td.Device, mode: str | None) -> None:
    """Also arrays of no dimensions, of any dtype whose numbers fit."""
    with twice.spawn(mode=mode) as ref, whole.spawn(mode=mode) as integers:
        for given in (1.5, np.float64(1.5), np.array(1.5), td.asarray(1.5), td.ones(3).sum() / 2):
            assert ref.ask(given, timeout=60) == 3.0
            assert ref.send(given)
            assert ref.receive(timeout=60) == 3.0
        assert ref.ask(2**100, timeout=60) == 2.0**101
        assert ref.ask(float("inf"), timeout=60) == float("inf")
        for given in (3, 3.0, np.float32(3), np.uint8(3), np.array(3), td.asarray(3)):
            assert integers.ask(given, timeout=60) == 4
    with opposite.spawn(mode=mode) as ref:
        for given in (True, np.bool_(True), np.array(True)):
            assert ref.ask(given, timeout=60) == 0


def test_vectors_and_structs(device: td.Device, mode: str | None) -> None:
    with length.spawn(mode=mode) as ref:
        vector = td.vec3[td.f32](1, 2, 3)
        numbers = np.float32([1, 2, 3])
        for given in (vector, (1, 2, 3), [1, 2.0, np.int8(3)], numbers, td.asarray(numbers)):
            assert ref.ask(given, timeout=60) == 14
        assert ref.send_many([vector, (1, 0, 0), numbers]) == 3
        assert ref.receive_many(3, timeout=60).tolist() == [14, 1, 14]
        slot = ref.prepare((1, 0, 0))
        slot.value = [2, 0, 0]
        slot.send()
        assert ref.receive(timeout=60) == 4
    with halves.spawn(mode=mode) as ref:
        for given in (td.vec2[td.bf16](1, 2), (1, 2), np.ones(2, np.float32) * 1.5):
            assert ref.ask(given, timeout=60) == 3
    with total.spawn(mode=mode) as ref:
        reading = Reading(1, (2, 3), 4.5, [0, 6])
        records = np.zeros(2, Reading.dtype)
        records[0] = np.asarray(reading)
        for given in (reading, records[0], np.asarray(reading)):
            assert ref.ask(given, timeout=60) == 16.5
        assert ref.send_many(records) == 2
        assert ref.receive_many(2, timeout=60).tolist() == [16.5, 0]


def test_many_in_arrays_of_the_library(device: td.Device, mode: str | None) -> None:
    with twice.spawn(mode=mode) as ref, length.spawn(mode=mode) as lengths:
        assert ref.send_many(td.arange(4, dtype=td.float32)) == 4
        assert ref.receive_many(4, timeout=60).tolist() == [0, 2, 4, 6]
        assert lengths.send_many(td.ones((2, 3))) == 2
        assert lengths.receive_many(2, timeout=60).tolist() == [3, 3]
        for given in (td.ones(3, dtype=td.int32), td.ones((3, 1)), np.float32(1)[None, None]):
            with pytest.raises(
                td.errors.DtypeError, match=r"array of shape \(n,\) and dtype float"
            ):
                ref.send_many(given)
        with pytest.raises(td.errors.DtypeError, match=r"array of shape \(n, 3\) and dtype"):
            lengths.send_many(td.ones((3, 2)))


def test_prepared_numbers_are_assigned(device: td.Device, mode: str | None) -> None:
    with twice.spawn(mode=mode) as ref, total.spawn(mode=mode) as readings:
        slot = ref.prepare()
        slot.value = 1.0
        slot.send()
        slot.value += 2  # the array over its memory
        slot.send()
        slot.value[()] = 5
        slot.send()
        assert ref.receive_many(3, timeout=60).tolist() == [2, 6, 10]
        with pytest.raises(td.errors.DtypeError, match=r"a message of twice is td\.f32, not 'x'"):
            slot.value = "x"
        other = readings.prepare()
        other.value = Reading(kind=3)
        other.send()
        assert readings.receive(timeout=60) == 3


def test_numbers_that_do_not_fit(device: td.Device) -> None:
    """In a message that is a number, and in a field of one that is a struct: the same."""
    cases = (
        (300, "300 does not fit uint8"), (-1, "-1 does not fit uint8"),
        (1.5, "whole numbers"), (float("nan"), "whole numbers"),
        (10**5000, "an integer of 16610 bits does not fit uint8"),
    )  # fmt: skip
    with small.spawn() as ref:
        assert ref.ask(255, timeout=60) == 255
        for given, words in cases:
            with pytest.raises(td.errors.DtypeError, match=words):
                ref.ask(given, timeout=60)
            with pytest.raises(td.errors.DtypeError, match=words):
                Reading(kind=given)
            with pytest.raises(td.errors.DtypeError, match=words):
                Reading().kind = given


def test_floats_and_components_that_do_not_fit(device: td.Device) -> None:
    with twice.spawn() as ref, length.spawn() as lengths:
        for given in (1e39, 10**400):
            with pytest.raises(td.errors.DtypeError, match="too large for float32"):
                ref.ask(given, timeout=60)
            with pytest.raises(td.errors.DtypeError, match="too large for float32"):
                Reading(heat=given)
            with pytest.raises(td.errors.DtypeError, match="too large for float32"):
                lengths.ask((0, given, 0), timeout=60)
        for wrong in ({"place": (0, 2**15)}, {"weights": [0, 2**31]}, {"weights": np.full(2, 0.5)}):
            with pytest.raises(
                td.errors.DtypeError, match=r"field .* of struct Reading: .* not fit"
            ):
                Reading(**wrong)
        for given, words in (
            ((1, 2), r"which has 3 components, not a tuple of shape \(2,\)"),
            (np.ones((3, 1)), "which has 3 components, not"),
            (1.0, "give it a sequence or an array of 3 numbers"),
            ((1, "x", 2), "not 'x'"),
        ):
            with pytest.raises(td.errors.DtypeError, match=words):
                lengths.ask(given, timeout=60)
        for given, words in (
            (True, "not True"),
            (np.ones(2), "not a ndarray of shape"),
            (1j, "a com"),
        ):
            with pytest.raises(td.errors.DtypeError, match=words):
                ref.ask(given, timeout=60)
    with total.spawn() as readings, pytest.raises(td.errors.DtypeError, match=r"Reading\(kind, pl"):
        readings.ask((1, 2), timeout=60)
    assert Reading(kind=td.u8(300)).kind == 44  # a cast, as in kernels
