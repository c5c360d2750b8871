"""An epidemic: the susceptible, infected and recovered, by a Runge-Kutta method and sweeps."""

import numpy as np


def derivative(y, beta, gamma):
    s, i, r = y
    return np.array([-beta * s * i, beta * s * i - gamma * i, gamma * i])


def integrate(y0, beta, gamma, t):
    y = np.empty((len(t), 3))
    y[0] = y0
    for k in range(len(t) - 1):
        h = t[k + 1] - t[k]
        k1 = derivative(y[k], beta, gamma)
        k2 = derivative(y[k] + h / 2 * k1, beta, gamma)
        k3 = derivative(y[k] + h / 2 * k2, beta, gamma)
        k4 = derivative(y[k] + h * k3, beta, gamma)
        y[k + 1] = y[k] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def main():
    t = np.linspace(0, 20, 41)
    course = integrate(np.array([0.99, 0.01, 0.0]), 1.2, 0.3, t)
    peak = int(np.argmax(course[:, 1]))
    summary = f"peak of {course[peak, 1]:.3f} on day {t[peak]:.1f}"
    rates = np.arange(0.5, 2.0, 0.5)[:, np.newaxis]
    infected = np.exp((rates - 0.3) * t) * 0.01
    return {
        "course": course, "peak": peak, "summary": summary, "total": course.sum(axis=1),
        "doubling": np.where(infected > 0.02, t, np.inf).min(axis=1),
        "area": np.trapezoid(course[:, 1], t), "steepest": np.gradient(course[:, 1], t).max(),
    }  # fmt: skip
