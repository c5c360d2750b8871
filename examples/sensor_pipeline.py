"""Watch sensors with three actors, each of which sends its replies to the next.

Readings are published under topics, one a sensor. The first actor subscribes to all of them and
turns what a sensor counts into degrees; the second keeps a mean and a variance for each sensor, and
says how far a reading is off; the third raises an alarm, and keeps count. Nothing comes back to
Python between them. Each result has a stamp, so that it is known when it was there.

    python examples/sensor_pipeline.py --out results
    python examples/sensor_pipeline.py --sensors 100 --readings 1000 --device webgpu
"""

from __future__ import annotations

import threading
import time

import numpy as np
from showing import count, options, save

import treadle as td

SHOWN = 3  # sensors in the picture
FAR = 6.0  # standard deviations at which a reading is an alarm


@td.struct
class Reading:
    """What a sensor has counted, or what that is in degrees."""

    sensor: td.i32
    value: td.f32


@td.struct
class Judged:
    """A reading, what was expected, and how many standard deviations lie between."""

    sensor: td.i32
    value: td.f32
    mean: td.f32
    off: td.f32


@td.actor
def calibrate(reading: Reading, gain: td.Array[td.f32], zero: td.Array[td.f32]) -> Reading:
    """A reading in degrees."""
    value = (reading.value - zero[reading.sensor]) * gain[reading.sensor]
    return Reading(reading.sensor, value)


@td.actor
def judge(
    reading: Reading,
    seen: td.Array[td.i32],
    mean: td.Array[td.f32],
    variance: td.Array[td.f32],
) -> Judged:
    """How far a reading is from what its sensor has shown so far, which follows it slowly."""
    s = reading.sensor
    apart = reading.value - mean[s]
    off = 0.0
    if seen[s] >= 8:
        off = td.abs(apart) / td.sqrt(variance[s] + 1e-4)
    expected = mean[s]
    if off < FAR:
        share = max(1.0 / (seen[s] + 1.0), 0.05)
        mean[s] += share * apart
        variance[s] += share * (apart * apart * (1.0 - share) - variance[s])
        seen[s] += 1
    return Judged(s, reading.value, expected, off)


@td.actor(capacity=4096, stamps=True)
def alarm(judged: Judged, alarms: td.Array[td.i32]) -> Judged:
    """Count the alarms of each sensor."""
    if judged.off >= FAR:
        alarms[judged.sensor] += 1
    return judged


def measured(sensors: int, readings: int, seed: int) -> tuple[np.ndarray, ...]:
    """What the sensors count at each time, their gains and zeros, and which readings are wrong."""
    rng = np.random.default_rng(seed)
    when = np.arange(readings)[:, None]
    degrees = 20 + 3 * np.sin(2 * np.pi * (when / 200 + rng.random(sensors)))
    degrees += 0.3 * rng.standard_normal((readings, sensors))
    wrong = rng.random((readings, sensors)) < 0.01
    wrong[:20] = False
    degrees += np.where(wrong, rng.choice([-15.0, 15.0], wrong.shape), 0)
    gain, zero = rng.uniform(0.01, 0.1, sensors), rng.uniform(0, 100, sensors)
    return degrees / gain + zero, gain, zero, wrong


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The part of the readings that were judged right."""
    parser = options(__doc__)
    parser.add_argument("--sensors", type=count, default=8, help="sensors (8)")
    parser.add_argument("--readings", type=count, default=400, help="readings of each (400)")
    given = parser.parse_args(arguments)
    device = td.device(given.device) if given.device else td.default_device()
    counts, gain, zero, wrong = measured(given.sensors, given.readings, given.seed)
    zeros = np.zeros(given.sensors, np.float32)

    topics = td.actors.Topics()
    with (
        alarm.spawn(device=device, alarms=zeros.astype(np.int32)) as last,
        judge.spawn(
            device=device, seen=zeros.astype(np.int32), mean=zeros, variance=zeros
        ) as middle,
        calibrate.spawn(
            device=device, gain=gain.astype(np.float32), zero=zero.astype(np.float32)
        ) as first,
    ):
        first.pipe(middle).pipe(last)
        topics.subscribe("sensor/+/count", first)

        def publish() -> None:
            for row in counts.tolist():
                for sensor, value in enumerate(row):
                    topics.publish(f"sensor/{sensor}/count", Reading(sensor, value))

        began = time.perf_counter()
        publisher = threading.Thread(target=publish)
        publisher.start()
        results, stamps = last.receive_many(counts.size, timeout=600, stamps=True)
        seconds = time.perf_counter() - began
        publisher.join()
        alarms = last.snapshot()["alarms"].numpy()
    print(
        f"{counts.size} readings in {seconds:.2f} s ({counts.size / seconds:,.0f} a second); "
        f"{alarms.sum()} alarms, {wrong.sum()} readings were wrong"
    )
    found = (results["off"] >= FAR).reshape(wrong.shape)  # in the order of publishing
    latest = (stamps[:, 0] - stamps[0, 0]) / 1e6

    def draw(figure, _):
        values, means = (results[name].reshape(wrong.shape) for name in ("value", "mean"))
        for sensor, axes in enumerate(
            figure.subplots(1, min(SHOWN, given.sensors), squeeze=False)[0]
        ):
            axes.plot(values[:, sensor], ".", markersize=2, color="tab:blue")
            axes.plot(means[8:, sensor], color="tab:orange", linewidth=1)
            (at,) = np.nonzero(found[:, sensor])
            axes.plot(at, values[at, sensor], "rx")
            axes.set_title(f"sensor {sensor}: {len(at)} alarms")

    facts = {"alarms": alarms.tolist(), "seconds": float(latest[-1])}
    save(given.out, "sensor_pipeline", {}, draw, device=device.id, **facts)
    return float((found == wrong).mean())


if __name__ == "__main__":
    main()
