"""Work as 32-bit words: what a batch collects, and the block that JavaScript reads.

A block has four counts (words of commands, bytes of parameter blocks, bytes of uploads, words of
what to forget), then each of these. `helper.js` has the same numbers.
"""

from __future__ import annotations

from array import array
from typing import Final

# Commands, with the words behind them.
DISPATCH: Final = 1  # pipeline, group, parameter group (from 1; 0 for none), offset, x, y, z
COPY: Final = 2  # source, offset, target, offset, bytes
CLEAR: Final = 3  # buffer, offset, bytes
UPLOAD: Final = 4  # place in the uploads, buffer, offset, bytes
BIND: Final = 5  # group, layout, how many; of each: buffer, offset, bytes
TIMESTAMP: Final = 6  # set of queries, index
REPLAY: Final = 7  # recording, changes; of each: word, then words 3 to 7 of its dispatch

# What to forget, each with a number.
FORGET_BUFFER: Final = 1
FORGET_GROUP: Final = 2
FORGET_PIPELINE: Final = 3
FORGET_RECORDING: Final = 4
FORGET_QUERIES: Final = 5


class Batch:
    """Commands that were appended, and the data that they refer to."""

    __slots__ = ("blocks", "kept", "parameters", "room", "uploads", "words")

    def __init__(self) -> None:
        self.room = 0  # words at which the stream looks at what to do
        self.words: list[int] = []
        self.parameters = bytearray()
        self.blocks: dict[bytes, int] = {}  # parameter blocks that are there already
        self.uploads = bytearray()
        self.kept: list[object] = []  # alive as long as the batch

    def place(self, block: bytes, alignment: int) -> int:
        """The offset of a parameter block."""
        found = self.blocks.get(block)
        if found is None:
            parameters = self.parameters
            found = self.blocks[block] = len(parameters)
            parameters += block
            parameters += bytes(-len(block) % alignment)
        return found

    def block(self, forgotten: list[int]) -> array[int]:
        """All of it as one block."""
        words, parameters, uploads = self.words, self.parameters, self.uploads
        made = array("I", (len(words), len(parameters), len(uploads), len(forgotten)))
        made.fromlist(words)
        made.frombytes(parameters)
        made.frombytes(uploads)
        made.fromlist(forgotten)
        return made

    def clear(self) -> None:
        """Begin anew."""
        self.words.clear()
        self.parameters.clear()
        self.blocks.clear()
        self.uploads.clear()
        self.kept.clear()
