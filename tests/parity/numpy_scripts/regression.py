"""Linear and logistic regression by gradient descent, with a split, standardized columns, one-hot
labels and a confusion matrix."""

import numpy as np


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main():
    i = np.arange(90)
    features = np.array([np.sin(i), np.cos(1.3 * i), (i % 7) / 7.0]).T
    target = features @ np.array([1.5, -2.0, 0.5]) + 0.3
    scaled = (features - features.mean(0)) / features.std(0)
    design = np.concatenate([np.ones((len(i), 1)), scaled], axis=1)
    weights = np.zeros(design.shape[1])
    losses = []
    for _ in range(60):
        rest = design.dot(weights) - target
        weights -= 0.1 * design.T.dot(rest) / len(i)
        losses.append(float((rest**2).mean()))
    r2 = 1 - np.sum((target - design @ weights) ** 2) / np.sum((target - np.mean(target)) ** 2)
    labels = np.digitize(target, np.quantile(target, [1 / 3, 2 / 3]))
    one_hot = np.eye(3)[labels]
    w = np.zeros((4, 3))
    for _ in range(40):
        p = softmax(design @ w)
        w -= 0.5 * design.T @ (p - one_hot) / len(i)
    predicted = np.argmax(softmax(design @ w), axis=-1)
    confusion = np.zeros((3, 3), dtype=int)
    np.add.at(confusion, (labels, predicted), 1)
    cross_entropy = -np.log(p[np.arange(len(i)), labels]).mean()
    binary = sigmoid(design @ weights) > 0.5
    return {"weights": weights, "losses": losses, "r2": r2, "confusion": confusion, "entropy": cross_entropy,
            "accuracy": (predicted == labels).mean(), "positive": binary.mean(), "text": f"{r2:.4f}",
            "halves": [each.sum() for each in np.array_split(labels, 4)]}  # fmt: skip
