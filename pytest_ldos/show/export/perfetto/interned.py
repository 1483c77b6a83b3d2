"""Interned texts, to which events refer by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.show.export.perfetto import wire
from pytest_ldos.show.export.perfetto.fields import Interned


class Texts:
    """Numbers texts from 1 on, each text once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        """0 for no text."""
        return 0 if text is None else self._numbers.setdefault(text, len(self._numbers) + 1)

    def numbers(self, texts: Iterable[str | None]) -> npt.NDArray[np.uint32]:
        """One number per text, followed by a 0 for row -1."""
        return np.array([*(self.number(text) for text in texts), 0], dtype=np.uint32)

    def of_column(self, column: pl.Series) -> npt.NDArray[np.uint32]:
        """One number per row, 0 for null."""
        numbers = {text: self.number(text) for text in column.unique().drop_nulls().sort()}
        if not numbers:
            return np.zeros(len(column), dtype=np.uint32)
        return column.replace_strict(numbers, default=0, return_dtype=pl.UInt32).to_numpy()

    def encoded(self, field: Interned) -> bytes:
        return b"".join(
            wire.message(field, wire.number(1, number), wire.text(2, text)) for text, number in self._numbers.items()
        )


class Vocabulary:
    """All texts of a trace, by where they occur."""

    def __init__(self) -> None:
        self.names = Texts()
        self.categories = Texts()
        self.arguments = Texts()
        self.values = Texts()

    def encoded(self) -> bytes:
        """Fields of an ``InternedData``."""
        parts: Sequence[tuple[Interned, Texts]] = (
            (Interned.CATEGORIES, self.categories),
            (Interned.NAMES, self.names),
            (Interned.ANNOTATION_NAMES, self.arguments),
            (Interned.ANNOTATION_TEXTS, self.values),
        )
        return b"".join(texts.encoded(field) for field, texts in parts)
