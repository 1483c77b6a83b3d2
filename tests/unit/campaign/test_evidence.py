"""Profiled starts after a session, and changed files in packages of functions that grew."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.campaign.blocks import interleave, profile_again
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.watching import Seen, Watching, find_evidence, is_near, spec_of_evidence
from pytest_ldos.scenario.model import WatchSpec
from pytest_ldos.scenario.words import ProfilerKind
from tests.fakes.bench import CLEAR, VERSIONS, make_bench
from tests.fakes.bench import Watching as Blocks
from tests.fakes.profiler import samples
from tests.fakes.rig import Motion


class Attached:
    """See `Watch`; counts the starts that it was attached to."""

    tools = distortion = ""

    def __init__(self) -> None:
        self.trials: list[int] = []

    def attached_to(self, rig):
        return nullcontext()

    def read(self, rig, trials):
        self.trials.append(trials)


@pytest.mark.parametrize(("size", "trials"), [(2, 4), (5, 5)])
def test_starts_are_pairs_with_trials_of_a_block(tmp_path, size, trials):
    watches, announced, blocks = {role: Attached() for role in Role}, [], Blocks()
    made = interleave(make_bench(tmp_path, observer=blocks), VERSIONS, size=size, decide=CLEAR)
    before = sorted(tmp_path.rglob("*.json")), dict(made.bench.clock.durations)
    blocks.blocks.clear()
    profile_again(made, 3, watches.get, announced.append)
    assert blocks.letters == "ABBABA"
    assert [each.trials for each in watches.values()] == [[trials] * 3] * 2
    assert (sorted(tmp_path.rglob("*.json")), made.bench.clock.durations) == before
    assert len(announced) == 1
    assert announced[0].startswith("regressed: profiling 3 more starts of each version to find the cause, about ")


def test_dead_stack_ends_the_profiles_and_leaves_no_trace(tmp_path):
    made = interleave(make_bench(tmp_path, trials=8), VERSIONS, decide=CLEAR)
    dying = make_bench(tmp_path / "dying", head=lambda index: Motion(error_code=None, message="it crashed"))
    vars(made)["bench"] = dying
    with pytest.raises(ProfilingFailed, match="head: it crashed"):
        profile_again(made, 2, {role: Attached() for role in Role}.get, lambda text: None)
    assert not list((tmp_path / "dying").rglob("trace"))


def watched(role: Role, *, hot: int = 400) -> Watching:
    watching = Watching(WatchSpec())
    watching.seen = [Seen(Path(name), profile=samples(role, hot)) for name in "ab"]
    return watching


CHANGES = {"src/arm/planner.py": "+5 -2", "README.md": "+1 -1", "new\x1b\nline.txt": "binary"}


def test_files_are_those_of_packages_that_grew():
    found = find_evidence(watched(Role.BASE), watched(Role.HEAD), CHANGES)
    assert found is not None
    assert found.files == ("src/arm/planner.py +5 -2",)


def test_without_a_known_package_all_files_are_listed_up_to_a_limit():
    many = CHANGES | {f"docs/{number}.md": "+1 -0" for number in range(20)}
    found = find_evidence(watched(Role.BASE), watched(Role.HEAD, hot=3), many)
    assert found is not None
    assert found.grown == ()
    assert found.files[:3] == ("src/arm/planner.py +5 -2", "README.md +1 -1", "new\\x1b line.txt binary")
    assert (len(found.files), found.files[-1]) == (9, "15 more")


def test_version_without_samples_has_no_evidence():
    assert find_evidence(Watching(WatchSpec()), watched(Role.HEAD), CHANGES) is None
    assert find_evidence(None, None, CHANGES) is None


@pytest.mark.parametrize(
    ("file", "known", "near"),
    [
        ("src/arm/arm/node.py", "arm/node.py", True),
        ("src/arm/arm/other.py", "arm/node.py", True),
        ("src/arm/test/other.py", "arm/node.py", False),
        ("scripts/node.py", "node.py", True),
        ("scripts/other.py", "node.py", False),
        ("src/my_planner/src/solve.cpp", "/ws/install/my_planner/lib/libsolver.so.1.2", True),
        ("src/my_planner/src/solve.cpp", "/ws/install/my_planner/lib/my_planner/node", True),
        ("src/solver/solve.cpp", "/ws/install/my_planner/lib/libsolver.so.1.2", True),
        ("src/lib/a.cpp", "/usr/lib/libc.so.6", False),
        ("src/a.cpp", "[kernel.kallsyms]", False),
        ("src/a.cpp", "", False),
    ],
)
def test_packages_by_paths(file, known, near):
    assert is_near(file, known) is near


def test_requested_profiler_and_a_higher_rate_are_kept(monkeypatch):
    monkeypatch.setattr("pytest_ldos.campaign.watching.resolve_profiler", lambda kind: kind)
    assert spec_of_evidence(WatchSpec()) == WatchSpec(profile=True, profiler=ProfilerKind.BOTH, rate_hz=499)
    asked = WatchSpec(profiler=ProfilerKind.PERF, rate_hz=999)
    assert spec_of_evidence(asked) == WatchSpec(profile=True, profiler=ProfilerKind.PERF, rate_hz=999)
