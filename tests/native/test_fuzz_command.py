"""Messages of `make fuzz` without a compiler; the fuzzing itself is not tested, because it takes time."""

from __future__ import annotations

import sys

from tests.native import fuzz


def test_a_missing_compiler_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["fuzz", "1"])
    assert fuzz.main() == 1
    assert "apt-get install clang" in capsys.readouterr().err


def test_a_compiler_without_libfuzzer_is_named(monkeypatch, capsys, tmp_path):
    compiler = tmp_path / "clang++"
    compiler.write_text("#!/bin/sh\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["fuzz", "1"])
    assert fuzz.main() == 1
    assert "libFuzzer" in capsys.readouterr().err
