"""``ldos comment`` and ``ldos annotate`` on results of other machines."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.show.report import json_text
from tests.builders.command_line import run_ldos
from tests.builders.report_snapshots import (
    FLEET_FILES,
    FOLDER,
    OTHER_CLASS,
    OTHER_PAGE,
    URLS,
    fleet,
    harmless,
    hostile,
    hostile_fleet,
)


@pytest.fixture
def result(tmp_path):
    file = tmp_path / "result.json"
    file.write_text(json_text.render(harmless()), "utf-8")
    return file


LINKS = ("--page-url", URLS["page"], "--trace-url", URLS["trace"], "--run-url", URLS["run"])


def test_the_comment(result):
    done = run_ldos("comment", result, *LINKS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (FOLDER / "harmless.comment.md").read_text("utf-8")


def test_the_comment_in_a_file(result, tmp_path):
    result.write_text(json_text.render(hostile()), "utf-8")
    file = tmp_path / "comment.md"
    assert run_ldos("comment", result, *LINKS, "--output", file).returncode == 0
    assert file.read_text("utf-8") == (FOLDER / "hostile.comment.md").read_text("utf-8")


def test_only_given_links_are_shown(result):
    assert "](" not in run_ldos("comment", result).stdout


def test_the_annotations(result):
    done = run_ldos("annotate", result)
    assert (done.returncode, done.stdout) == (0, (FOLDER / "harmless.annotations.txt").read_text("utf-8"))


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.example",
        "javascript:alert(1)",
        "https://x.example/) [y](z",
        "https://x.example/\n",
        "https://",
        "x",
    ],
)
def test_invalid_address_is_refused(result, url):
    done = run_ldos("comment", result, "--page-url", url)
    assert done.returncode == 2
    assert "is not an address" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["comment", "annotate"])
def test_json_without_a_report_is_refused(result, command):
    made = json.loads(result.read_text("utf-8"))
    made["sections"][0]["scenario"] = ["<script>"]
    result.write_text(json.dumps(made), "utf-8")
    done = run_ldos(command, result)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sections[0].scenario is not a text" in done.stderr
    assert "→ take the file that --ldos-report NAME.json wrote" in done.stderr


@pytest.fixture
def results(tmp_path, monkeypatch):
    """One a machine, as they are downloaded."""
    monkeypatch.chdir(tmp_path)
    for name, document in zip(FLEET_FILES, fleet(), strict=True):
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text(json_text.render(document), "utf-8")
    return FLEET_FILES


def test_one_comment_for_several_machines(results):
    done = run_ldos("comment", *results, *LINKS, "--page-url", f"{OTHER_CLASS}={OTHER_PAGE}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (FOLDER / "fleet.comment.md").read_text("utf-8")


def test_annotations_of_several_machines(results):
    done = run_ldos("annotate", *results)
    assert (done.returncode, done.stdout) == (0, (FOLDER / "fleet.annotations.txt").read_text("utf-8"))


def test_two_machines_of_one_class_are_distinguished(results):
    done = run_ldos("comment", results[0], results[0])
    assert f"{OTHER_CLASS} (1 of 2): passed".replace("_", "\\_") in done.stdout
    assert f"{OTHER_CLASS} (2 of 2): passed".replace("_", "\\_") in done.stdout


def test_address_may_contain_an_equals_sign(result):
    assert "](https://x.example/a?b=c)" in run_ldos("comment", result, "--page-url", "https://x.example/a?b=c").stdout


def test_a_link_of_the_only_host_class(result):
    done = run_ldos("comment", result, "--page-url", "test-cpu_4-cores=https://x.example/a?b=c")
    assert "](https://x.example/a?b=c)" in done.stdout


def test_a_link_of_a_host_class_that_has_no_result(results):
    done = run_ldos("comment", *results, "--page-url", "elsewhere=https://x.example/")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no result is of host class 'elsewhere'" in done.stderr
    assert f"→ name one of these: {OTHER_CLASS}, test-cpu_4-cores" in done.stderr


def test_machine_name_cannot_begin_an_error_line(tmp_path):
    file = tmp_path / "result.json"
    file.write_text(json_text.render(hostile_fleet()[1]), "utf-8")
    done = run_ldos("comment", file, "--page-url", "elsewhere=https://x.example/")
    assert done.returncode == 2
    assert not [line for line in done.stderr.splitlines() if line.startswith("::")]


def test_address_of_an_unknown_host_class(results):
    done = run_ldos("comment", *results, "--page-url", f"{OTHER_CLASS}=javascript:alert(1)")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not an address" in done.stderr


@pytest.mark.parametrize("command", ["comment", "annotate"])
def test_one_invalid_report_among_several(results, command, tmp_path):
    (tmp_path / results[1]).write_text("{}", "utf-8")
    done = run_ldos(command, *results)
    assert (done.returncode, done.stdout) == (2, "")
    assert "received/test/result.json is not a report" in done.stderr


def test_overlong_fleet_comment_keeps_all_verdicts(tmp_path):
    files = []
    for number in range(40):
        file = tmp_path / f"{number}.json"
        file.write_text(json_text.render(hostile()), "utf-8")
        files.append(file)
    text = run_ldos("comment", *files).stdout
    assert len(text) < 65_536
    assert text.count("| ❌ regressed | 9 of 10 trials succeeded |") == 40
    assert "the report is too long for a comment" in text
