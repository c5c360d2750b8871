"""Conway's game of life on a torus, and Mandelbrot's set."""

import numpy as np


def step(cells):
    neighbours = sum(
        np.roll(np.roll(cells, i, 0), j, 1)
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i, j) != (0, 0)
    )
    return ((neighbours == 3) | ((cells == 1) & (neighbours == 2))).astype(int)


def mandelbrot(height, width, iterations):
    y, x = np.ogrid[-1.2 : 1.2 : height * 1j, -2 : 0.8 : width * 1j]
    c = x + y * 1j
    z = np.zeros(c.shape, dtype=complex)
    times = iterations + np.zeros(z.shape, dtype=int)
    for i in range(iterations):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        diverged = (np.abs(z) > 2) & (times == iterations)
        times[diverged] = i
    return times


def main():
    cells = np.zeros((12, 14), dtype=int)
    cells[1:4, 1:4] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
    cells[7, 5:8] = 1
    population = []
    for _ in range(12):
        cells = step(cells)
        population.append(int(cells.sum()))
    drawn = "\n".join("".join("#" if cell else "." for cell in row) for row in cells)
    return {
        "cells": cells,
        "population": population,
        "drawn": drawn,
        "times": mandelbrot(9, 15, 12),
    }
