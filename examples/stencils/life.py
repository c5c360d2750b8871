"""Conway's Game of Life with bits: an integer has 32 cells, which are computed at once.

The number of neighbours is added bit by bit, as in an adder of logic gates.

    python examples/stencils/life.py --out results
    python examples/stencils/life.py --size 16384 --steps 10000 --device cuda --out results
"""

import numpy as np
from pictures import options, save

import treadle as td


@td.func
def row_sum(west, here, east):
    """For each cell the sum of it and its two neighbours in the row, in two bits."""
    left = (here << 1) | (west >> 31)
    right = (here >> 1) | (east << 31)
    return left ^ here ^ right, (left & here) | (left & right) | (here & right)


@td.stencil(boundary="wrap")
def life(cells: td.Array[td.u32, 2], out: td.Array[td.u32, 2], pos: td.GridPos):
    a0, a1 = row_sum(pos.at(cells, -1, -1), pos.north(cells), pos.at(cells, -1, 1))
    b0, b1 = row_sum(pos.west(cells), cells[pos], pos.east(cells))
    c0, c1 = row_sum(pos.at(cells, 1, -1), pos.south(cells), pos.at(cells, 1, 1))
    # The number of living cells of all nine, in binary: ones, twos, fours.
    ones = a0 ^ b0 ^ c0
    carry = (a0 & b0) | (a0 & c0) | (b0 & c0)
    twos = a1 ^ b1 ^ c1 ^ carry
    fours = ((a1 ^ b1) & (c1 ^ carry)) ^ (a1 & b1) ^ (c1 & carry)
    three = ones & twos & ~fours
    four = ~ones & ~twos & fours
    out[pos] = three | (four & cells[pos])


def packed(cells: np.ndarray) -> np.ndarray:
    """Cells as bits of 32-bit integers."""
    return np.packbits(cells, axis=1, bitorder="little").view(np.uint32)


def unpacked(bits: np.ndarray) -> np.ndarray:
    return np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")


# Gosper's gun, which makes gliders: the columns of living cells in each row.
GUN = ((24,), (22, 24), (12, 13, 20, 21, 34, 35), (11, 15, 20, 21, 34, 35), (0, 1, 10, 16, 20, 21),
       (0, 1, 10, 14, 16, 17, 22, 24), (10, 16, 24), (11, 15), (12, 13))  # fmt: skip


def main(arguments: list[str] | None = None) -> float:
    """Run the example. How many cells live at the end."""
    given = options(__doc__, arguments, size=128, steps=600)
    rows, columns = max(given.size, 64), -(-max(given.size, 64) // 32) * 32
    cells = np.zeros((rows, columns), bool)
    for row, living in enumerate(GUN):
        cells[row + 2, np.array(living) + 2] = True
    a = td.asarray(packed(cells), device=given.device)

    seen = {"at first": cells}

    def picture(step, bits):
        seen[f"after {step} steps"] = unpacked(bits.numpy())

    td.stencil_loop(
        life, a, td.zeros_like(a), steps=given.steps, every=-(-given.steps // 2), callback=picture
    )
    living = int(next(reversed(seen.values())).sum())
    print(f"{living} living cells")
    look = {"cmap": "gray_r"}
    save(given, "life", {title: (each, look) for title, each in seen.items()}, living=living)
    return living


if __name__ == "__main__":
    main()
