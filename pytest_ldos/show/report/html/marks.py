"""Trials in charts: filled circles of this version, open diamonds of the base, crosses where they failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pytest_ldos.show.report.plots.chart import Mark, Series, Shape


def trials(version: str, marks: Iterable[Mark]) -> Series:
    """Trials of ``base`` or ``head``."""
    is_head = version == "head"
    return Series(
        kind=f"mark {version}",
        marks=tuple(marks),
        colour=version,
        shape=Shape.CIRCLE if is_head else Shape.DIAMOND,
        is_hollow=not is_head,
        size=7.2 if is_head else 6.5,
    )


def failed(marks: Iterable[Mark]) -> Series:
    """Trials without a value; the tip of a mark names its trial."""
    named = tuple(replace(mark, tip=f"{mark.tip} failed: slower than any") for mark in marks)
    return Series(kind="mark failed", marks=named, colour="bad", shape=Shape.CROSS)
