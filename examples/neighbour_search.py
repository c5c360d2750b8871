"""Serve a search: which of many points is nearest to a query? One query is one message.

The index is the state of an actor: it stays on the device, and queries come in one at a time. They
need not wait for each other, so the actor handles as many at once as wait. Beside it each query is
a launch that is waited for. Asked about every place of a square, the service draws the cells of the
points.

    python examples/neighbour_search.py --out results
    python examples/neighbour_search.py --points 20000 --side 400 --device webgpu --out results
"""

from __future__ import annotations

import threading
import time

import numpy as np
from showing import count, options, save

import treadle as td

LAUNCHED = 200  # queries that are launched one by one


@td.actor(capacity=4096)
def nearest(query: td.vec2[td.f32], points: td.Array[td.vec2[td.f32]]) -> td.i32:
    """The number of the nearest point."""
    best = 0
    least = td.f32(1e30)
    for k in range(points.size):
        away = points[k] - query
        distance = td.dot(away, away)
        if distance < least:
            least = distance
            best = k
    return best


@td.kernel
def distances(
    query: td.vec2[td.f32], points: td.Array[td.vec2[td.f32]], found: td.Array[td.f32]
) -> None:
    """The square of each point's distance."""
    k = td.grid(1)
    if k < points.size:
        away = points[k] - query
        found[k] = td.dot(away, away)


def served(index: td.Tensor, queries: np.ndarray, device: td.Device) -> tuple[np.ndarray, float]:
    """The answers of the service, and queries a second."""
    asked = [td.vec2[td.f32](x, y) for x, y in queries.tolist()]
    with nearest.spawn(points=index, device=device) as service:
        service.ask(asked[0], timeout=60)

        def client() -> None:
            for query in asked:
                service.send(query)

        began = time.perf_counter()
        sender = threading.Thread(target=client)
        sender.start()
        answers = service.receive_many(len(asked), timeout=600)
        seconds = time.perf_counter() - began
        sender.join()
    return answers, len(asked) / seconds


def launched(index: td.Tensor, queries: np.ndarray, device: td.Device) -> tuple[list[int], float]:
    """The answers of launches, all threads on one query, and queries a second."""
    found = td.zeros(len(index), device=device)

    def ask(x: float, y: float) -> int:
        distances.launch(len(index), td.vec2[td.f32](x, y), index, found)
        return int(td.argmin(found))

    ask(*queries[0].tolist())
    began = time.perf_counter()
    answers = [ask(*query) for query in queries.tolist()]
    return answers, len(answers) / (time.perf_counter() - began)


def main(arguments: list[str] | None = None) -> float:
    """Run the example. The part of the answers that are right."""
    parser = options(__doc__)
    parser.add_argument("--points", type=count, default=1000, help="points of the index (1000)")
    parser.add_argument("--side", type=count, default=240, help="queries along each side (240)")
    given = parser.parse_args(arguments)
    device = td.device(given.device) if given.device else td.default_device()
    points = np.random.default_rng(given.seed).random((given.points, 2), np.float32)
    side = (np.arange(given.side, dtype=np.float32) + 0.5) / given.side
    queries = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)

    index = td.asarray(points, device=device)
    answers, rate = served(index, queries, device)
    some = queries[:: -(-len(queries) // LAUNCHED)]
    others, rate_of_launches = launched(index, some, device)
    print(f"{rate:,.0f} queries a second; {rate_of_launches:,.0f} with a launch for each")

    def squared(numbers: np.ndarray, asked: np.ndarray) -> np.ndarray:
        return ((points[numbers] - asked) ** 2).sum(axis=-1)

    # Where two points are as near as each other but for rounding, either is right.
    least = np.array([squared(np.arange(len(points)), query).min() for query in some])
    right = np.isclose(squared(answers[:: -(-len(queries) // LAUNCHED)], some), least, atol=1e-7)
    right &= np.isclose(squared(np.array(others), some), least, atol=1e-7)

    def draw(figure, _):
        cells = answers.reshape(given.side, given.side)
        hues = np.random.default_rng(given.seed).permutation(len(points))
        axes = figure.subplots()
        axes.imshow(hues[cells], cmap="twilight", extent=(0, 1, 0, 1), origin="lower", aspect=0.4)
        axes.plot(*points.T, "k.", markersize=1)
        axes.set_axis_off()

    facts = {"queries": len(queries), "queries a second": rate}
    save(given.out, "neighbour_search", {}, draw, device=device.id, **facts)
    return float(right.mean())


if __name__ == "__main__":
    main()
