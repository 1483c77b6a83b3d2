"""`ldos bisect` in a real repository, on versions and stacks that need no time."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.base.errors import ConfigurationError, PreparationFailed
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.find import VersionFinder
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.cli import search
from pytest_ldos.judge.baseline.accepted import FILE, append_accepted, digest_difference
from pytest_ldos.measure.trial import rig
from pytest_ldos.robot.stack.protocol import Installation
from tests.builders.accepted import accepted
from tests.builders.command_line import invoke_ldos, lines_of, run_ldos
from tests.builders.repository import Repository
from tests.fakes.rig import noisy, open_fake_rig


class Project:
    """A repository of commits; its versions plan as slowly as the settings file of their commit says.

    Attributes:
        prepared: commits that were prepared, in order.
        started: commits whose stacks were started, in order.
        stops_at: number of the start that an interruption prevents.
    """

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self.names = [repository.commit(planning_txt=text) for text in ("1", "1.0", "broken", "1.00", "1.5", "1.50")]
        self.prepared: list[str] = []
        self.started: list[str] = []
        self.stops_at = 0

    @property
    def ends(self):
        return self.names[0], self.names[-1]

    def find(self, _: Role, name: str) -> Version:
        self.prepared.append(name)
        planning = self.repository.git("show", f"{name}:planning.txt")
        if planning == "broken":
            raise PreparationFailed(f"base {name} cannot be built: `make` ended with exit code 2")
        python = f"/{name}/{planning}/{len(self.prepared)}"
        return Version(role=Role.BASE, name=f"base {name}", commit=name, installation=Installation(python))

    def open_rig(self, spec, folder, *, installation, **rest):
        _, name, planning, number = installation.python.split("/")
        self.started.append(name)
        if len(self.started) == self.stops_at:
            raise KeyboardInterrupt
        seed = int(number) * 1000 + len(self.started)
        return open_fake_rig(spec, folder, script=noisy(seed, planning=float(planning)))


@pytest.fixture
def project(monkeypatch, tmp_path):
    repository = Repository.create(tmp_path / "arm")
    (repository.path / ".gitignore").write_text(".ldos\n")
    made = Project(repository)
    monkeypatch.chdir(repository.path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(search, "refuse_unable", lambda spec: None)
    monkeypatch.setattr(VersionFinder, "find", made.find)
    monkeypatch.setattr(rig, "open_rig", made.open_rig)
    return made


def test_the_commit_is_named_with_date_subject_and_change(project):
    result = invoke_ldos("bisect", *project.ends)
    assert result.exit_code == 0
    lines = lines_of(result.stdout)
    assert lines[0].startswith(f"T1 became worse with {project.names[4]} of 20")
    text = " ".join(lines)
    assert "“change” (95 % confidence): +" in text
    assert f"5 commits after GOOD {project.names[0]} up to BAD {project.names[5]}" in result.stderr
    assert f"round 1 of {project.names[5]} (change)" in result.stderr
    assert not list(project.repository.path.glob(".ldos/bisect/**/*.json"))
    assert not list(project.repository.path.glob(".ldos/runs/*/*"))


@pytest.mark.acceptance
def test_unbuildable_commit_is_named_in_the_document(project):
    document = json.loads(invoke_ldos("bisect", *project.ends, "--format", "json").stdout)
    assert [each["name"] for each in document["commits"]] == [project.names[4]]
    assert document["finding"] == "found"
    skipped = {each["commit"]["name"]: each["reason"] for each in document["skipped"]}
    assert set(skipped) <= {project.names[2]}
    assert all("`make` ended with exit code 2" in each for each in skipped.values())
    assert (project.names[2] in project.prepared) == (project.names[2] in skipped)
    assert project.names[2] not in project.started


@pytest.mark.acceptance
def test_the_versions_of_a_round_are_interleaved(project):
    invoke_ldos("bisect", *project.ends)
    good, bad = project.ends
    assert project.started[:4] == [good, bad, bad, good]
    others = [each for each in project.started if each not in {good, bad}]
    middle = project.started[project.started.index(others[0]) :]
    assert set(middle[:3]) | {good, bad} == {good, bad, others[0]}


def test_dry_run_prints_the_cost_and_measures_nothing(project):
    result = invoke_ldos("bisect", *project.ends, "--dry-run")
    assert result.exit_code == 0
    first, second = lines_of(result.stdout)
    assert first == (
        f"5 commits after GOOD {project.names[0]} up to BAD {project.names[5]}; at most 6 are built and measured"
    )
    assert second.startswith("about ")
    assert "min" in second
    assert "300 stack starts and 1200 trials at most" in second
    assert project.prepared == project.started == []
    assert not (project.repository.path / ".ldos").exists()


@pytest.mark.acceptance
def test_an_interrupted_search_goes_on(project):
    project.stops_at = 12
    result = invoke_ldos("bisect", *project.ends)
    assert result.exit_code == 130
    assert "interrupted; complete rounds are saved: the same command resumes the search" in result.stderr
    project.stops_at, project.started = 0, []
    again = invoke_ldos("bisect", *project.ends)
    assert again.exit_code == 0
    assert "continues what was interrupted; rounds of " in again.stderr
    assert project.names[4] in again.stdout


@pytest.mark.acceptance
def test_good_that_is_already_bad_ends_with_exit_code_11(project):
    result = invoke_ldos("bisect", *project.names[4:], "--max-trials", "120")
    assert result.exit_code == 11
    text = " ".join(lines_of(result.stdout))
    assert text.startswith(f"no search: BAD {project.names[5]} was not shown to be worse than GOOD {project.names[4]}")
    assert "GOOD may be bad already" in text
    assert set(project.started) == set(project.names[4:])


@pytest.mark.acceptance
def test_bad_that_is_not_worse_ends_with_exit_code_11(project):
    project.names.append(project.repository.commit(planning_txt="1"))
    result = invoke_ldos("bisect", *project.names[5:])
    assert result.exit_code == 11
    assert "is not worse than GOOD" in " ".join(lines_of(result.stdout))


@pytest.mark.acceptance
def test_a_page_in_a_file(project, tmp_path):
    result = invoke_ldos("bisect", *project.ends, "--output", tmp_path / "bisect.html")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].startswith("T1 became worse with ")
    assert project.names[4] in (tmp_path / "bisect.html").read_text()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (("--metric", "T9"), "unknown metric in --metric: 'T9'"),
        (("--confidence", "0.3"), "--confidence is '0.3'"),
        (("--max-trials", "20"), "--max-trials 20 cannot decide BAD and one commit more"),
        (("--scenario", "baselin"), "baselin"),
    ],
)
def test_invalid_searches_are_refused_before_starting(project, changes, text):
    with pytest.raises(ConfigurationError, match=text):
        invoke_ldos("bisect", *project.ends, *changes)
    assert project.prepared == []


def test_unusable_revisions_end_with_the_usage_exit_code(project):
    done = run_ldos("bisect", "v9", "main")
    assert done.returncode == 2
    assert "GOOD v9: there is no revision of this name" in done.stderr
    (project.repository.path / "planning.txt").write_text("2")
    assert "the work tree has uncommitted changes" in run_ldos("bisect", *project.ends).stderr


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_an_accepted_change_is_named(project):
    root, guilty = project.repository.path, project.names[4]
    difference = digest_difference(root, project.names[3], guilty)
    append_accepted(root, [accepted("T1", 0.5, difference=difference), accepted("T4", 0.1, difference=difference)])
    text = " ".join(invoke_ldos("bisect", *project.ends).stdout.split())
    assert "accepted: T1 up to +50.0 % (Ada, it checks collisions twice)" in text
    assert "accepted: T4" not in text


def test_damaged_file_of_accepted_changes_is_refused_before_anything_is_measured(project):
    (project.repository.path / FILE).write_text("[")
    assert run_ldos("bisect", *project.ends).returncode == 2
    assert project.started == []
