"""The command as `ros2` runs it, with a program that says what it was given."""

import os
import subprocess

SAYS = '#!/bin/sh\nprintf "%s|" "$@"\nexit 12\n'


def run(tmp_path, *words):
    """Run `ros2 ldos` where the program is the first on the search path."""
    (tmp_path / "ldos").write_text(SAYS)
    (tmp_path / "ldos").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    return subprocess.run(
        ["ros2", "ldos", *words],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_output_is_only_the_programs(tmp_path):
    """Options, help, and what looks like an option of `ros2`."""
    for words in (
        ("measure", "-k", "reach", "--", "--ldos-trials=3"),
        ("--version",),
        ("-h",),
        ("analyze", "--help"),
        ("--use-python-default-buffering",),
        ("one word with spaces", "'", "$HOME"),
    ):
        done = run(tmp_path, *words)
        assert done.stdout == "".join(f"{word}|" for word in words), done.stderr
        assert done.returncode == 12


def test_program_without_arguments_prints_its_usage(tmp_path):
    """It gets none either."""
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (12, "|"), done.stderr
