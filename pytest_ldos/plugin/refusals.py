"""Tests that are refused before anything is measured for them: why is said once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pytest_ldos.base.errors import LdosError


class Refusals:
    """The refused tests of one session."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._refused: set[str] = set()

    def __contains__(self, nodeid: str) -> bool:
        return nodeid in self._refused

    def __len__(self) -> int:
        return len(self._refused)

    @contextmanager
    def noted(self, nodeid: str) -> Iterator[None]:
        """An error in the context refuses a test; one that was there before names the test where it was.

        Raises:
            LdosError: of the same kind.
        """
        try:
            yield
        except LdosError as error:
            self._refused.add(nodeid)
            first = self._first.setdefault(str(error), nodeid)
            if first == nodeid:
                raise
            raise type(error)(f"refused for the same reason as {first}") from None
