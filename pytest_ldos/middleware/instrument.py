"""What all instruments have in common: settings in, a study out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_ldos.host.availability import Availability
from pytest_ldos.metrics.model import Metric
from pytest_ldos.middleware.study import Study


class Progress(Protocol):
    """Told how far a measurement has come."""

    def expect(self, steps: int) -> None:
        """So many steps are still to come, at most."""

    def doing(self, what: str) -> None:
        """A step of some length begins."""

    def step(self, count: int = 1) -> None:
        """Some steps were made."""

    def note(self, text: str) -> None:
        """Something worth a line happened."""


class Silence:
    """Nobody watches."""

    def expect(self, steps: int) -> None: ...

    def doing(self, what: str) -> None: ...

    def step(self, count: int = 1) -> None: ...

    def note(self, text: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Instrument:
    """A measurement of what lies under the arm.

    Attributes:
        name: also of its command and, after ``ldos_``, of its mark.
        spec: its settings: a frozen dataclass whose fields a mark's arguments name.
        quantities: all that it may gate; a study has those that its settings ask for.
        available: whether it can run here with such settings; asked before anything starts.
        measure: does it, whole. Raises an `LdosError` for what it can name; that peers do not meet or messages
            are lost is a result.
    """

    name: str
    spec: type[Any]
    quantities: tuple[Metric, ...]
    available: Callable[[Any], Availability]
    measure: Callable[[Any, Progress], Study]
