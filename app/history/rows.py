"""Rows of a value per minute of the last day, in numpy arrays of a bounded size."""

import numpy as np
from numpy.typing import NDArray

MINUTES = 24 * 60
"""Columns of a row. A minute since the epoch has the column of its remainder; a new one replaces that of a day ago."""
LIMIT = 64 * 2**20
"""Maximum number of bytes of all rows together."""
BLOCK = 64
"""Rows of an array: as many are allocated at a time."""

Values = NDArray[np.float32]


class Rows:
    """Rows of 32-bit floats, shape (BLOCK, MINUTES) per array; NaN where nothing is known."""

    def __init__(self, limit: int = LIMIT) -> None:
        """Starts without rows, and never takes more than ``limit`` bytes for them."""
        self._blocks: list[Values] = []
        self._free: list[int] = []
        self._most = limit // (BLOCK * MINUTES * np.dtype(np.float32).itemsize)

    @property
    def nbytes(self) -> int:
        """The bytes of all rows."""
        return sum(block.nbytes for block in self._blocks)

    def take(self) -> Values | None:
        """Returns a new row with nothing known; None if there is no room for another."""
        if not self._free:
            if len(self._blocks) >= self._most:
                return None
            first = len(self._blocks) * BLOCK
            self._blocks.append(np.full((BLOCK, MINUTES), np.nan, dtype=np.float32))
            self._free.extend(range(first + BLOCK - 1, first - 1, -1))
        number = self._free.pop()
        row: Values = self._blocks[number // BLOCK][number % BLOCK]
        return row

    def give_back(self, row: Values) -> None:
        """Takes back a row that ``take`` returned; its values are gone."""
        row.fill(np.nan)
        for index, block in enumerate(self._blocks):
            if row.base is block:
                offset = row.__array_interface__["data"][0] - block.__array_interface__["data"][0]
                self._free.append(index * BLOCK + offset // row.nbytes)
                return

    def forget(self, minute: int) -> None:
        """Forgets the values of the minute a day before this one, in all rows."""
        for block in self._blocks:
            block[:, minute % MINUTES] = np.nan


def between(row: Values, first: int, number: int) -> Values:
    """Returns a copy of the values of so many minutes from the first on."""
    begin = first % MINUTES
    return np.concatenate((row[begin:], row[:begin]))[:number]


def highest(values: Values, step: int) -> Values:
    """Returns the highest value of each ``step`` minutes; NaN where nothing is known."""
    found: Values = np.fmax.reduce(_folded(values, step), axis=1)
    return found


def latest(values: Values, step: int) -> Values:
    """Returns the latest known value of each ``step`` minutes; NaN where nothing is known."""
    steps = _folded(values, step)
    last = step - 1 - np.argmax(~np.isnan(steps[:, ::-1]), axis=1)
    found: Values = steps[np.arange(len(steps)), last]
    return found


def sums(values: Values, known: NDArray[np.bool_], step: int) -> Values:
    """Returns the sum of each ``step`` minutes, where an unknown value of a known minute is 0; NaN if none is known."""
    counted = _folded(np.where(known & np.isnan(values), np.float32(0), values), step)
    unknown = np.isnan(counted).all(axis=1)
    return np.where(unknown, np.float32(np.nan), np.nansum(counted, axis=1)).astype(np.float32)


def _folded(values: Values, step: int) -> Values:
    """Returns the values in rows of ``step``; the last one is filled up with NaN."""
    lacking = -len(values) % step
    return np.concatenate((values, np.full(lacking, np.nan, dtype=np.float32))).reshape(-1, step)
