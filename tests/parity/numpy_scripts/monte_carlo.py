"""Pi by random points, a random walk, and a bootstrap: statistics, which the draws decide."""

import numpy as np


def main():
    rng = np.random.default_rng(12345)
    points = rng.uniform(-1, 1, size=(40000, 2))
    pi = 4 * np.mean(np.sum(points**2, axis=1) < 1)
    walks = np.cumsum(rng.choice([-1, 1], size=(400, 100)), axis=1)
    spread = walks[:, -1].std()
    sample = rng.normal(5.0, 2.0, 2000)
    resampled = rng.choice(sample, size=(200, sample.size)).mean(axis=1)
    low, high = np.percentile(resampled, [2.5, 97.5])
    np.random.seed(0)
    dice = np.random.randint(1, 7, size=6000)
    faces, counts = np.unique(dice, return_counts=True)
    shuffled = rng.permutation(10)
    assert abs(pi - np.pi) < 0.05 and 8 < spread < 12 and low < 5.1 and high > 4.9 and low < high
    assert counts.min() > 850 and np.array_equal(np.sort(shuffled), np.arange(10))
    return {"faces": faces, "shape": walks.shape, "sorted": np.sort(shuffled)}
