"""``.ci/results/accepted.py``: words that accept, and what counts of them; ``judge.py`` with them."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_ldos.base.files import write_atomically
from pytest_ldos.judge.baseline.accepted import FILE as TABLES
from pytest_ldos.judge.baseline.accepted import parse_accepted
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.artifacts import encode_trials
from pytest_ldos.show.report import json_text
from pytest_ldos.show.report.document import Section
from tests.builders.asking import MAINTAINER, STRANGER
from tests.builders.ci_rooms import leave_own
from tests.builders.git import git
from tests.builders.reports import full_document
from tests.builders.trials import noisy_set
from tests.fakes.github_api import BOT

HEAD = "1f" * 20
CHANGE = {
    "scenario": "baseline",
    "stack": "embedded",
    "metric": "T1",
    "size": 0.5,
    "reason": "checks <!-- twice --> `a` @all",
    "by": MAINTAINER,
    "at": "2026-01-01T00:01:40Z",
    "commit": HEAD[:12],
    "base": "2e" * 6,
    "difference": "d",
}
WORD = f'/ldos accept {HEAD} T1 "checks twice"'


@pytest.mark.parametrize(
    ("line", "metrics", "reason"),
    [
        (f'/ldos accept {HEAD} T1 "checks twice"', ("T1",), "checks twice"),
        (f'/ldos  accept {HEAD}  T1 T4   "it\'s wanted"  \r\nmore', ("T1", "T4"), "it's wanted"),
        (
            f'/ldos accept {HEAD} success-rate "blocked:/node: callback" "x"',
            ("success-rate", "blocked:/node: callback"),
            "x",
        ),
    ],
)
def test_words_that_accept(module_of, line, metrics, reason):
    found = module_of("word").parse_word(line)
    assert (found.commit, found.metrics, found.reason) == (HEAD, metrics, reason)


@pytest.mark.parametrize(
    "line",
    [
        "/ldos accept",
        f"/ldos accept {HEAD}",
        f"/ldos accept {HEAD} T1",
        f'/ldos accept {HEAD} "checks twice"',
        f"/ldos accept {HEAD} T1 reason",
        f'/ldos accept {HEAD} T1 ""',
        f'/ldos accept {HEAD} T1 "open',
        f'/ldos accept {HEAD[:12]} T1 "checks twice"',
        f'/ldos accept T1 {HEAD} "checks twice"',
    ],
)
def test_words_that_accept_nothing(module_of, line):
    with pytest.raises(module_of("github_api").Failed):
        module_of("word").parse_word(line)


@pytest.fixture
def known(run_program, tmp_path):
    """Words and changes that count on pull request 7."""

    def read(maintainers=(MAINTAINER,)) -> tuple[list, list]:
        file = tmp_path / "accepted.json"
        done = run_program(
            *("read-accepted", file, "--repository", "arm-makers/arm", "--commit", HEAD, "--pull-request", "7"),
            LDOS_MAINTAINERS=json.dumps([*maintainers]),
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(file.read_text("utf-8"))
        return found["words"], found["changes"]

    return read


@pytest.fixture
def keep(run_program, tmp_path):
    def run(found: object, *, status: int = 0) -> str:
        (tmp_path / "accepted.json").write_text(json.dumps(found), "utf-8")
        done = run_program(
            *("keep-accepted", tmp_path, "--repository", "arm-makers/arm", "--pull-request", "7"),
            LDOS_MAINTAINERS=json.dumps([MAINTAINER]),
        )
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    return run


def test_kept_changes_are_read_again(github, known, keep):
    github.add(WORD, MAINTAINER)
    keep({"changes": [CHANGE], "missing": ["T1"]})
    (_, kept) = github.comments
    assert "T1 up to +50.0 % in baseline, embedded; maintainer: checks <!-- twice -->" in kept["body"]
    assert "not accepted: T1" in kept["body"]
    assert kept["body"].count("-->") == 3, "the mark's, the reason's in a block of code, and the table's"
    words, changes = known()
    assert [(each["commit"], each["metrics"], each["by"]) for each in words] == [(HEAD, ["T1"], MAINTAINER)]
    assert changes == [CHANGE]
    keep({"changes": [CHANGE], "missing": []})
    assert len(github.comments) == 2


def test_an_allow_list_that_changed(github, known, keep):
    github.add(WORD, MAINTAINER)
    keep({"changes": [CHANGE], "missing": []})
    assert known(maintainers=["another"]) == ([], [])


@pytest.mark.parametrize("edited", [0, 1], ids=["word", "sizes"])
def test_an_edited_comment_does_not_count(github, known, keep, edited):
    github.add(WORD, MAINTAINER)
    keep({"changes": [CHANGE], "missing": []})
    github.comments[edited]["updated_at"] = "2026-03-01T00:00:00Z"
    assert known()[1] == []


def test_strangers_words_and_sizes_do_not_count(github, known, keep):
    github.add(WORD, STRANGER)
    keep({"changes": [CHANGE], "missing": ["T1"]})
    assert len(github.comments) == 1, "nothing is kept or answered"
    github.add(WORD, MAINTAINER)
    keep({"changes": [CHANGE], "missing": []})
    github.comments[-1]["user"] = {"login": STRANGER}
    assert known()[1] == []


@pytest.mark.parametrize("change", [{"metric": "T4"}, {"commit": "3d" * 6}, {"commit": ""}])
def test_sizes_without_a_word_do_not_count(github, known, keep, change):
    github.add(WORD, MAINTAINER)
    keep({"changes": [{**CHANGE, **change}], "missing": []})
    assert len(github.comments) == 1


@pytest.mark.parametrize(
    "found",
    [
        [],
        {"changes": [{}]},
        {"changes": [{**CHANGE, "size": "0.5"}]},
        {"changes": [{**CHANGE, "size": float("inf")}]},
        {"changes": [{**CHANGE, "reason": "a\nb"}]},
        {"changes": [{**CHANGE, "more": "x"}]},
        {"changes": [], "missing": [1]},
        {"missing": []},
    ],
)
def test_files_that_are_none(github, keep, found):
    github.add(WORD, MAINTAINER)
    assert "holds no accepted changes" in keep(found, status=1)


@pytest.mark.parametrize("text", ["", "\n<!-- [", "\n<!-- {} -->", '\n<!-- [{"size": 1}] -->'])
def test_damaged_comment_of_sizes_is_an_error(github, run_program, tmp_path, text):
    github.add(f"<!-- pytest-ldos accepted -->{text}", BOT)
    place = ("--repository", "arm-makers/arm", "--commit", HEAD, "--pull-request", "7")
    done = run_program("read-accepted", tmp_path / "accepted.json", *place, LDOS_MAINTAINERS="[]")
    assert done.returncode == 1
    assert "comment 100 (delete it) holds no accepted changes" in done.stderr


@pytest.fixture
def propose(run_program, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))

    def run() -> str:
        (tmp_path / "accepted.json").write_text(json.dumps({"changes": [], "applied": [CHANGE]}), "utf-8")
        place = ("--repository", "arm-makers/arm", "--commit", HEAD, "--base", "main")
        done = run_program("propose-accepted", tmp_path, *place, GITHUB_SERVER_URL="https://github.com")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("before", [None, "# ours\n"])
def test_merged_changes_are_proposed_for_the_file(github, propose, before):
    github.git.start("main", {"README.md": b"x", **({} if before is None else {TABLES: before.encode()})})
    assert "open its pull request here" in propose()
    text = github.git.files(f"accepted/{HEAD}")[TABLES].decode()
    assert text.startswith(before or "# Accepted changes")
    assert [asdict(each) for each in parse_accepted(text, TABLES)] == [CHANGE]
    github.git.start("main", {TABLES: text.encode()})
    assert "has them" in propose()


class Project(NamedTuple):
    """A project with two commits."""

    folder: Path
    base: str
    head: str


def commit(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text, "utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "x")
    return git(folder, "rev-parse", "HEAD").strip()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """It is in the folder in which machines have left what they measured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOST_CLASSES", '["ldos-lab"]')
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    for kind in ("trials", "result"):
        leave_own(tmp_path / "received", kind)
    return Project(folder, commit(folder, arm_py="fast"), commit(folder, arm_py="slow"))


