"""``.ci/results/check_baselines.py``: machines' records are read whole, written again, and shown next to the old ones."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path

import pytest

from pytest_ldos.base.files import write_atomically
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.artifacts import encode_trials, read_trials
from pytest_ldos.measure.trial.record import TrialSet
from tests.builders.ci_rooms import leave_own
from tests.builders.trials import FINGERPRINT, noisy_set
from tests.project.ci.conftest import Done

SHA = "1f" * 20
LABEL = "ldos-lab"
MARK = "<!-- pytest-ldos baselines -->"


def recorded(seed: int = 1, **changes) -> TrialSet:
    return noisy_set(seed, **{"commit": SHA[:12], "n": 12, **changes})


def leave(received: Path, trials: TrialSet, label: str = LABEL) -> Path:
    """Writes the artifact of a machine."""
    leave_own(received, "baselines")
    file = BaselineKey.of(trials).file(received / f"baselines-{label}")
    write_atomically(file, encode_trials(trials))
    return file


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def received(tmp_path) -> Path:
    return tmp_path / "received"


@pytest.fixture
def check(module_of, project, received, monkeypatch, capsys):
    program = module_of("check_baselines")

    def run(commit: str = SHA) -> Done:
        monkeypatch.setattr(sys, "argv", ["check_baselines", str(received), "proposal", "--commit", commit])
        try:
            status = program.main()
        except SystemExit as ended:
            status = ended.code
        return Done(status, *capsys.readouterr())

    return run


def proposed(project: Path) -> list[str]:
    folder = project / "proposal"
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


def test_new_baselines(check, received, project):
    trials = recorded()
    leave(received, trials)
    done = check()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    place = "baselines/embedded/test-cpu_4-cores_smt-off_governor-performance_turbo-off_cyclonedds/baseline.json"
    assert proposed(project) == [place, "pull_request.md"]
    assert read_trials(project / "proposal" / place) == trials
    text = (project / "proposal/pull_request.md").read_text("utf-8")
    assert text.startswith(f"{MARK}\nBaselines that machines of the lab recorded of {SHA}")
    assert "there is no baseline of it yet" in text
    assert text.count("<!--") == 1


def test_old_and_new_baselines(check, received, project):
    """A regression between the two is what a maintainer has to see."""
    old = recorded(2, commit="0123456789ab")
    write_atomically(BaselineKey.of(old).file(project / "baselines"), encode_trials(old))
    leave(received, recorded(3, factors={"T4": 1.5}))
    leave(received, recorded(4, name="cpu_load"))
    assert check().returncode == 0
    text = (project / "proposal/pull_request.md").read_text("utf-8")
    assert "regressed" in text
    assert "T4 total latency +50.0 %" in text
    assert "0123456789ab" in text
    assert "cpu\\_load" in text
    assert len(text) < 65_536


def test_unreadable_old_baseline_does_not_block_a_new_one(check, received, project):
    file = leave(received, recorded())
    place = project / "baselines" / file.relative_to(received / f"baselines-{LABEL}")
    write_atomically(place, '{"kind": "pytest-ldos trials", "schema": 99}')
    assert check().returncode == 0
    text = (project / "proposal/pull_request.md").read_text("utf-8")
    assert "the one that is here cannot be read" in text
    assert "schema version 99" in text


def test_several_classes_are_proposed_together(check, received, project):
    other = dataclasses.replace(FINGERPRINT, cpu_model="Other CPU")
    leave(received, recorded(), "ldos-lab-a")
    leave(received, recorded(2, fingerprint=other), "ldos-lab-b")
    assert check().returncode == 0
    assert len(proposed(project)) == 3
    text = (project / "proposal/pull_request.md").read_text("utf-8")
    assert "test-cpu" in text
    assert "other-cpu" in text


def on_another_machine(trials: TrialSet) -> TrialSet:
    """Baselines of the same class; goals have random names."""
    renamed = tuple(dataclasses.replace(each, goal_id=f"{each.index + 1000:032x}") for each in trials.motions)
    return dataclasses.replace(
        trials, trials=renamed, fingerprint=dataclasses.replace(FINGERPRINT, hostname="lab-2", kernel="6.2")
    )


def test_machines_of_one_class_share_a_baseline(check, received, project):
    leave(received, recorded(1), "ldos-lab-a")
    leave(received, on_another_machine(recorded(2)), "ldos-lab-b")
    assert check().returncode == 0
    (file,) = (project / "proposal/baselines").rglob("*.json")
    merged = read_trials(file)
    assert (len(merged.trials), merged.fingerprint.hostname) == (24, "lab + lab-2")
    text = (project / "proposal/pull_request.md").read_text("utf-8")
    assert "ldos-lab-a and ldos-lab-b are of one host class, and have one baseline." in text


def test_duplicate_from_two_machines_is_refused(check, received, project):
    leave(received, recorded(1), "ldos-lab-a")
    leave(received, recorded(1), "ldos-lab-b")
    assert "the same trials are given twice" in check().stderr
    assert not (project / "proposal").exists()


def test_output_is_accepted_by_the_proposing_step(check, received, project, run_program, github):
    """From the machines' files to the branch."""
    github.git.start("main", {"README.md": b"read me"})
    leave(received, recorded())
    check()
    where = ("--repository", "arm-makers/arm", "--commit", SHA, "--base", "main")
    done = run_program("propose", project / "proposal", *where)
    assert (done.returncode, github.pulls) == (0, [])
    assert f"baselines/{SHA}" in github.git.branches


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"commit": "0123456789ab"}, "was not measured for"),
        ({"commit": SHA[:12] + "+"}, "was not measured for"),
        ({"commit": ""}, "was not measured for"),
        ({"commit": "1f"}, "was not measured for"),
        ({"started_at": "2126-01-01T00:00:00+00:00"}, "was measured in the future"),
        ({"started_at": "x"}, "began at no moment"),
        ({"started_at": "0001-01-01T00:00:00+23:59"}, "began at no moment"),
        ({"incomplete": "the simulator ended"}, "has not all of its trials"),
        ({"n": 0}, "has not all of its trials"),
        ({"watched": "strace"}, "was watched"),
        ({"distortion": "strace slows"}, "was watched"),
    ],
)
def test_unsuitable_runs_become_no_baseline(check, received, project, changes, reason):
    leave(received, recorded())
    leave(received, recorded(2, name="cpu_load", **changes))
    done = check()
    assert done.returncode == 1
    assert reason in done.stderr
    assert not (project / "proposal").exists()


