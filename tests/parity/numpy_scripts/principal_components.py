"""Principal components, whitening and reconstruction; a line of best fit beside it."""

import numpy as np


def main():
    t = np.linspace(-3, 3, 50)
    data = np.vstack((t, 0.5 * t + 0.1 * np.sin(5 * t), -(t**2))).T
    mean = data.mean(axis=0)
    centered = data - mean
    covariance = np.cov(centered, rowvar=False)
    values, vectors = np.linalg.eigh(covariance)
    order = np.argsort(values)[::-1]
    values, vectors = values[order], vectors[:, order]
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), range(3)])
    scores = centered @ vectors[:, :2]
    rebuilt = scores @ vectors[:, :2].T + mean
    singular = np.linalg.svd(centered, full_matrices=False)[1]
    assert np.allclose(singular**2 / (len(data) - 1), values)
    design = np.c_[np.ones_like(t), t]
    line, *_ = np.linalg.lstsq(design, data[:, 1], rcond=None)
    normal = np.linalg.solve(design.T @ design, design.T @ data[:, 1])
    return {"values": values, "scores": scores, "error": np.abs(data - rebuilt).max(),
            "explained": np.cumsum(values) / values.sum(), "line": line, "normal": normal,
            "correlation": np.corrcoef(data.T)}  # fmt: skip
