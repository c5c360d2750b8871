"""Heat in a plate by finite differences, Laplace's equation by relaxation, and Lorenz's attractor."""

import numpy as np


def lorenz(state, sigma=10.0, rho=28.0, beta=8.0 / 3.0):
    x, y, z = state
    return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


def main():
    nx, ny, d = 16, 12, 0.1
    dt = d**4 / (2 * (d**2 + d**2))
    u0 = 300 * np.ones((nx, ny))
    u = u0.copy()
    for i in range(nx):
        for j in range(ny):
            if (i * d - 0.8) ** 2 + (j * d - 0.6) ** 2 < 0.05:
                u0[i, j] = 700
    for _ in range(10):
        u[1:-1, 1:-1] = u0[1:-1, 1:-1] + dt * (
            (u0[2:, 1:-1] - 2 * u0[1:-1, 1:-1] + u0[:-2, 1:-1]) / d**2
            + (u0[1:-1, 2:] - 2 * u0[1:-1, 1:-1] + u0[1:-1, :-2]) / d**2
        )
        u0, u = u.copy(), u0
    p = np.zeros((9, 9))
    p[-1, :] = np.linspace(0, 1, 9)
    change = 1.0
    steps = 0
    while change > 1e-2 and steps < 60:
        old = p.copy()
        p[1:-1, 1:-1] = 0.25 * (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1])
        p[:, 0] = 0
        p[:, -1] = p[:, -2]
        change = np.sum(np.abs(p - old)) / max(np.sum(np.abs(old)), 1e-12)
        steps += 1
    state = np.array([1.0, 1.0, 1.0])
    path = [state]
    for _ in range(40):
        state = state + 0.01 * lorenz(state)
        path.append(state)
    return {
        "u0": u0,
        "p": p,
        "steps": steps,
        "path": np.array(path),
        "hottest": np.unravel_index(u0.argmax(), u0.shape),
    }
