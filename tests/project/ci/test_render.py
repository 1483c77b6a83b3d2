"""``.ci/results/render.py``: results of machines become one comment, a summary and annotations; nothing else gets out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.show.report import json_text, markdown, workflow_commands
from pytest_ldos.show.report.json_text import name_reports
from tests.builders.ci_rooms import ROOM, leave_own
from tests.builders.report_snapshots import FOLDER, RUN, URLS, fleet, hostile, hostile_fleet
from tests.project.ci.conftest import Done

CALM, SLOW, DEAD = "ldos-lab-calm", "ldos-lab-slow", "ldos-lab-dead"
LABELS = json.dumps([CALM, SLOW, DEAD])


def leave_of(received: Path, label: str, document, **links: str) -> None:
    """Leaves a machine's result among those of others, as it is received."""
    leave_own(received, "result")
    leave(received / f"result-{label}", document, **links)


def leave(folder: Path, document, *, page: str = "", trace: str = "") -> None:
    """Writes the artifact of a machine."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json_text.render(document), "utf-8")
    (folder / "page-url").write_text(f"{page}\n", "utf-8")
    (folder / "trace-url").write_text(f"{trace}\n", "utf-8")


@pytest.fixture
def received(tmp_path) -> Path:
    return tmp_path / "received"


@pytest.fixture
def render(module_of, received, tmp_path, monkeypatch, capsys):
    """In this process; the whole of `ldos` takes long to load."""
    program = module_of("render")

    def run(**settings: str | None) -> Done:
        given: dict[str, str | None] = {
            "GITHUB_REPOSITORY": "arm-makers/arm",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "RUN_URL": URLS["run"],
            "HOST_CLASSES": None,
            **settings,
        }
        for name, value in given.items():
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        return Done(program.main(str(received), str(tmp_path / "comment.md")), *capsys.readouterr())

    return run


def written(tmp_path: Path) -> str:
    return (tmp_path / "comment.md").read_text("utf-8")


def test_one_machine(render, received, tmp_path):
    leave(received, hostile(), page=URLS["page"], trace=URLS["trace"])
    done = render()
    assert (done.returncode, done.stderr) == (0, "")
    assert written(tmp_path) == (FOLDER / "hostile.comment.md").read_text("utf-8")
    assert (tmp_path / "summary.md").read_text("utf-8") == written(tmp_path)
    assert done.stdout == (FOLDER / "hostile.annotations.txt").read_text("utf-8")


def test_label_of_one_class_is_shown_the_same(render, received, tmp_path):
    leave_of(received, "ldos-lab", hostile(), page=URLS["page"], trace=URLS["trace"])
    assert render(HOST_CLASSES="").returncode == 0
    assert written(tmp_path) == (FOLDER / "hostile.comment.md").read_text("utf-8")


def test_a_fleet_is_one_comment(render, received, tmp_path):
    pages = [f"{RUN}/artifacts/{number}" for number in (5, 6, 7)]
    for label, document, page in zip((CALM, SLOW, DEAD), fleet(), pages, strict=True):
        leave_of(received, label, document, page=page)
    done = render(HOST_CLASSES=LABELS)
    assert (done.returncode, done.stderr) == (0, "")
    text = written(tmp_path)
    assert text.count(markdown.MARK) == 1
    assert all(text.count(page) == 1 for page in pages[:2])
    named = name_reports(fleet(), (CALM, SLOW, DEAD))
    assert done.stdout == workflow_commands.render_several(named)
    assert DEAD in text


def test_links_of_two_machines_of_one_class_are_with_their_results(render, received, tmp_path):
    pages = [f"{URLS['page']}{number}" for number in (1, 2)]
    for label, page in zip((CALM, SLOW), pages, strict=True):
        leave_of(received, label, fleet()[0], page=page)
    assert render(HOST_CLASSES=json.dumps([CALM, SLOW])).returncode == 0
    first, second = written(tmp_path).split("(2 of 2): ")
    assert [first.count(page) for page in pages] == [1, 0]
    assert [second.count(page) for page in pages] == [0, 1]


def test_machine_without_results_is_named_and_red(render, received, tmp_path):
    leave_of(received, SLOW, hostile())
    leave_of(received, DEAD, hostile())
    (received / f"result-{DEAD}" / "result.json").write_text('{"kind": "x"}', "utf-8")
    done = render(HOST_CLASSES=LABELS)
    assert done.returncode == 1
    assert f"render: {CALM} left no result\n" in done.stderr
    assert f"render: {DEAD}: " in done.stderr
    text = written(tmp_path)
    assert text.endswith(f"\n❌ No result came from {CALM}.\n\n❌ No result came from {DEAD}.\n")
    assert "msg\\_load" in text


@pytest.mark.parametrize("classes", [None, LABELS])
def test_missing_results_are_reported(render, tmp_path, classes):
    done = render(HOST_CLASSES=classes)
    assert done.returncode == 1
    assert done.stdout == ""
    assert written(tmp_path).startswith(
        f"{markdown.MARK}\n## ldos: ❌ nothing was measured\n\n[the run]({URLS['run']})\n"
    )


def test_results_of_unrequested_machines_are_not_shown(render, received, tmp_path):
    leave_of(received, "ldos-lab", hostile())
    leave_of(received, "ldos-lab-other", fleet()[0])
    assert render(HOST_CLASSES='["ldos-lab"]').returncode == 0
    assert written(tmp_path).startswith(f"{markdown.MARK}\n")
    assert "32-cores" not in written(tmp_path)


def test_files_that_name_another_machine_do_not_affect_it(render, received, tmp_path):
    leave_of(received, CALM, fleet()[0])
    leave_of(received, SLOW, fleet()[1])
    assert render(HOST_CLASSES=json.dumps([CALM, SLOW])).returncode == 0
    before = written(tmp_path)
    for place in (CALM, f"result-{CALM}"):
        leave(received / f"result-{SLOW}" / place, hostile())
    assert render(HOST_CLASSES=json.dumps([CALM, SLOW])).returncode == 0
    assert written(tmp_path) == before


def test_artifact_without_its_own_folder_is_ignored(render, received, tmp_path):
    """Without a folder of its own name, its files could be those of any."""
    leave(received / f"result-{CALM}", hostile())
    leave(received / f"result-{SLOW}", hostile())
    leave(received, hostile())
    assert render(HOST_CLASSES=json.dumps([CALM, SLOW])).returncode == 1
    assert "nothing was measured" in written(tmp_path)


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/page",
        "https://github.com/arm-makers/arm/$(id)",
        "https://github.com/arm-makers/arm/issues/1",
        "https://github.com/arm-makers/arm/actions/runs/1",
        "https://github.com/arm-makers/arm/actions/runs/1/artifacts/2?x=y",
        f"{URLS['page']})[x](https://evil.example",
        f"{URLS['page']}\n{URLS['page']}",
        "https://github.com/arm-makers/arm@evil.example/actions/runs/1/artifacts/2",
        "javascript:alert(1)",
        "é",
        "x" * 100_000,
    ],
)
def test_foreign_artifact_address_is_left_out(render, received, tmp_path, address):
    leave(received, hostile(), page=address, trace=address)
    done = render(RUN_URL="")
    assert done.returncode == 0
    only = "only those below 'https://github.com/arm-makers/arm/' are shown, and by https"
    assert done.stderr == f"render: an address was left out: {only}\n" * 2
    leave(received, hostile())
    plain = written(tmp_path)
    assert render(RUN_URL="").stderr == ""
    assert written(tmp_path) == plain


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/x",
        "http://github.com/arm-makers/arm/x",
        "https://github.com/arm-makers/arm/) x",
        "https://github.com/arm-makers/arm/a:b",
    ],
)
def test_an_address_of_the_run_that_leads_elsewhere(render, received, tmp_path, address):
    leave(received, hostile())
    assert "address was left out" in render(RUN_URL=address).stderr
    assert address not in written(tmp_path)


def test_other_ci_systems_have_other_addresses(render, received, tmp_path):
    leave(received, fleet()[0])
    url = "https://git.example.org/arm-makers/arm/-/pipelines/7"
    assert render(GITHUB_SERVER_URL="https://git.example.org", RUN_URL=url).stderr == ""
    assert f"({url})" in written(tmp_path)


def test_without_a_repository_there_is_no_address(render, received, tmp_path):
    leave(received, fleet()[0], page="https://github.com//actions/runs/1/artifacts/2")
    done = render(GITHUB_REPOSITORY=None)
    assert (done.returncode, done.stderr.count("address was left out")) == (0, 2)
    assert "https://github.com" not in written(tmp_path)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_is_no_result(render, received, tmp_path, kind):
    leave(tmp_path / "elsewhere", fleet()[0])
    leave_own(received, "result")
    if kind == "folder":
        (received / "result-ldos-lab").symlink_to(tmp_path / "elsewhere")
    else:
        (received / "result-ldos-lab").mkdir()
        (received / "result-ldos-lab" / "result.json").symlink_to(tmp_path / "elsewhere" / "result.json")
    done = render(HOST_CLASSES='["ldos-lab"]')
    assert (done.returncode, done.stderr) == (1, "render: ldos-lab left no result\n")


def test_invalid_labels_are_refused(render, tmp_path):
    done = render(HOST_CLASSES='["../x"]')
    assert done.returncode == 2
    assert not (tmp_path / "comment.md").exists()


def test_hostile_machine_names(render, received, tmp_path):
    for label, document in zip((CALM, SLOW, DEAD), hostile_fleet(), strict=True):
        leave_of(received, label, document)
    done = render(HOST_CLASSES=LABELS)
    assert done.returncode == 0
    assert not any(line.startswith("# Approved") for line in written(tmp_path).splitlines())
    assert "<img" not in written(tmp_path)
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in done.stdout.splitlines())


def test_as_a_program(received, tmp_path):
    leave(received, hostile())
    done = subprocess.run(
        [sys.executable, ROOM / "render.py", received, "comment.md"],
        cwd=tmp_path,
        env={"GITHUB_REPOSITORY": "arm-makers/arm", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert written(tmp_path).startswith(markdown.MARK)
