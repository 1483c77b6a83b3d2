"""Errors for unknown names, with the nearest known name."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from pytest_ldos.base.errors import ConfigurationError


def refuse_unknown(given: Iterable[str], known: Collection[str], where: str) -> None:
    """Raises `ConfigurationError` for the first name that is not known."""
    for name in given:
        if name not in known:
            raise ConfigurationError(f"unknown {where} '{name}'", remedy=suggest(str(name), known))


def suggest(name: str, known: Collection[str]) -> str:
    """``did you mean 'trials'?``, or all names if none is similar."""
    near = nearest(name, known)
    return f"did you mean '{near}'?" if near else f"known are: {', '.join(sorted(known))}"


def nearest(name: str, known: Collection[str]) -> str:
    """The known name that is most similar; empty if none is."""
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.6)), "")
