"""Text that came from other programs, made safe to show: the rule of the lowest floor, by its name here."""

from __future__ import annotations

from pytest_ldos.text import visible as visible  # noqa: PLC0414 - handed on