@pytest.fixture
def judge(module_of, project, tmp_path, monkeypatch, capsys):
    """Judges trials whose head is slower, with words on the head; gives the status, and what was accepted."""

    def run(
        *metrics: str, factors=None, changes=(), machine=("baseline",), words=None, of: Project = project, status="10"
    ) -> tuple[dict[str, object], dict[str, list]]:
        _, base, head = of
        common: dict[str, Any] = {"session": "s", "name": "baseline"}
        pair = {
            "trials.json": noisy_set(1, n=30, factors=factors or {"T1": 1.5}, commit=head[:12], **common),
            "base/trials.json": noisy_set(2, n=30, commit=base[:12], **common),
        }
        for name, trials in pair.items():
            write_atomically(tmp_path / "received/trials-ldos-lab/run/baseline" / name, encode_trials(trials))
        sections = tuple(Section(scenario=each, verdict=Verdict.REGRESSED) for each in machine)
        result = json_text.render(full_document(sections=sections))
        write_atomically(tmp_path / "received/result-ldos-lab/result.json", result)
        write_atomically(tmp_path / "received/result-ldos-lab/exit-status", status)
        word = {"commit": head, "metrics": [*metrics], "reason": "wanted", "by": MAINTAINER, "at": "2026-01-01"}
        accepted = {"words": [word] if words is None else words, "changes": [*changes]}
        (tmp_path / "accepted.json").write_text(json.dumps(accepted), "utf-8")
        (tmp_path / "made" / "accepted.json").unlink(missing_ok=True)
        asked = ["--commit", head, "--base", base, "--scenarios", "baseline", "--accepted", "accepted.json"]
        monkeypatch.setattr("sys.argv", ["judge", "received", "made", *asked, "--project", "project"])
        assert module_of("judge").main() == 0, capsys.readouterr().err
        found = json.loads((tmp_path / "made/verdicts.json").read_text("utf-8"))["hosts"]["ldos-lab"]
        file = tmp_path / "made/accepted.json"
        return found, json.loads(file.read_text("utf-8")) if file.exists() else {}

    return run


