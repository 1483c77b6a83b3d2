"""The command ``ldos profile``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pytest_ldos.base.errors import ConfigurationError, ProfilingFailed, RecordUnreadable
from tests.builders.command_line import app

BASE = "simulator;step;solve 400\nsimulator;step 300\nsimulator;publish 300\n"
HEAD = "simulator;step;solve 600\nsimulator;step 200\nsimulator;publish 200\n"


@pytest.fixture
def files(tmp_path) -> tuple[Path, Path]:
    base, head = tmp_path / "base.folded", tmp_path / "head.folded"
    base.write_text(BASE)
    head.write_text(HEAD)
    return base, head


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["profile", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def refused(kind: type[Exception], *arguments: object) -> str:
    with pytest.raises(kind) as caught:
        CliRunner().invoke(app, ["profile", *map(str, arguments)], catch_exceptions=False)
    return str(caught.value)


def test_functions_are_listed_by_their_own_samples(files):
    lines = run("show", files[0]).splitlines()
    assert lines[0] == "1000 samples"
    assert [line.split() for line in lines[3:6]] == [
        ["40.0", "%", "40.0", "%", "solve"],
        ["30.0", "%", "70.0", "%", "step"],
        ["30.0", "%", "30.0", "%", "publish"],
    ]


def test_a_recursive_function_counts_once_a_sample(tmp_path):
    file = tmp_path / "x.folded"
    file.write_text("p;f;f;f 10\n")
    assert "100.0 %     100.0 %  f" in run("show", file)


@pytest.mark.parametrize("ending", [".svg", ".json", ".folded"])
def test_files_of_every_kind(files, tmp_path, ending):
    output = tmp_path / f"out{ending}"
    run("show", files[0], "--output", output)
    text = output.read_text()
    if ending == ".json":
        assert json.loads(text)["profiles"][0]["endValue"] == 1000
    elif ending == ".folded":
        assert sorted(text.splitlines()) == sorted(BASE.splitlines())
    else:
        assert text.startswith("<svg")


def test_significant_changes_are_listed_and_drawn(files, tmp_path):
    output = tmp_path / "x.svg"
    printed = run("diff", *files, "--output", output)
    assert "+20.0 %" in printed
    assert "simulator;step;solve" in printed
    assert "the variation between starts is unknown" in printed
    assert output.read_text().startswith("<svg")


def test_profiles_without_common_frames_are_compared_with_a_warning(tmp_path):
    one, other = tmp_path / "one.folded", tmp_path / "other.folded"
    one.write_text("simulator;step 400\n")
    other.write_text("planner;plan 400\n")
    printed = run("diff", one, other, "--output", tmp_path / "x.svg")
    assert printed.startswith("the profiles have no frame in common: are they of the same program?")
    assert "-100.0 %" in printed
    assert "+100.0 %" in printed
    assert "no frame in common" in (tmp_path / "x.svg").read_text()


def test_folder_has_a_file_for_each_start(tmp_path):
    for version in ("base", "head"):
        (tmp_path / version).mkdir()
        for start in (1, 2, 3):
            (tmp_path / version / f"start-{start}.folded").write_text(BASE)
    printed = run("diff", tmp_path / "base", tmp_path / "head")
    assert "3000 samples of the base, 3000 of the head" in printed
    assert "between starts" in printed
    assert "no frame's share changed significantly" in printed


def test_unreadable_and_unwritable_files_are_refused(files, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.folded").write_text("\x1b[31m no number\n")
    assert "cannot be read" in refused(RecordUnreadable, "show", tmp_path / "absent.folded")
    assert "no stack with a number" in refused(RecordUnreadable, "show", tmp_path / "bad.folded")
    assert "holds no profiles" in refused(ConfigurationError, "show", tmp_path / "empty")
    assert ".svg, .json, .folded" in refused(ConfigurationError, "show", files[0], "--output", tmp_path / "x.png")
    assert "let it end with .svg" in refused(ConfigurationError, "diff", *files, "--output", tmp_path / "x.png")
    assert "cannot be written" in refused(ConfigurationError, "show", files[0], "--output", "/proc/x/y.svg")
    assert ProfilingFailed.__doc__


def test_names_are_escaped_on_the_terminal(tmp_path):
    file = tmp_path / "x.folded"
    file.write_text("p;\x1b]0;owned 10\n")
    assert "\x1b" not in run("show", file)
    assert "\x1b" not in run("diff", file, file)
