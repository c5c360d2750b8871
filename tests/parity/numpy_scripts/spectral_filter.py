"""A signal without its noise, and an image without its high frequencies, by Fourier transforms."""

import numpy as np


def main():
    rate = 200
    t = np.arange(0, 1, 1 / rate)
    clean = np.sin(2 * np.pi * 7 * t) + 0.5 * np.sin(2 * np.pi * 20 * t)
    noisy = clean + 0.8 * np.cos(2 * np.pi * 61 * t + 1)
    spectrum = np.fft.rfft(noisy)
    frequencies = np.fft.rfftfreq(t.size, d=1 / rate)
    spectrum[frequencies > 30] = 0
    filtered = np.fft.irfft(spectrum, n=t.size)
    power = np.abs(np.fft.rfft(noisy)) ** 2 / t.size
    strongest = frequencies[np.argsort(power)[-3:]]
    y, x = np.mgrid[0:16, 0:24]
    image = np.sin(x / 3.0) + ((x + y) % 2) * 0.3
    shifted = np.fft.fftshift(np.fft.fft2(image))
    mask = np.hypot(y - 8, x - 12) < 5
    smooth = np.real(np.fft.ifft2(np.fft.ifftshift(shifted * mask)))
    window = np.hanning(11)
    averaged = np.convolve(noisy, window / window.sum(), mode="same")
    return {"filtered": filtered, "strongest": np.sort(strongest), "smooth": smooth, "averaged": averaged,
            "error": np.sqrt(np.mean((filtered - clean) ** 2)).round(9)}  # fmt: skip