def test_the_size_of_an_accepted_change_is_kept(judge):
    found, accepted = judge("T1")
    (change,) = accepted["changes"]
    assert found["accepted"] is True
    assert found["state"] == "success"
    assert found["text"].startswith("accepted: T1 up to +")
    assert 0.3 < change["size"] < 0.7
    assert (change["metric"], change["by"], change["reason"]) == ("T1", MAINTAINER, "wanted")


def test_without_a_word_it_is_red(judge):
    assert judge(words=[])[0]["state"] == "failure"
    assert judge(words=[])[1] == {}


def test_word_for_another_metric_is_answered(judge):
    found, accepted = judge("T3")
    assert found["state"] == "failure"
    assert accepted == {"changes": [], "applied": [], "missing": ["T3"]}


def test_word_for_one_of_two_metrics_lets_the_other_through_no_gate(judge):
    found, accepted = judge("T1", factors={"T1": 1.5, "T2": 1.5})
    assert found["state"] == "failure"
    assert [each["metric"] for each in accepted["changes"]] == ["T1"]
    assert judge("T1", "T2", factors={"T1": 1.5, "T2": 1.5})[0]["state"] == "success"


def test_kept_change_limits_later_measurements(judge):
    """One word accepts one size: the same commit, measured again, may not be worse than that."""
    _, accepted = judge("T1")
    assert judge("T1", changes=accepted["changes"])[0]["state"] == "success"
    found, more = judge("T1", factors={"T1": 4.0}, changes=accepted["changes"])
    assert (found["state"], more) == ("failure", {})
    assert judge(words=[], changes=accepted["changes"])[1]["applied"] == accepted["changes"]
    (change,) = accepted["changes"]
    older = [{**change, "at": "2025-01-01"}]
    assert judge("T1", factors={"T1": 4.0}, changes=older)[0]["state"] == "success", "a new word, a new size"


