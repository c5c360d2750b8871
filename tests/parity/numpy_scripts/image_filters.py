"""Filters of images: blur, edges, medians, thresholds, labels of a histogram, thinning by masks."""

import numpy as np


def correlate2d(image, kernel):
    ph, pw = kernel.shape[0] // 2, kernel.shape[1] // 2
    padded = np.pad(image, ((ph, ph), (pw, pw)), mode="edge")
    out = np.zeros_like(image, dtype=float)
    for i in range(kernel.shape[0]):
        for j in range(kernel.shape[1]):
            out += kernel[i, j] * padded[i : i + image.shape[0], j : j + image.shape[1]]
    return out


def otsu(image):
    counts, edges = np.histogram(image.ravel(), bins=16)
    middles = (edges[:-1] + edges[1:]) / 2.0
    below = np.cumsum(counts)
    above = np.cumsum(counts[::-1])[::-1]
    mean_below = np.cumsum(counts * middles) / below
    mean_above = (np.cumsum((counts * middles)[::-1]) / above[::-1])[::-1]
    between = below[:-1] * above[1:] * (mean_below[:-1] - mean_above[1:]) ** 2
    return middles[:-1][np.argmax(between)]


def main():
    y, x = np.ogrid[:20, :26]
    image = np.clip(200 * np.exp(-((y - 9) ** 2 + (x - 12) ** 2) / 40.0) + 10, 0, 255).astype(
        np.uint8
    )
    line = np.exp(-(np.arange(-2, 3) ** 2) / 2.0)
    blurred = correlate2d(image.astype(float), np.outer(line, line) / line.sum() ** 2)
    sobel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]])
    edges = np.sqrt(correlate2d(blurred, sobel) ** 2 + correlate2d(blurred, sobel.T) ** 2)
    padded = np.pad(image, 1, mode="reflect")
    stack = np.stack([padded[i : i + 20, j : j + 26] for i in range(3) for j in range(3)])
    median = np.median(stack, axis=0).astype(np.uint8)
    opened = stack.min(axis=0)
    threshold = otsu(blurred)
    mask = blurred > threshold
    rows, columns = np.nonzero(mask)
    inverted = 255 - image
    gamma = (255 * (image / 255.0) ** 0.5).round().astype(np.uint8)
    return {"blurred": blurred, "edges": edges, "median": median, "opened": opened, "area": mask.sum(),
            "box": (rows.min(), rows.max(), columns.min(), columns.max()), "inverted": inverted,
            "gamma": gamma, "center": np.array([rows.mean(), columns.mean()]),
            "levels": np.unique(image)[::7], "rotated": np.rot90(image)[::4, ::4]}  # fmt: skip
