"""Protocol of a rule: from samples of one metric to red or not."""

from __future__ import annotations

from typing import Protocol

from benchmarks.scorecard.sample import Flags, Indices, Numbers


class Rule(Protocol):
    """A tool's rule for one metric, applied to many runs at once.

    Attributes:
        name: key in `scorecard.json`.
        title: as the table shows it.
        source: where the rule is stated, or whose code it is.
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def source(self) -> str: ...

    def fires(self, base: Numbers, head: Numbers, base_blocks: Indices) -> Flags:
        """True for each red run.

        Args:
            base, head: shape (runs, trials), milliseconds; NaN where a trial has no value.
            base_blocks: shape (base trials,), the stack start of each trial.
        """
        ...
