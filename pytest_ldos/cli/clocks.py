"""Clocks of several hosts, as the command line gives them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.units import format_duration
from pytest_ldos.trace.execution.clocks import shift_clocks
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.clocks import Bound, ClockOffset, estimate_clock_offsets

ESTIMATE = "estimate"


def correct_clocks(model: ExecutionModel, asked: Sequence[str]) -> tuple[ExecutionModel, list[str]]:
    """The model on one clock, and what was done.

    Args:
        asked: ``HOST=NANOSECONDS``, a TOML file of such entries, or ``estimate``: from the messages
            that the hosts sent each other. A clock of which messages in one direction give a bound is left as it is.

    Raises:
        ConfigurationError: neither of these, or no such host.
    """
    offsets: dict[str, int] = {}
    notes: list[str] = []
    for each in asked:
        if each == ESTIMATE:
            estimated = estimate_clock_offsets(build_flow(model))
            offsets |= {host: offset.offset_ns for host, offset in estimated.items() if offset.bound is None}
            notes += _describe(estimated)
        elif "=" in each:
            offsets |= dict([_parse(each)])
        else:
            offsets |= _read(Path(each))
    return (shift_clocks(model, offsets), notes) if offsets else (model, notes)


def _describe(estimated: dict[str, ClockOffset]) -> Iterator[str]:
    for host, offset in estimated.items():
        if offset.bound is not None:
            known = offset.bound if offset.bound is Bound.NONE else f"{offset.bound} {offset.offset_ns:+d} ns"
            yield (
                f"clock of {host}: not corrected; its offset is {known} ({offset.messages} messages, all in one "
                f"direction): if it is known from elsewhere, give it as --clock-offset {host}=NANOSECONDS"
            )
        elif offset.messages:
            exact = f"± {format_duration(offset.uncertainty_ns or 0)}, by {offset.messages} messages"
            yield f"clock of {host}: {offset.offset_ns:+d} ns ({exact})"


def _parse(text: str) -> tuple[str, int]:
    host, _, number = text.rpartition("=")
    try:
        return host, int(number)
    except ValueError:
        raise ConfigurationError(f"clock offset {text!r} has no number", remedy="HOST=NANOSECONDS") from None


def _read(file: Path) -> dict[str, int]:
    try:
        table = tomllib.loads(file.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        remedy = f"give HOST=NANOSECONDS, a TOML file of such entries, or {ESTIMATE!r}"
        raise ConfigurationError(f"clock offsets cannot be read from {file}: {error}", remedy=remedy) from None
    for host, number in table.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise ConfigurationError(f"{file}: the offset of {host} is {number!r}", remedy="whole nanoseconds")
    return table
