"""The page of exit codes and verdicts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from docs.generate.text import code, table
from pytest_ldos.base import exit_codes
from pytest_ldos.judge.gate.verdict import Tone, Verdict


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
    known = sorted({*theirs, *exit_codes.MEANINGS})
    rows = [(str(code), theirs.get(code, ""), exit_codes.MEANINGS.get(code, "")) for code in known]
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
