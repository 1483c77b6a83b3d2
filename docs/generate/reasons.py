"""The page of reasons: what a verdict says, why, and what to do."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from docs.generate.text import code, flowing, table
from pytest_ldos.campaign.watching import DISTORTION
from pytest_ldos.judge.gate.reasons import VERDICT_OF, Distorted
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.reasons import WORDINGS


def reasons_page() -> Iterator[str]:
    """Every reason by the verdict that it leads to."""
    yield from (
        "# Reasons of a verdict",
        "",
        "Every sentence that a verdict can give as its reason, by the verdict, the most severe first; … stands for",
        "what only a run knows. A metric that moved has a reason, too: `T1 (planning latency) regressed: +77.9 %`.",
        "",
    )
    for verdict in sorted({*VERDICT_OF.values()}, key=lambda each: -each.severity):
        yield from (f"## `{verdict.value}`", "")
        yield from table(("reason", "cause", "what to do"), _rows(verdict))
        yield ""


def _rows(verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    for kind in (each for each, of in VERDICT_OF.items() if of is verdict):
        cause = flowing((inspect.getdoc(kind) or "").partition("\n\n")[0])
        wording = WORDINGS[kind]
        yield code(DISTORTION if kind is Distorted else wording.pattern), cause, wording.remedy
