"""The table in ``lab/runner/README.md``: what the workflow's program and the machine's hook do, as they are now."""

from __future__ import annotations

from tests.builders.event_table import README, render_table, written


def test_event_table_matches_the_workflows():
    text = README.read_text("utf-8")
    assert text == written(text), "write it again: python -m tests.builders.event_table"


def test_nothing_is_measured_without_permission():
    """No event that anyone can cause starts a measurement."""
    lines = [line for line in render_table().splitlines() if "stranger" in line or "anybody" in line]
    assert len(lines) >= 4
    assert not any("begins" in line or "verdict" in line for line in lines)
