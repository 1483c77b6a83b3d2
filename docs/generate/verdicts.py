"""The page of exit codes and verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from docs.generate.text import code, table
from pytest_ldos.base import exit_codes
from pytest_ldos.judge.gate.verdict import Tone, Verdict

MEANINGS: Final[Mapping[int, str]] = {
    exit_codes.USAGE: "`ldos`: a call that is not understood, or a wrong setting",
    exit_codes.ALARM: "`ldos watch`: a deadline was missed, or a topic fell silent",
    exit_codes.REGRESSED: "regressed: a metric or the success rate is worse than before, or an expectation is not met",
    exit_codes.INVALID: "the measurement was invalid or impossible, or results could not be written",
    exit_codes.INCONCLUSIVE: "no verdict was possible, or none of the selected tests was judged, in a strict run; "
    "`ldos doctor --strict`: only warnings",
    exit_codes.INTERRUPTED: "`ldos`: a command that measures was interrupted (Ctrl-C)",
}


def verdicts_page() -> Iterator[str]:
    """Every exit code, and every verdict with its severity."""
    yield from (
        "# Exit codes and verdicts",
        "",
        "## Exit codes",
        "",
        "Of pytest and of `ldos`; pytest's own keep their meaning.",
        "",
    )
    theirs = {int(code): code.name.lower().replace("_", " ") for code in pytest.ExitCode}
    known = sorted({*theirs, *MEANINGS})
    rows = [(str(code), theirs.get(code, ""), MEANINGS.get(code, "")) for code in known]
    yield from table(("code", "pytest's own", "ours"), rows)
    yield ""
    yield from (
        "## Verdicts",
        "",
        "The most severe verdict of all scenarios decides the exit status. Causes and cures: ",
        "[troubleshooting](../troubleshooting/verdicts.md).",
        "",
    )
    yield from table(
        ("verdict", "severity", "exit status", "strict"),
        [
            (
                code(each.value),
                str(each.severity),
                "0" if each.tone is Tone.DOUBT else str(each.exit_code),
                str(each.exit_code),
            )
            for each in sorted(Verdict, key=lambda each: each.severity)
        ],
    )
    yield ""
