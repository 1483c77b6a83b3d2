"""``.ci/results/judge.py``: decides from raw trials, whatever the machine that made them says."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from pytest_ldos.base.files import write_atomically
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.artifacts import encode_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.show.report import json_text
from pytest_ldos.show.report.document import Section
from tests.builders.ci_rooms import leave_own
from tests.builders.reports import full_document
from tests.builders.trials import noisy_set

HEAD, BASE, OTHER = "1f" * 20, "2e" * 20, "3d" * 20
LAB = "ldos-lab"


def pair(*, factor: float = 1.0, scenario: str = "baseline", **changes) -> tuple[TrialSet, TrialSet]:
    """Interleaved trials of two versions."""
    head = noisy_set(1, n=30, factors={"T1": factor}, commit=HEAD[:12], session="s", name=scenario)
    base = noisy_set(2, n=30, commit=BASE[:12], session="s", name=scenario)
    return dataclasses.replace(head, **changes), base


@dataclasses.dataclass(frozen=True)
class Place:
    """The artifacts of machines, and the project."""

    folder: Path

    def leave(self, *pairs: tuple[TrialSet, TrialSet], label: str = LAB, reported: Verdict = Verdict.PASSED) -> Path:
        """Leaves trials and a result; returns the folder of the trials."""
        for kind in ("trials", "result"):
            leave_own(self.folder / "received", kind)
        trials = self.folder / "received" / f"trials-{label}"
        for number, (head, base) in enumerate(pairs, 1):
            write_atomically(trials / f"run-{number}" / head.scenario / "trials.json", encode_trials(head))
            write_atomically(trials / f"run-{number}" / head.scenario / "base" / "trials.json", encode_trials(base))
        self.say(reported, label)
        return trials

    def say(self, verdict: Verdict | None, label: str = LAB) -> None:
        sections = () if verdict is None else (Section(scenario="baseline", verdict=verdict),)
        text = json_text.render(full_document(sections=sections))
        write_atomically(self.folder / "received" / f"result-{label}" / "result.json", text)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "project").mkdir()
    return Place(tmp_path)


@pytest.fixture
def judge(module_of, place, monkeypatch, capsys):
    """Runs it; gives what it has decided about each class of machines."""
    program = module_of("judge")

    def run(
        scenarios: str = "baseline", labels=(LAB,), *, base: str = BASE, ref: str = ""
    ) -> dict[str, tuple[str, str]]:
        arguments = ["received", "made", "--commit", HEAD, "--base", base, "--ref", ref, "--scenarios", scenarios]
        monkeypatch.chdir(place.folder)
        monkeypatch.setenv("HOST_CLASSES", json.dumps([*labels]))
        monkeypatch.setattr(sys, "argv", ["judge", *arguments, "--project", "project"])
        assert program.main() == 0, capsys.readouterr().err
        file = place.folder / "made" / "verdicts.json"
        if not file.exists():
            return {}
        content = json.loads(file.read_text("utf-8"))
        assert (content["commit"], content["base"]) == (HEAD, base or (ref and OTHER) or BASE[:12])
        return {label: (each["state"], each["text"]) for label, each in content["hosts"].items()}

    return run


def test_equal_versions(place, judge):
    place.leave(pair())
    assert judge() == {LAB: ("success", "passed")}


def test_what_the_machine_accepted_is_green_only_where_the_raw_trials_are(place, judge):
    place.leave(pair(), reported=Verdict.ACCEPTED)
    assert judge() == {LAB: ("success", "accepted, says the machine")}
    place.leave(pair(factor=1.5), reported=Verdict.ACCEPTED)
    assert judge() == {LAB: ("failure", "regressed: baseline")}


def test_regression_not_reported_by_the_machine(place, judge):
    """Its script, plugin or gate was replaced by one that ends well."""
    place.leave(pair(factor=1.5))
    assert judge() == {LAB: ("failure", "regressed: baseline")}


@pytest.mark.parametrize("reported", [Verdict.INFRA, Verdict.INVALID, Verdict.REGRESSED, Verdict.INCONCLUSIVE])
def test_worse_verdict_of_the_machine_counts(place, judge, reported):
    """The worse of the two verdicts counts."""
    place.leave(pair(), reported=reported)
    ((state, text),) = judge().values()
    assert state == ("failure" if reported is Verdict.REGRESSED else "error")
    assert text == f"{reported.word}, says the machine"


def test_scenario_without_trials(place, judge):
    place.leave(pair())
    assert judge("baseline cpu_load msg_load") == {LAB: ("error", "ldos-lab left no trials of cpu_load, msg_load")}


def test_a_metric_that_the_machine_cannot_judge_is_named(place, judge):
    """Green says what it is green about."""
    head, base = (
        noisy_set(n, n=30, cv={"T3": 1.5}, commit=commit[:12], session="s") for n, commit in ((1, HEAD), (2, BASE))
    )
    place.leave((head, base))
    assert judge() == {LAB: ("success", "passed; not judged there: T3")}


def test_each_scenario_counts(place, judge):
    place.leave(pair(), pair(factor=1.5, scenario="cpu_load"))
    assert judge("baseline cpu_load") == {LAB: ("failure", "regressed: cpu_load")}


def test_machine_without_results(place, judge):
    place.leave(pair(), label="ldos-lab-a")
    found = judge(labels=("ldos-lab-a", "ldos-lab-b"))
    assert found == {"ldos-lab-a": ("success", "passed"), "ldos-lab-b": ("error", "ldos-lab-b left no trials")}


def test_no_machine_has_results(place, judge):
    (place.folder / "received").mkdir()
    assert judge() == {LAB: ("error", "ldos-lab left no trials")}


@pytest.mark.parametrize(
    ("head", "base", "reason"),
    [
        ({"commit": OTHER[:12]}, {}, f"was not measured for {HEAD}"),
        ({"commit": f"{HEAD[:12]}-changed"}, {}, f"was not measured for {HEAD}"),
        ({}, {"commit": OTHER[:12]}, f"was not measured for {BASE}"),
        ({"session": "t"}, {}, "head and base were not interleaved"),
        ({"session": ""}, {"session": ""}, "head and base were not interleaved"),
        ({"started_at": "2999-01-01T00:00:00+00:00"}, {}, "was measured in the future"),
    ],
    ids=["another commit", "changed files", "another base", "another session", "no session", "the future"],
)
def test_trials_of_something_else(place, judge, head, base, reason):
    one, other = pair()
    place.leave((dataclasses.replace(one, **head), dataclasses.replace(other, **base)))
    ((state, text),) = judge().values()
    assert state == "error"
    assert reason in text


def test_trials_without_a_base(place, judge):
    trials = place.leave(pair())
    (trials / "run-1/baseline/base/trials.json").unlink()
    ((state, text),) = judge().values()
    assert (state, text) == ("error", "run-1/baseline/: there are no trials of the base")


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 99_999, b"\xff", b"{" * 10, b'{"kind": "x"}'])
def test_trials_that_cannot_be_read(place, judge, content):
    trials = place.leave(pair())
    (trials / "run-1/baseline/trials.json").write_bytes(content)
    ((state, text),) = judge().values()
    assert state == "error"
    assert text.isprintable()


def test_too_large_results_are_refused(place, judge, module_of, monkeypatch):
    monkeypatch.setattr(module_of("records"), "LARGEST", 1000)
    place.leave(pair())
    assert judge() == {LAB: ("error", "the files are too large")}


@pytest.mark.parametrize(
    "name", ["x", "run-1/trials.json", "run-1/baseline/other.json", "run-1/baseline/base/x/trials.json"]
)
def test_files_that_are_no_trials(place, judge, name):
    trials = place.leave(pair())
    write_atomically(trials / name, "")
    ((state, text),) = judge().values()
    assert state == "error"
    assert "belongs to nothing that is taken" in text


def test_a_link_in_place_of_trials(place, judge, tmp_path):
    trials = place.leave(pair())
    file = trials / "run-1/baseline/trials.json"
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert judge()[LAB][0] == "error"


def test_missing_or_unjudged_result(place, judge):
    place.leave(pair())
    place.say(None)
    assert judge() == {LAB: ("error", "ldos-lab has judged nothing")}
    (place.folder / "received/result-ldos-lab/result.json").unlink()
    assert judge() == {LAB: ("error", "ldos-lab left no result")}


def test_the_settings_of_the_default_branch_count(place, judge):
    """A floor of its own: below it nothing is a regression."""
    place.leave(pair(factor=1.5))
    (place.folder / "project" / "ldos.toml").write_text("[gate.floors]\nT1 = 0.9\n", "utf-8")
    assert judge()[LAB][0] != "failure"


def test_inconclusive_is_green_only_if_configured(place, judge):
    place.leave(pair(), reported=Verdict.INCONCLUSIVE)
    assert judge()[LAB][0] == "error"
    (place.folder / "project" / "ldos.toml").write_text("strict = false\n", "utf-8")
    assert judge()[LAB] == ("success", "inconclusive")


def test_the_base_of_a_merge_group_is_that_of_its_branch(place, judge):
    place.leave(pair())
    ((state, text),) = judge(base="", ref=f"gh-readonly-queue/main/pr-7-{OTHER}").values()
    assert state == "error"
    assert f"was not measured for {OTHER}" in text


def test_pushs_base_needs_agreeing_trials(place, judge):
    place.leave(pair())
    assert judge(base="") == {LAB: ("success", "passed")}
