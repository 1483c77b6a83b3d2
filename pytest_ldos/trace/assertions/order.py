"""Assertion on the order of happenings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from pytest_ldos.base.units import format_duration
from pytest_ldos.trace.assertions.evidence import Evidence, Source, require
from pytest_ldos.trace.assertions.happenings import Happening

_ORDINALS = {0: "first", 1: "second", 2: "third", -1: "last"}


def assert_order(source: Source, *happenings: Happening) -> list[int]:
    """Asserts the order of happenings: of the first occurrence of each, or of the one selected by `nth`.

    ``assert_order(model, published("/a"), callback_began(node="/b", topic="/a"))``

    Returns:
        Time of each happening, nanoseconds since the epoch.

    Raises:
        AssertionError: one did not happen, or the order differs; the message lists all of them with their times.
    """
    __tracebackhide__ = True
    require(len(happenings) >= 2, "an order needs two happenings at least")
    seen = Evidence.of(source)
    moments = [_moment_of(seen, happening) for happening in happenings]
    wrong = [(one, other) for one, other in pairwise(range(len(moments))) if moments[other] < moments[one]]
    if wrong:
        one, other = wrong[0]
        earlier = format_duration(moments[one] - moments[other])
        headline = f"{_name(happenings[other])} came {earlier} before {_name(happenings[one])}"
        seen.fail(headline, _listed(seen, happenings, moments))
    return moments


def _moment_of(seen: Evidence, happening: Happening) -> int:
    __tracebackhide__ = True
    times = happening.find(seen)["time_ns"]
    needed = happening.number + 1 if happening.number >= 0 else -happening.number
    if len(times) < needed:
        count = f"{len(times)} of them" if len(times) else "none"
        seen.fail(f"expected the {_name(happening)} but found {count}", happening.instead(seen))
    return int(times[happening.number])


def _listed(seen: Evidence, happenings: Sequence[Happening], moments: Sequence[int]) -> Iterable[str]:
    yield "expected in this order:"
    for happening, moment in zip(happenings, moments, strict=True):
        yield f"  {seen.moment(moment, digits=6)}  {_name(happening)}"


def _name(happening: Happening) -> str:
    what, number = happening.describe(many=False), happening.number
    if number in _ORDINALS:
        return f"{_ORDINALS[number]} {what}"
    return f"{what}, number {number + 1 if number > 0 else number},"
