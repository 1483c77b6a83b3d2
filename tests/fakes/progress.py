"""Progress of a measurement without output."""

from __future__ import annotations


class Silence:
    """See `instruments.study.Progress`; shows nothing."""

    def expect(self, steps: int) -> None: ...

    def doing(self, what: str) -> None: ...

    def step(self, count: int = 1) -> None: ...

    def note(self, text: str) -> None: ...
