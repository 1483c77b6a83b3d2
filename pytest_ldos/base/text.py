"""Sanitising of untrusted text, and formatting of quantities."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NewType

Rendered = NewType("Rendered", str)
"""A sanitised text, as returned by a renderer. Only such text is printed."""

_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufffe\uffff]"
    r"|[\u00ad\ufeff\U000e0000-\U000e0fff]"
)

_STYLE: Final = r"(?:\x1b\[[0-9;]*m)*"
"""Colour sequences, which may occur within a finished line."""

_COMMAND: Final = re.compile(
    rf"^((?:[^\S\n]|\x1b\[[0-9;]*m)*:{_STYLE})(:)|()(#)(?={_STYLE}#{_STYLE}[\w.-]*\[)", re.MULTILINE
)
"""Commands of CI logs: ``::error::`` at the start of a line; ``##[error]``, ``##vso[task.setvariable]`` anywhere."""


def visible(text: str) -> str:
    """Escapes control characters except line ends and tabs, so that none reaches a terminal.

    Direction marks, invisible characters and unencodable characters are escaped, too, because they can disguise text.
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def one_line(text: str) -> str:
    """Sanitises text as one line, and escapes commands of CI logs in it."""
    return without_commands(visible(text).replace("\n", " ").replace("\t", " "))


def without_logs(reason: str) -> str:
    """A reason without the logs of processes that follow it, each below ``--- NAME ---``."""
    return reason.partition("\n--- ")[0]


def safe_lines(text: str) -> str:
    return "\n".join(map(one_line, text.split("\n")))


def without_commands(text: str) -> str:
    return _COMMAND.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    before, character = (part for part in match.groups() if part is not None)
    return f"{before}\\x{ord(character):02x}"


NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

SECONDS_OF: Final = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}

UNITS: Final = (*SECONDS_OF, "Hz", "%", "B", "kB", "MB", "m", "mm", "rad", "N", "Nm", "W", "J", "")
"""Units of quantities; the last one is for counts and ratios."""

_ROUNDED_UP: Final = 0.9995
"""Share of a unit from which a value is rounded up to the whole unit."""


def ns_to_ms(duration_ns: float) -> float:
    return duration_ns / NS_PER_MS


def seconds_to_ns(duration_s: float) -> int:
    return round(duration_s * NS_PER_S)


def counted(count: int, one: str, several: str = "") -> str:
    """``1 trial``, ``2 trials``; `several` is an irregular plural."""
    return f"{count} {one if count == 1 else several or f'{one}s'}"


def listed(names: Sequence[str], most: int) -> str:
    """``a, b and 3 more``: the first names, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def format_quantity(value: float, unit: str) -> str:
    """`value` with three significant digits and its unit: ``14.2 ms``, ``0.0831 ms``.

    Values of 100 and more have one decimal, so that small differences remain visible (1961.4 ms).
    """
    if abs(value) >= 100:
        return f"{value:.1f} {unit}".rstrip()
    return f"{value:#.3g}".rstrip(".") + (f" {unit}" if unit else "")


def format_duration(duration_ns: float) -> str:
    """A duration with three significant digits in a suitable unit: ``141 µs``, ``16.0 ms``, ``1.96 s``."""
    for unit, size in (("s", NS_PER_S), ("ms", NS_PER_MS), ("µs", NS_PER_US)):
        if abs(duration_ns) >= _ROUNDED_UP * size:
            return f"{duration_ns / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{duration_ns:.0f} ns"


def describe_duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def format_bytes(count: float) -> str:
    """A size with three significant digits: ``841 B``, ``12.3 MB``."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:#.3g}".rstrip(".") + f" {unit}"
    return f"{count:.0f} B"


LARGEST_EFFECT: Final = 10.0


def percent(share: float, digits: int | None = 1, *, signed: bool = False) -> str:
    """A share as ``12.5 %`` or ``+12.5 %``, with `digits` decimals, or else two significant digits up to 100 %."""
    if digits is None:
        digits = 2 if 0 < share < 0.00995 else 1 if share < 0.0995 else 0
    return f"{100 * share:{'+' if signed else ''}.{digits}f} %"


def format_effect(size: float) -> str:
    """A relative effect without its sign: ``12.5 %``, ``> 1000 %``."""
    return f"> {percent(LARGEST_EFFECT, 0)}" if size > LARGEST_EFFECT else percent(size)


def format_ratio(ratio: float) -> str:
    """A ratio as a signed percentage: ``+31.2 %``."""
    return percent(ratio - 1, signed=True)
