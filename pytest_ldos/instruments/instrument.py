"""Common interface of instruments: settings in, a study out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_ldos.host.availability import Availability
from pytest_ldos.instruments.study import Study
from pytest_ldos.measure.metrics.model import Metric


class Progress(Protocol):
    """Receives the progress of a measurement."""

    def expect(self, steps: int) -> None:
        """Announces the largest number of remaining steps."""

    def doing(self, what: str) -> None:
        """Announces the start of a longer step."""

    def step(self, count: int = 1) -> None:
        """Reports completed steps."""

    def note(self, text: str) -> None:
        """Reports an event worth a line of output."""


@dataclass(frozen=True, kw_only=True)
class Instrument:
    """A benchmark of the middleware or of tracing.

    Attributes:
        name: name of the instrument, of its command and, after ``ldos_``, of its mark.
        spec: type of its settings: a frozen dataclass whose fields are the mark's arguments.
        quantities: all quantities that it may gate; a study has those requested by its settings.
        available: reports if it can run here with given settings; called before anything starts.
        measure: runs the measurement. Raises an `LdosError` for known faults; undiscovered peers and lost messages
            are results.
    """

    name: str
    spec: type[Any]
    quantities: tuple[Metric, ...]
    available: Callable[[Any], Availability]
    measure: Callable[[Any, Progress], Study]
