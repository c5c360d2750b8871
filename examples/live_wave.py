"""Steer an acoustic wave while it runs: a simulation that stays on the device and takes commands.

The simulation is an actor. Its state is the pressure at three times, and the medium. A command
moves the source, says how strong it is and how much is damped, and asks for some steps; its reply
is the energy of the wave. The pictures are snapshots of the state, taken while it runs, one every
so many steps.

    python examples/live_wave.py --out results
    python examples/live_wave.py --size 256 --steps 4000 --every 500 --device webgpu --out results
"""

from __future__ import annotations

import math
import time

import numpy as np
from showing import count, options, save

import treadle as td

THREADS = 256


@td.struct
class Command:
    """Move the source, set its strength and the damping, then make some steps."""

    x: td.i32
    y: td.i32
    strength: td.f32
    damping: td.f32
    steps: td.i32


@td.actor(block=THREADS, capacity=256)
def wave(
    command: Command,
    after: td.Array[td.f32, 2],
    now: td.Array[td.f32, 2],
    before: td.Array[td.f32, 2],
    speed: td.Array[td.f32, 2],
) -> td.f32:
    """The energy after a command. All threads work on it, and meet after each half of a step."""
    t = td.thread_idx.x
    size = now.shape[0]
    for _ in range(command.steps):
        if t == 0:
            now[command.y, command.x] += command.strength
        td.sync_threads()
        for i in range(t, size * size, THREADS):
            y = i // size
            x = i % size
            if x > 0 and y > 0 and x < size - 1 and y < size - 1:
                around = now[y, x - 1] + now[y, x + 1] + now[y - 1, x] + now[y + 1, x]
                force = speed[y, x] * (around - 4.0 * now[y, x])
                after[y, x] = (2.0 * now[y, x] - before[y, x] + force) * (1.0 - command.damping)
        td.sync_threads()
        for i in range(t, size * size, THREADS):
            y = i // size
            x = i % size
            before[y, x] = now[y, x]
            now[y, x] = after[y, x]
        td.sync_threads()
    part = td.shared(THREADS, td.f32)
    mine = 0.0
    for i in range(t, size * size, THREADS):
        mine += now[i // size, i % size] * now[i // size, i % size]
    part[t] = mine
    td.sync_threads()
    total = 0.0
    for k in range(THREADS):
        total += part[k]
    return total


def medium(size: int) -> np.ndarray:
    """The square of the speed: a slow lens in the middle."""
    y, x = np.mgrid[:size, :size] / (size - 1) - 0.5
    return np.where(x * x + y * y < 0.03, 0.1, 0.3).astype(np.float32)


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The part of the energy that is left once the damping was turned up."""
    parser = options(__doc__)
    parser.add_argument("--size", type=count, default=128, help="points along each side (128)")
    parser.add_argument("--steps", type=count, default=600, help="time steps (600)")
    parser.add_argument("--every", type=count, default=100, help="steps for a picture (100)")
    parser.add_argument("--strength", type=float, default=1.0, help="of the source (1)")
    parser.add_argument("--damping", type=float, default=0.0005, help="of each step (0.0005)")
    given = parser.parse_args(arguments)
    if given.size < 8:
        parser.error("--size is 8 at least")
    device = td.device(given.device) if given.device else td.default_device()
    size, steps = given.size, min(given.every, given.steps)
    count_of_pictures = given.steps // steps

    still = np.zeros((size, size), np.float32)
    fields = {"after": still, "now": still, "before": still, "speed": medium(size)}
    energies: list[float] = []
    pictures: list[np.ndarray] = []
    began = time.perf_counter()
    with wave.spawn(device=device, **fields) as ref:
        for picture in range(count_of_pictures):
            angle = 2 * math.pi * picture / count_of_pictures
            x, y = (int(size * (0.5 + 0.3 * f(angle))) for f in (math.cos, math.sin))
            for step in range(steps):  # the source swings, and is steered at every step
                strength = given.strength * math.sin(0.3 * (picture * steps + step))
                ref.send(Command(x, y, strength, given.damping, 1), reply=False)
            energies.append(ref.ask(Command(x, y, 0.0, 0.0, 0), timeout=600))
            pictures.append(ref.snapshot()["now"].numpy())
        calm = ref.ask(Command(0, 0, 0.0, 0.05, 4 * steps), timeout=600)
        handled = ref.status().messages_processed
    seconds = time.perf_counter() - began
    print(f"{handled} commands in {seconds:.2f} s; energy {energies[-1]:.1f}, calmed to {calm:.3g}")

    def draw(figure, _):
        most = max(float(np.abs(each).max()) for each in pictures)
        for axes, each in zip(
            figure.subplots(1, len(pictures), squeeze=False)[0], pictures, strict=True
        ):
            axes.imshow(each, cmap="RdBu", vmin=-0.5 * most, vmax=0.5 * most)
            axes.set_axis_off()

    save(given.out, "live_wave", {}, draw, device=device.id, energies=energies, calm=calm)
    return calm / energies[-1]


if __name__ == "__main__":
    main()
