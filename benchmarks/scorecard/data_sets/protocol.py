"""Protocol of a data set: any number of runs of unchanged code."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from benchmarks.scorecard.sample import Batch


class DataSet(Protocol):
    """Runs in which nothing changed.

    Attributes:
        name: key in `scorecard.json`.
        title: as the table shows it.
        about: where the numbers come from, and what they are not.
        drifts: whether time lies between base and head, in which the machine changes.
        metrics, scenarios: of the family that is judged.
        power_scenarios: where shifts are planted; others make their numbers in the same way.
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def drifts(self) -> bool: ...

    @property
    def metrics(self) -> tuple[str, ...]: ...

    @property
    def scenarios(self) -> tuple[str, ...]: ...

    @property
    def power_scenarios(self) -> tuple[str, ...]: ...

    def draw(self, scenario: str, runs: int, rng: np.random.Generator) -> Batch:
        """Runs of one scenario."""
        ...
