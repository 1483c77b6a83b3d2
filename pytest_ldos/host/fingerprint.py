"""Fingerprint of a machine, which decides if two measurements are comparable."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_ldos.host.cpu import read_governor, read_setting, read_smt, read_turbo

_CPU_INFO: Final = Path("/proc/cpuinfo")


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """A machine and the software installed on it.

    The first six fields and the middleware form the host class. The others are recorded and
    shown, but do not prevent comparisons, so that regressions due to upgrades are found.

    Attributes:
        smt: ``on``, ``off`` or ``unknown``.
        governor: governor of the first CPU; ``none`` without frequency scaling.
        turbo: ``on``, ``off`` or ``unknown``.
        versions: versions of relevant packages, by name.
    """

    cpu_model: str
    cores: int
    smt: str
    governor: str
    turbo: str
    rmw: str
    kernel: str
    hostname: str
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def host_class(self) -> str:
        """Name of the folder of this class's baselines."""
        parts = (
            self.cpu_model,
            f"{self.cores}-cores",
            f"smt-{self.smt}",
            f"governor-{self.governor}",
            f"turbo-{self.turbo}",
            self.rmw,
        )
        return "_".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in parts)


def take_fingerprint(*, rmw: str, versions: Mapping[str, str]) -> Fingerprint:
    """Takes this machine's current fingerprint."""
    model = re.search(r"^(?:model name|Model|Hardware)\s*:\s*(.+)$", read_setting(_CPU_INFO), re.MULTILINE)
    return Fingerprint(
        cpu_model=model.group(1).strip() if model else platform.machine(),
        cores=os.cpu_count() or 1,
        smt=read_smt(),
        governor=read_governor(),
        turbo=read_turbo(),
        rmw=rmw,
        kernel=platform.release(),
        hostname=platform.node(),
        versions=versions,
    )


def find_differences(head: Fingerprint, base: Fingerprint) -> list[tuple[str, str, str]]:
    """Packages whose versions differ: name, base version, head version (``absent`` if not installed)."""
    names = sorted({*head.versions, *base.versions})
    found = [(name, base.versions.get(name, "absent"), head.versions.get(name, "absent")) for name in names]
    found.append(("kernel", base.kernel, head.kernel))
    return [(name, before, after) for name, before, after in found if before != after]
