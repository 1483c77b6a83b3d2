"""The common context of all rounds."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from pytest_ldos.instruments.latency.programs import Programs
from pytest_ldos.instruments.latency.spec import LatencySpec


@dataclass(frozen=True, kw_only=True)
class Site:
    """Settings, programs, and a folder for the files of the processes."""

    spec: LatencySpec
    programs: Programs
    folder: Path

    def without_priority(self) -> Site:
        """Returns the same site with the default scheduler."""
        return dataclasses.replace(self, spec=dataclasses.replace(self.spec, priority=0))
