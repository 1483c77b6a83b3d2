"""The output of ``--help``: complete, in words that users type, within 80 columns."""

from __future__ import annotations

import re

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.builders.command_line import app

WIDTH = 80


def commands(command, *names):
    """Every command, by what is typed for it."""
    yield names
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, *names, name)


COMMANDS = [*commands(get_command(app))]


def help_of(*names):
    result = CliRunner().invoke(app, [*names, "--help"], prog_name="ldos", terminal_width=WIDTH)
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_help_has_no_python_and_is_not_truncated(names):
    text = help_of(*names)
    assert not re.findall(r"<(?:str|int|float|path|list|\w+\|)|list\[|\bint range|\bx>=|\{", text)
    assert "..." not in text.replace("COMMAND [ARGS]...", "")
    assert max(map(len, text.splitlines())) <= WIDTH


@pytest.mark.parametrize("names", [each for each in COMMANDS if each], ids=" ".join)
def test_a_summary_is_one_line(names):
    """In the list that it stands in."""
    (line,) = [each for each in help_of(*names[:-1]).splitlines() if each.split()[:1] == [names[-1]]]
    summary = " ".join(line.split()[1:])
    assert summary.endswith(".")
    assert summary in help_of(*names)


def test_commands_are_grouped():
    text = help_of().partition("Show this message and exit.\n")[2]
    groups = re.findall(r"^(\S.*):\n", text, re.MULTILINE)
    assert len(groups) == len(set(groups)) == 6
    listed = re.findall(r"^  ([a-z-]+) +\S", text, re.MULTILINE)
    assert sorted(listed) == sorted(each[0] for each in COMMANDS if len(each) == 1)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("compare",), ["Usage: ldos compare [OPTIONS] BASE HEAD", "--format terminal|html|md|json", "--output FILE"]),
        (("report",), ["Usage: ldos report [OPTIONS] [RUN]"]),
        (("analyze",), ["Usage: ldos analyze [OPTIONS] TRACE…", "--workers N", "at least 1", "--pid PID"]),
        (("calibrate",), ["--draws N", "1 to 10000", "--pause TIME", "--scenario NAME"]),
        (("history",), ["--since COMMIT|DATE", "--plot FILE", "COMMAND [ARGS]..."]),
        (("latency",), ["--seconds NUMBER", "--ddsperf / --no-ddsperf", "--profile DIR"]),
    ],
)
def test_option_values_are_named_by_their_meaning(names, words):
    text = " ".join(help_of(*names).split())
    assert [each for each in words if each not in text] == []
