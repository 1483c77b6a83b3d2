"""``ldos comment`` and ``ldos annotate``: what a workflow does with a result of another machine."""

from __future__ import annotations

import json

import pytest

from pytest_ldos.report import json_text
from tests.builders.command_line import run_ldos
from tests.builders.report_snapshots import FOLDER, URLS, harmless, hostile


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


def test_no_link_that_was_not_given(result):
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
def test_an_address_that_is_none(result, url):
    done = run_ldos("comment", result, "--page-url", url)
    assert done.returncode == 2
    assert "is no address" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["comment", "annotate"])
def test_a_file_that_is_no_report(result, command):
    made = json.loads(result.read_text("utf-8"))
    made["sections"][0]["scenario"] = ["<script>"]
    result.write_text(json.dumps(made), "utf-8")
    done = run_ldos(command, result)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sections[0].scenario is no text" in done.stderr
    assert "→ take the file that --ldos-report NAME.json wrote" in done.stderr