def test_misplaced_file_is_refused(check, received, project):
    """One could be taken for another scenario's, or another machine's."""
    file = leave(received, recorded())
    file.rename(file.with_name("cpu_load.json"))
    assert "belongs elsewhere" in check().stderr
    assert not (project / "proposal").exists()


@pytest.mark.parametrize(
    "name",
    ["../../../evil", "a/b", "x y", "<img>", "$(touch owned)", ".hidden", "a.pinned", "é", "x" * 300, "\n::error::x"],
)
@pytest.mark.parametrize("where", ["scenario", "cpu"])
def test_hostile_names_are_refused(check, received, project, name, where):
    """Invalid content of a record in a file with a valid name."""
    good = recorded()
    file = leave(received, good)
    document = json.loads(encode_trials(good))
    if where == "scenario":
        document["spec"]["name"] = name
    else:
        document["fingerprint"]["cpu_model"] = name
    file.write_text(json.dumps(document), "utf-8")
    done = check()
    assert done.returncode == 1
    assert "\n::" not in done.stderr
    assert not (project / "proposal").exists()
    assert not (project / "owned").exists()


def test_text_of_a_record_is_no_workflow_command(check, received):
    file = leave(received, recorded())
    document = json.loads(file.read_text("utf-8"))
    document["metrics"][0]["better"] = "\n::error::x##[error]x"
    file.write_text(json.dumps(document), "utf-8")
    done = check()
    assert done.returncode == 1
    assert "better" in done.stderr
    assert "\n::" not in done.stderr
    assert "##[" not in done.stderr


def test_hostile_messages_are_shown_literally(check, received, project):
    """By whoever wrote the stack that was measured; people read them on GitHub."""
    evil = "no way\n\n# Approved by @maintainer\n[![ok](https://evil.example/x.png)](https://evil.example)<img src=x>"
    trials = recorded(failures=3)
    reported = tuple(dataclasses.replace(each, message=evil if each.message else "") for each in trials.trials)
    leave(received, dataclasses.replace(trials, trials=reported, stack=evil, recorder=evil))
    assert check().returncode == 0
    text = (project / "proposal/pull_request.md").read_text("utf-8")
    assert "evil" in text
    assert "<img" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert " @maintainer" not in text
    assert not any(line.startswith("# Approved") for line in text.splitlines())


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"{}", b'{"kind": "pytest-ldos trials"}', b"null"]
)
def test_invalid_records_are_refused(check, received, project, content):
    leave(received, recorded()).write_bytes(content)
    done = check()
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert not (project / "proposal").exists()


@pytest.mark.parametrize("field", ["commit", "trials", "fingerprint", "spec", "stack_kind", "started_at"])
@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [[]], True])
def test_a_record_of_wrong_types(check, received, project, field, value):
    file = leave(received, recorded())
    document = json.loads(file.read_text("utf-8"))
    document[field] = value
    file.write_text(json.dumps(document), "utf-8")
    done = check()
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "path",
    [
        "x.json",
        f"{LABEL}/embedded/epyc/baseline.json",
        "baselines-ubuntu/embedded/epyc/baseline.json",
        f"baselines-{LABEL}/embedded/epyc/baseline.pinned.json",
        f"baselines-{LABEL}/baselines-{LABEL}/embedded/epyc/baseline.json",
        f"baselines-{LABEL}/a.sh",
    ],
)
def test_files_outside_a_baseline_are_refused(check, received, project, path):
    leave(received, recorded())
    write_atomically(received / path, "{}")
    assert "belongs to nothing that is taken" in check().stderr
    assert not (project / "proposal").exists()


def test_links_are_not_followed(check, received, project, tmp_path):
    file = leave(received, recorded())
    file.rename(tmp_path / "elsewhere.json")
    file.symlink_to(tmp_path / "elsewhere.json")
    assert "neither file nor folder" in check().stderr


def test_too_many_files_are_refused(check, received, project, module_of, monkeypatch):
    leave(received, recorded())
    monkeypatch.setattr(module_of("check_baselines"), "_LARGEST", 1000)
    assert check().stderr == "check_baselines: the files are too large\n"


def test_nothing_was_recorded(check, project):
    assert check().stderr == "check_baselines: no machine left an artifact baselines-LABEL\n"


def test_invalid_commit_is_refused(check):
    assert check("main").returncode == 2
