"""Contents of a report of a sweep in numbers: the one source of all its formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pytest_ldos.campaign.cells import Value

CONFIDENCE: Final = 0.95
"""Confidence of all intervals in a sweep's report."""


@dataclass(frozen=True, kw_only=True)
class AxisReport:
    """A setting and its values, in order.

    Attributes:
        name: as short as it stays unique.
        is_numeric: whether all values are numbers.
    """

    address: str
    name: str
    values: tuple[Value, ...]
    is_numeric: bool


@dataclass(frozen=True, kw_only=True)
class MetricTitle:
    """Names of a metric."""

    name: str
    title: str
    unit: str
    better: str


@dataclass(frozen=True, kw_only=True)
class LoadNumber:
    """A number of a load's proof that is worth a drawing.

    Attributes:
        kind, field: of which proof, and which of its fields.
        factor: from there to `unit`.
    """

    kind: str
    field: str
    title: str
    unit: str
    factor: float = 1.0

    @property
    def key(self) -> str:
        return f"{self.kind}.{self.field}"


LOAD_NUMBERS: Final = (
    LoadNumber(kind="dds_flood", field="rate_hz", title="messages sent, all publishers", unit="Hz"),
    LoadNumber(kind="guard", field="late_share", title="late messages of the guarded path", unit="%", factor=100),
    LoadNumber(kind="guard", field="share", title="share of their rate left to publishers", unit="%", factor=100),
)


@dataclass(frozen=True, kw_only=True)
class Located:
    """Location of a metric in a cell.

    Attributes:
        median: ``None`` where more than half of the values are of failed trials, which count as slower than any.
        low, high: interval of the median; ``None`` where it has no such end.
        ratio, ratio_low, ratio_high: to the reference cell (Hodges–Lehmann, with starts known to differ); ``None``
            where there is no ratio, no such end, or in the reference cell itself.
        values: how many trials have one.
    """

    median: float | None
    low: float | None
    high: float | None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    values: int = 0


@dataclass(frozen=True, kw_only=True)
class CellReport:
    """One cell.

    Attributes:
        values: of the axes, in their order.
        state: ``valid``, ``broken`` (the arm could not go on beside its loads), ``invalid``,
            ``infra``, ``skipped`` or ``not measured``.
        reasons: why it is not valid, or what there is to know of it.
        trials, successes: a trial whose way home failed failed; an arm that was lost before its first failed in one.
        success_low, success_high: interval of the success rate.
        loads: proofs, in words.
        load_numbers: of `LOAD_NUMBERS`, those that its loads' proofs have, by key; means of its starts.
        starts, planned: stack starts that were made, and that were to be.
        hosts: where it was measured.
        metrics: by name; those of a cell that is not valid are told, too, and are not to be relied on.
        is_reference: whether others' ratios are to this one.
        verdict: of the test that the cell is.
    """

    label: str
    scenario: str
    values: tuple[Value, ...]
    state: str
    reasons: tuple[str, ...]
    trials: int
    successes: int
    success_low: float
    success_high: float
    loads: tuple[str, ...]
    load_numbers: Mapping[str, float]
    starts: int
    planned: int
    hosts: tuple[str, ...]
    metrics: Mapping[str, Located]
    is_reference: bool = False
    verdict: str = ""

    @property
    def is_valid(self) -> bool:
        return self.state == VALID


VALID: Final = "valid"
NOT_MEASURED: Final = "not measured"


@dataclass(frozen=True, kw_only=True)
class SweepReport:
    """A sweep, finished or not.

    Attributes:
        stack: description of what was measured; empty where nothing was.
        notes: what is to be known of the numbers.
    """

    name: str
    scenario: str
    axes: tuple[AxisReport, ...]
    metrics: tuple[MetricTitle, ...]
    cells: tuple[CellReport, ...]
    commit: str
    stack: str
    made_by: str
    made_at: str
    notes: tuple[str, ...]
