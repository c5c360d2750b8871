"""Texts drawn from many scripts, with what breaks tokenizers: runs of spaces, joined emoji, signs,
control characters, numbers, what looks like special tokens."""

from __future__ import annotations

from random import Random

_RANGES = [
    *[(0x20, 0x7E)] * 6, (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF),
    (0x600, 0x6FF), (0x900, 0x97F), (0x980, 0x9FF), (0xE00, 0xE7F), (0x1100, 0x11FF),
    (0x1F00, 0x1FFF), (0x2000, 0x206F), (0x20A0, 0x20BF), (0x2190, 0x22FF), (0x3040, 0x30FF),
    *[(0x4E00, 0x9FFF)] * 2, (0xAC00, 0xD7A3), (0xFB00, 0xFDFF), (0xFF00, 0xFFEF),
    (0x10000, 0x1007F), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF), (0x1F600, 0x1F64F),
    (0x20000, 0x2A6DF), (0xE0020, 0xE007F), (0, 0x1F), (0x7F, 0x9F), (0x300, 0x36F),
]  # fmt: skip
_SAMPLES = """
    The quick brown fox don't I'LL we've THEY'RE 3.14159 1234567 2024-11-29 def f(x): return x**2
    http://example.com/a?b=c&d=1 café naïve Straße Привет мир こんにちは 世界 안녕하세요 नमस्ते
    مرحبا שלום สวัสดี 👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 e\u0301 <b> </div> <eos> <|im_start|> <start_of_turn>
    <0x41> ▁ ▁▁▁ ½ ² ① Ⅷ ٣٤٥ \u200b \ufeff ǅ ﬁ İ ß ſ
"""
_WORDS = _SAMPLES.split()
_CODE = "abcdeABC'.,;:!?(){}[]<>/\\-_=+*&^%$#@~`|\" \n"


def draw_text(random: Random) -> str:
    """A text of up to a few hundred characters."""
    return "".join(_part(random) for _ in range(random.randint(0, 12)))


def _part(random: Random) -> str:
    kind = random.random()
    if kind < 0.3:
        return random.choice(_WORDS) + random.choice(["", " ", "  ", "\n"])
    if kind < 0.6:
        low, high = random.choice(_RANGES)
        return "".join(chr(random.randint(low, high)) for _ in range(random.randint(1, 8)))
    if kind < 0.75:
        return random.choice(" \n\t\r") * random.choice([1, 1, 2, 3, 4, 7, 16, 40])
    if kind < 0.85:
        return "".join(random.choices(" \n\t\r\u00a0\u3000", k=random.randint(1, 6)))
    if kind < 0.92:
        return str(random.randint(0, 10 ** random.randint(1, 12)))
    return "".join(random.choices(_CODE, k=random.randint(1, 20)))
