"""Accepted changes for the worse: written by ``ldos accept``, read from the base, never from what is measured."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET

import pytest

from pytest_ldos.judge.baseline.accepted import FILE, Accepted, append_accepted, digest_difference
from tests.builders.command_line import run_ldos
from tests.plugin.conftest import SETUP

SLOWER = "noisy(1, planning=1.6), base=noisy(2)"
"""The checkout plans more slowly than any other version; `SLOWED` are worse."""

SLOWED = ("T1", "T1mean", "T4")

INTERLEAVED = ("--ldos-trials=10", "--ldos-warmup=0", "--ldos-base=main")
STORED = ("--ldos-trials=10", "--ldos-warmup=0")


@pytest.fixture
def slow(project, repository) -> str:
    """The commit of a branch that plans more slowly than main; the branch is checked out."""
    project.makepyprojecttoml("[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n" + SETUP)
    repository.commit(planner_txt="fast\n")
    repository.git("switch", "--quiet", "--create=topic")
    return repository.commit(planner_txt="slow\n")


def of_slow(repository, slow: str, **changes) -> Accepted:
    """The change that the branch brings, as it would be accepted."""
    entry = Accepted(
        scenario="baseline",
        stack="embedded",
        metric="T1",
        size=0.8,
        reason="it checks collisions twice",
        by="Ada",
        at="2026-01-01T00:00:00+00:00",
        commit=slow,
        base=repository.git("rev-parse", "--short=12", "main"),
        difference=digest_difference(repository.path, repository.git("rev-parse", "main"), slow),
    )
    return dataclasses.replace(entry, **changes)


def merge_into_main(repository, *entries: Accepted, text: str = "") -> None:
    """Commits a file of accepted changes to main, and moves the branch on top of it."""
    repository.git("switch", "--quiet", "main")
    append_accepted(repository.path, entries)
    with (repository.path / FILE).open("a", encoding="utf-8") as file:
        file.write(text)
    repository.git("add", FILE)
    repository.git("commit", "--quiet", "--message=accept")
    repository.git("rebase", "--quiet", "main", "topic")


def of_all(repository, slow: str, **changes) -> list[Accepted]:
    return [of_slow(repository, slow, metric=name, **changes) for name in SLOWED]


def sections(project):
    return json.loads((project.path / "result.json").read_text("utf-8"))["sections"]


def test_slowdown_is_accepted_merged_and_green(run, project, repository, slow, monkeypatch):
    assert run(*INTERLEAVED, stack=SLOWER).ret == 10
    monkeypatch.chdir(project.path)
    repository.git("config", "user.name", "Ada")
    accepted = run_ldos("accept", "latest", *SLOWED, "--reason", "it checks collisions twice")
    assert accepted.returncode == 0, accepted.stderr
    assert "baseline: accepted: T1 up to +" in accepted.stdout
    written = (project.path / FILE).read_text("utf-8")
    (project.path / FILE).unlink()
    merge_into_main(repository, text=written)
    result = run(*INTERLEAVED, "--ldos-report=result.json", "--junitxml=junit.xml", stack=SLOWER)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["*baseline: accepted; 10 of 10*", "*accepted: T1 +* % (Ada, it checks collisions twice; at most +* %)*"]
    )
    (section,) = sections(project)
    verdicts = {each["name"]: each["verdict"] for each in section["metrics"]}
    assert {section["verdict"], *(verdicts[name] for name in SLOWED)} == {"accepted"}
    assert [each.partition(" +")[0] for each in section["accepted"]] == [f"accepted: {name}" for name in SLOWED]
    properties = {each.get("name"): each.get("value") for each in ET.parse(project.path / "junit.xml").iter("property")}
    assert properties["ldos.verdict"] == "accepted"
    assert properties["ldos.accepted"].startswith("accepted: T1 +")
    again = run_ldos("report", "latest")
    assert "accepted: T1 +" in again.stdout


def test_what_head_itself_accepts_does_not_count(run, project, repository, slow):
    append_accepted(project.path, of_all(repository, slow))
    repository.commit()
    result = run(*INTERLEAVED, stack=SLOWER)
    assert result.ret == 10
    result.stdout.no_fnmatch_line("*accepted: *")


def test_accepted_metric_lets_no_other_through(run, project, repository, slow):
    merge_into_main(repository, of_slow(repository, slow))
    result = run(*INTERLEAVED, "--ldos-report=result.json", stack=SLOWER)
    assert result.ret == 10
    (section,) = sections(project)
    verdicts = {each["name"]: each["verdict"] for each in section["metrics"]}
    assert (verdicts["T1"], verdicts["T4"]) == ("accepted", "regressed")


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_larger_change_than_accepted_is_red(run, repository, slow):
    merge_into_main(repository, *of_all(repository, slow, size=0.01))
    result = run(*INTERLEAVED, stack=SLOWER)
    assert result.ret == 10
    result.stdout.no_fnmatch_line("*accepted: *")


@pytest.mark.acceptance
def test_later_change_of_the_same_size_is_red(run, project, repository, slow):
    """The entry stays in the file after its change was merged."""
    merge_into_main(repository, *of_all(repository, slow))
    repository.git("switch", "--quiet", "main")
    repository.git("merge", "--quiet", "--squash", "topic")
    repository.commit()
    repository.git("switch", "--quiet", "--create=later")
    repository.commit(planner_txt="slower still\n")
    assert run(*INTERLEAVED, stack=SLOWER).ret == 10


@pytest.mark.acceptance
def test_unreadable_file_of_the_base_accepts_nothing_and_is_reported(run, repository, slow):
    merge_into_main(repository, *of_all(repository, slow), text="[[accepted]]\nmetric = T2\n")
    result = run(*INTERLEAVED, stack=SLOWER)
    assert result.ret == 10
    result.stdout.fnmatch_lines([f"*nothing is accepted: {FILE} of * cannot be read: Invalid value (at line *"])


@pytest.mark.acceptance
def test_stored_baseline_accepts_by_its_own_commit(run, project, repository, slow):
    merge_into_main(repository, *of_all(repository, slow))
    repository.git("switch", "--quiet", "main")
    assert run(*STORED, stack="noisy(2)").ret == 0, "the baseline is of main"
    repository.git("switch", "--quiet", "topic")
    result = run(*STORED, stack=SLOWER)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*baseline: accepted; 10 of 10*", "*accepted: T1 +*"])


@pytest.mark.acceptance
def test_uncommitted_changes_are_not_accepted(run, project, repository, slow):
    merge_into_main(repository, *of_all(repository, slow))
    (project.path / "planner.txt").write_text("slow\nand more\n")
    assert run(*INTERLEAVED, stack=SLOWER).ret == 10
