"""Messages of a robot are escaped in pytest's output, reports and a job's log."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

WORD = "no way\n::error file=x::owned\n##[error]x\r\x1b[2J\u202e"


def is_harmless(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]
    return not lines and not {"\r", "\x1b", "\u202e"} & {*text}


def test_robot_text_is_escaped(run, project, monkeypatch):
    summary = project.path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    files = [project.path / f"r.{kind}" for kind in ("html", "md", "json")]
    result = run(
        "--ldos-trials=3", "--ldos-warmup=0", "--ldos-summary", "--ldos-history=kept", "--junitxml=junit.xml",
        *(f"--ldos-report={file}" for file in files),
        stack=f"lambda i: Motion(error_code=-31, message={WORD!r})",
    )  # fmt: skip
    assert result.ret == 10
    shown = [result.stdout.str(), result.stderr.str(), *(file.read_text("utf-8") for file in (summary, *files))]
    assert all(map(is_harmless, shown))
    assert "no way" in shown[0]
    assert "no way" in (project.path / "junit.xml").read_text("utf-8")
    assert is_harmless(ET.parse(project.path / "junit.xml").find(".//failure").get("message"))


@pytest.mark.acceptance
def test_stack_that_does_not_start(project):
    project.makeconftest(
        f"""
        from contextlib import contextmanager
        from pytest_ldos.base.errors import BringUpFailed
        from pytest_ldos.measure.trial import rig

        @contextmanager
        def fail(spec, folder, *, on_waiting, **settings):
            on_waiting({WORD!r})
            raise BringUpFailed({WORD!r}, remedy={WORD!r}, details={WORD!r})
            yield

        rig.open_rig = fail
        """
    )
    result = project.runpytest_subprocess("--ldos-report=r.md", timeout=300)
    assert result.ret == 11
    assert result.stdout.str().count("no way") >= 3
    assert is_harmless(result.stdout.str())
    assert is_harmless((project.path / "r.md").read_text("utf-8"))
