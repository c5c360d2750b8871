"""Clusters of points around means."""

import numpy as np


def main():
    grid = np.arange(60)
    points = np.stack(
        [np.sin(grid * 1.7) + 3 * (grid % 3), np.cos(grid * 2.3) - 2 * (grid % 3 == 1)], axis=1
    )
    centers = points[:3].copy()
    for step in range(20):
        distances = np.linalg.norm(points[:, np.newaxis] - centers, axis=2)
        labels = np.argmin(distances, axis=1)
        moved = np.array([points[labels == k].mean(axis=0) for k in range(3)])
        if np.allclose(moved, centers):
            break
        centers = moved
    counts = np.bincount(labels, minlength=3)
    inertia = (distances.min(axis=1) ** 2).sum()
    order = np.lexsort((centers[:, 1], centers[:, 0]))
    return {"centers": centers[order], "counts": counts[order], "inertia": inertia, "steps": step,
            "labels": np.unique(labels, return_counts=True)}  # fmt: skip
