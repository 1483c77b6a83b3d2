"""``.ci/render``: a result becomes comment, summary and annotations, or nothing at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ldos.report import json_text
from tests.builders.report_snapshots import FOLDER, URLS, hostile

SCRIPT = Path(__file__).parents[3] / ".ci" / "render"
LINKS = {"PAGE_URL": URLS["page"], "TRACE_URL": URLS["trace"], "RUN_URL": URLS["run"]}


STUB = """#!/bin/sh
printf '%s\\n' "$@" >>asked
if [ -n "${STUB_STATUS:-}" ]; then exit "$STUB_STATUS"; fi
if [ "$1" = comment ]; then echo text >comment.md; fi
"""


COMMANDS = """
import typer
from pytest_ldos.cli.comment import annotate, comment
app = typer.Typer()
app.command()(comment)
app.command()(annotate)
app()
"""


@pytest.fixture
def ldos(tmp_path) -> Path:
    """The command in the environment; notes how it is called."""
    program = tmp_path / ".venv" / "bin" / "ldos"
    program.parent.mkdir(parents=True)
    program.write_text(STUB, "utf-8")
    program.chmod(0o755)
    return program


@pytest.fixture
def render(tmp_path, ldos):
    (tmp_path / "result.json").write_text(json_text.render(hostile()), "utf-8")

    def run(**settings: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": "/usr/bin:/bin",
            "GITHUB_REPOSITORY": "arm-makers/arm",
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            **settings,
        }
        command = ["sh", str(SCRIPT), "result.json", "comment.md"]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )

    return run


def test_comment_summary_and_annotations(render, ldos, tmp_path):
    """With the real commands; the whole of `ldos` takes long to load."""
    ldos.write_text(f"#!{sys.executable}\n{COMMANDS}", "utf-8")
    done = render(**LINKS)
    assert (done.returncode, done.stderr) == (0, "")
    expected = (FOLDER / "hostile.comment.md").read_text("utf-8")
    assert (tmp_path / "comment.md").read_text("utf-8") == expected
    assert (tmp_path / "summary.md").read_text("utf-8") == expected
    assert done.stdout == "report: comment.md\n" + (FOLDER / "hostile.annotations.txt").read_text("utf-8")


def test_links_that_lead_elsewhere_are_left_out(render, tmp_path):
    done = render(
        PAGE_URL="https://evil.example/page", TRACE_URL="https://github.com/arm-makers/arm/$(id)", RUN_URL="http://x"
    )
    assert done.returncode == 0
    assert (tmp_path / "asked").read_text("utf-8").split() == [
        *("comment", "result.json", "--output", "comment.md"),
        *("annotate", "result.json"),
    ]
    assert done.stderr.splitlines() == [
        "render: --page-url leads out of https://github.com/arm-makers/arm/ : left out",
        "render: --trace-url is no address: left out",
        "render: --run-url does not begin with https:// : left out",
    ]


def test_a_result_that_is_none_is_not_shown(render, tmp_path):
    """What `ldos comment` says of one is in tests/unit/cli/test_comment.py."""
    done = render(**LINKS, STUB_STATUS="2")
    assert done.returncode == 2
    assert "annotate" not in (tmp_path / "asked").read_text("utf-8")
    assert not (tmp_path / "summary.md").exists()
