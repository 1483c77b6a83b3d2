"""The programs in ``.ci/results``, loaded as they load each other."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass

import pytest

from tests.builders.ci_rooms import ROOM
from tests.fakes.github_api import TOKEN, FakeGitHub, running


@dataclass(frozen=True)
class Done:
    """Exit status and output of a program."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def module_of():
    """A module of the room by its name; none stays loaded."""
    names = {file.stem for file in ROOM.glob("*.py")}
    before = {*sys.modules}
    sys.path.insert(0, str(ROOM))

    def load(name: str):
        if name != "__main__":
            return importlib.import_module(name)
        specification = importlib.util.spec_from_file_location("results_program", ROOM / "__main__.py")
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module

    yield load
    sys.path.remove(str(ROOM))
    for name in names - before:
        sys.modules.pop(name, None)


@pytest.fixture
def github():
    with running(FakeGitHub()) as served:
        yield served


@pytest.fixture(scope="module")
def program(module_of):
    """The program of ``python3 -I .ci/results``."""
    return module_of("__main__")


@pytest.fixture
def run_program(program, module_of, github, monkeypatch, capsys):
    """Runs it in this process, with a token and GitHub's address; it asks again at once."""
    monkeypatch.setattr(module_of("github_api"), "PAUSES_S", (0.0, 0.0, 0.0))

    def run(*arguments: object, **changes: str) -> Done:
        for name, value in {"GITHUB_API_URL": github.url, "GITHUB_TOKEN": TOKEN, "no_proxy": "*", **changes}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["results", *map(str, arguments)])
        try:
            status = program.main()
        except SystemExit as ended:  # a call that argparse refuses
            status = ended.code
        return Done(status, *capsys.readouterr())

    return run
