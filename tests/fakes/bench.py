"""Interleaved sessions on fake stacks."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_ldos.campaign.blocks import Bench, BlockObserver
from pytest_ldos.campaign.order import Block, Role
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.verdict import MayFailMore, Verdict
from pytest_ldos.measure.trial.artifacts import ScenarioFolder
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.robot.stack.protocol import OURS, Installation
from pytest_ldos.scenario.model import ScenarioSpec
from tests.fakes.rig import TYPICAL, Script, open_fake_rig

VERSIONS: Mapping[Role, Version] = {
    Role.BASE: Version(role=Role.BASE, name="base old", commit="0ld", installation=Installation("/old/bin/python")),
    Role.HEAD: Version(role=Role.HEAD, name="head", commit="new", installation=OURS),
}


@dataclass
class Watching(BlockObserver):
    """Notes which blocks began."""

    blocks: list[Block] = field(default_factory=list)

    def block(self, block: Block, version: Version) -> None:
        self.blocks.append(block)

    @property
    def letters(self) -> str:
        return "".join("A" if block.role is Role.BASE else "B" for block in self.blocks)


def make_bench(path: Path, *, head: Script = TYPICAL, base: Script = TYPICAL, **changes: Any) -> Bench:
    folder = ScenarioFolder(path / "scenario")
    folder.logs.mkdir(parents=True)
    names = {"trials", "max_trials", "warmup", "seeds", "success_rate"}
    of_spec = {name: changes.pop(name) for name in names & set(changes)}
    spec = ScenarioSpec(name="baseline", **of_spec)
    changes.setdefault("open_rig", functools.partial(open_fake_rig, script=head, base=base))
    changes.setdefault("observer", Watching())
    return Bench(spec=spec, folder=folder, goals="reach", **changes)


@dataclass
class Undecided:
    """A decision that is clear after so many looks; remembers how many trials it was shown."""

    looks: int
    shown: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, head: TrialSet, base: TrialSet) -> GateResult:
        self.shown.append((len(head.trials), len(base.trials)))
        reasons = (MayFailMore(),) if len(self.shown) < self.looks else ()
        return GateResult("baseline", Verdict.PASSED, (), more_trials_because=reasons)


CLEAR = Undecided(0)