def test_other_lines_need_another_word(judge, project):
    _, accepted = judge("T1")
    git(project.folder, "checkout", "-q", project.base)
    other = project._replace(head=commit(project.folder, arm_py="slower"))
    assert judge(words=[], changes=accepted["changes"], of=other)[0]["state"] == "failure"
    git(project.folder, "checkout", "-q", project.base)
    same = project._replace(head=commit(project.folder, arm_py="slow"))
    assert judge(words=[], changes=accepted["changes"], of=same)[0]["state"] == "success"


def test_what_only_the_machine_knows_stays_red(judge):
    found, _ = judge("T1", machine=("baseline", "cpu_load"))
    assert found["state"] == "failure"
    assert "says the machine" in found["text"]


def test_another_failed_test_is_not_green(judge):
    found, _ = judge("T1", status="1")
    assert (found["state"], found["text"]) == ("error", "another test failed, or its exit status is unknown")


@pytest.mark.parametrize(("status", "state"), [("0", "success"), ("1", "error"), (None, "error")])
def test_another_failed_test_on_another_machine_is_not_green(judge, tmp_path, monkeypatch, status, state):
    """The result of the machines' jobs is one for all of them."""
    judge("T1")
    for kind in ("trials", "result"):
        folder = tmp_path / "received" / f"{kind}-ldos-lab-b"
        shutil.copytree(tmp_path / "received" / f"{kind}-ldos-lab", folder)
    head = folder.with_name("trials-ldos-lab-b") / "run/baseline"
    shutil.copy(head / "base/trials.json", tmp_path / "base.json")
    base, commit = (
        json.loads((tmp_path / "base.json").read_text("utf-8")),
        json.loads((head / "trials.json").read_text("utf-8"))["commit"],
    )
    write_atomically(head / "trials.json", json.dumps({**base, "commit": commit}))
    passed = full_document(sections=(Section(scenario="baseline", verdict=Verdict.PASSED),))
    write_atomically(folder / "result.json", json_text.render(passed))
    (folder / "exit-status").unlink()
    if status:
        write_atomically(folder / "exit-status", status)
    monkeypatch.setenv("HOST_CLASSES", '["ldos-lab", "ldos-lab-b"]')
    judge("T1")
    hosts = json.loads((tmp_path / "made/verdicts.json").read_text("utf-8"))["hosts"]
    assert (hosts["ldos-lab"]["state"], hosts["ldos-lab-b"]["state"]) == ("success", state), hosts


def test_word_on_another_commit(judge):
    word = {"commit": "3d" * 20, "metrics": ["T1"], "reason": "wanted", "by": MAINTAINER, "at": "2026-01-01"}
    assert judge(words=[word])[0]["state"] == "failure"


def test_commits_that_git_does_not_know_accept_nothing(judge, project):
    other = project._replace(base="2e" * 20)
    assert judge("T1", of=other)[0]["state"] == "failure"


def test_merged_file_of_accepted_changes_counts(judge, project):
    """As for the machine's own verdict, it is read from the base's commit."""
    (change,) = judge("T1")[1]["changes"]
    text = "[[accepted]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in change.items())
    git(project.folder, "checkout", "-q", project.base)
    base = commit(project.folder, **{"ldos-accepted_toml": text})
    later = Project(project.folder, base, commit(project.folder, arm_py="slow"))
    assert judge(words=[], of=later)[0]["state"] == "success"
