"""A run on a machine with little in it: no names, a locale of ASCII alone, no device for others to hear."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.integration.embedded.short_run import ShortRun


@pytest.fixture
def run(short_run) -> ShortRun:
    if short_run.not_bare:
        pytest.skip(f"no mount namespaces of one's own here: {short_run.not_bare}")
    return short_run


def test_no_name_is_resolved_and_every_socket_is_on_the_loopback_device(run):
    """As on a bare Debian root, whose /etc/hosts is empty."""
    sockets = json.loads((run.project.path / "sockets.json").read_text())
    assert len(sockets) >= 3 * 4, "four processes, each with a socket for discovery, data and sending"
    assert {address.partition(":")[0] for _, address in sockets} == {"0100007F"}


def test_ascii_locale(run):
    _, printed = run.call(sys.executable, "-c", "import locale; print(locale.getpreferredencoding())")
    assert printed.strip() == "ANSI_X3.4-1968"


def test_the_report_needs_no_other_locale(run):
    """`lttng --version` says its authors' names with letters that are none of ASCII, our reports have ``≈`` and ``…``."""
    assert Path(run.project.path, "Größe", "report.html").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "latest"],
        pytest.param(["doctor"], marks=pytest.mark.acceptance),
        pytest.param(["--help"], marks=pytest.mark.acceptance),
    ],
    ids=" ".join,
)
def test_no_command_needs_another_locale(run, arguments):
    code, printed = run.call(sys.executable, "-c", "from pytest_ldos.cli.main import run; run()", *arguments)
    assert "Traceback" not in printed
    assert code in {0, 1}, printed
