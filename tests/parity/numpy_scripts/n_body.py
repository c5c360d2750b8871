"""Bodies that attract each other, by leapfrog steps; the energy should stay."""

import numpy as np


def accelerations(pos, mass, softening):
    dx = pos[:, 0:1].T - pos[:, 0:1]
    dy = pos[:, 1:2].T - pos[:, 1:2]
    dz = pos[:, 2:3].T - pos[:, 2:3]
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
    ax = (dx * inv_r3) @ mass
    ay = (dy * inv_r3) @ mass
    az = (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


def energy(pos, vel, mass):
    kinetic = 0.5 * np.sum(np.sum(mass * vel**2))
    apart = pos[:, None, :] - pos[None, :, :]
    inv_r = np.sqrt((apart**2).sum(axis=-1))
    inv_r[inv_r > 0] = 1.0 / inv_r[inv_r > 0]
    potential = -np.sum(np.sum(np.triu((mass * mass.T) * inv_r, 1)))
    return kinetic, potential


def main():
    n, dt = 12, 0.01
    angles = np.linspace(0, 2 * np.pi, n, endpoint=False)
    mass = 20.0 * np.ones((n, 1)) / n
    pos = np.column_stack([np.cos(angles), np.sin(angles), 0.1 * np.sin(3 * angles)])
    vel = np.column_stack([-np.sin(angles), np.cos(angles), np.zeros(n)])
    vel -= np.mean(mass * vel, 0) / np.mean(mass)
    acc = accelerations(pos, mass, 0.1)
    energies = np.zeros((2, 21))
    energies[:, 0] = energy(pos, vel, mass)
    for i in range(20):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = accelerations(pos, mass, 0.1)
        vel += acc * dt / 2.0
        energies[:, i + 1] = energy(pos, vel, mass)
    return {"pos": pos, "vel": vel, "energies": energies}
