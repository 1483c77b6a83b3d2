"""Source and time of a record."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from github_api import Failed

from pytest_ldos.judge.baseline.history import started_at
from pytest_ldos.measure.trial.record import TrialSet

_SHORT: Final = re.compile("[0-9a-f]{12,40}")
_CLOCKS_APART: Final = timedelta(hours=1)


def require_commit(trials: TrialSet, where: str, commit: str = "") -> None:
    """Requires that a record is of a commit without local changes, and of this one if one is named.

    Records name the first twelve digits or more.

    Raises:
        Failed: it was not.
    """
    if _SHORT.fullmatch(trials.commit) is None or not commit.startswith(trials.commit if commit else ""):
        raise Failed(f"{where} was not measured for {commit or 'a commit'}")


def require_past(trials: TrialSet, where: str, now: datetime) -> None:
    """Requires that a record was made before now: one of the future would be the newest for ever.

    Raises:
        Failed: it was not.
    """
    if started_at(trials) > now + _CLOCKS_APART:
        raise Failed(f"{where} was measured in the future")
