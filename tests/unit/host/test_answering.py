"""Processes that answer lines, and their failures."""

from __future__ import annotations

import sys

import pytest

from pytest_ldos.host.kept import AnsweringChild, ChildFailed, summary_of, whole
from pytest_ldos.host.processes import ProcessGroup
from tests.builders.representatives import representatives

ECHO = "import sys\nfor line in sys.stdin: print('{\"length\": %d}' % len(line), flush=True)"


@pytest.fixture
def start(tmp_path):
    group = ProcessGroup(log_directory=tmp_path)

    def run(program: str) -> AnsweringChild:
        return AnsweringChild(group.start("child", [sys.executable, "-S", "-c", program], talk=True))

    yield run
    group.stop()


def test_questions_are_answered(start):
    child = start(ECHO)
    assert [child.ask(word, limit_s=60)["length"] for word in ("a", "abc")] == [2, 4]
    child.close()
    child.await_end()
    assert child.child.exit_code == 0


@pytest.mark.parametrize("output", representatives(["nonsense", "[1, 2]", "7", "{", '{"a": }', "[" * 20_000], 2))
def test_invalid_answer_is_quoted(start, output):
    with pytest.raises(ChildFailed, match="child printed an invalid answer: "):
        start(f"print({output!r}, flush=True); input()").answer(limit_s=60)


def test_undecodable_answer_is_an_error(start):
    program = "import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\x00{}\\n'); sys.stdout.flush(); input()"
    with pytest.raises(ChildFailed, match="an invalid answer"):
        start(program).answer(limit_s=60)


def test_death_is_reported_with_the_last_output(start):
    child = start("import sys; input(); sys.stderr.write('no memory\\n'); sys.exit(3)")
    with pytest.raises(ChildFailed) as caught:
        child.ask("exchange", limit_s=60)
    assert summary_of(caught.value) == "child ended with exit code 3: no memory"
    with pytest.raises(ChildFailed, match="exit code 3"):
        child.ask("once more", limit_s=60)


def test_line_right_before_the_end_is_read(start):
    child = start("import sys; print('{\"last\": 1}', flush=True); sys.exit(0)")
    assert child.answer(limit_s=60) == {"last": 1}
    with pytest.raises(ChildFailed, match="exit code 0"):
        child.answer(limit_s=60)


def test_silent_process_times_out(start):
    with pytest.raises(ChildFailed, match=r"did not answer within 0\.2 s"):
        start("input(); input()").ask("exchange", limit_s=0.2)


@pytest.mark.parametrize("value", [-1, 1.5, True, "3", None, float("nan")])
def test_invalid_numbers_are_refused(value):
    with pytest.raises(ChildFailed, match="no whole number"):
        whole({"n": value}, "n")
    assert whole({"n": 3}, "n") == 3
