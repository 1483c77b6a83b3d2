"""Where rounds are measured: what they share."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from pytest_ldos.middleware.latency.programs import Programs
from pytest_ldos.middleware.latency.spec import LatencySpec


@dataclass(frozen=True, kw_only=True)
class Site:
    """Settings, programs, and a folder for what processes leave."""

    spec: LatencySpec
    programs: Programs
    folder: Path

    def without_priority(self) -> Site:
        """The same under the usual scheduler."""
        return dataclasses.replace(self, spec=dataclasses.replace(self.spec, priority=0))
