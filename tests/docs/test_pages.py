"""README, tutorials and how-to pages: commands and settings exist, and sessions run as shown."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from pytest_ldos import api
from pytest_ldos.plugin.options import describe_marks
from pytest_ldos.scenario.options import OPTIONS
from pytest_ldos.scenario.settings import read_toml
from tests.builders.command_line import app
from tests.builders.pages import ABSENT, MINUTES, ROOT, Block, Command, Session, parse_page, read_sessions
from tests.builders.shown_output import differs

SESSIONS = read_sessions()
BLOCKS = {f"{each.page}:{block.line}": block for each in SESSIONS for block in each.blocks}
COMMANDS = typer.main.get_command(app)
FLAGS = {option.flag for option in OPTIONS.values()}
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
LANGUAGES = {"console", "text", "toml", "python", "yaml", "json", "xml", "sh", "ini", "cpp", "cmake", "mermaid"}
QUICK_S, WHOLE_S = 300, 1500


def blocks(language: str) -> list:
    return [pytest.param(block, id=place) for place, block in BLOCKS.items() if block.language == language]


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_marks_and_languages_are_known(block):
    assert block.language in LANGUAGES
    assert block.marks <= {MINUTES, *ABSENT}


@pytest.mark.parametrize("block", blocks("console"))
def test_commands_and_their_options_exist(block):
    for command in block.commands:
        for words in simple_commands(command.text):
            assert list(unknown_words(words)) == [], command.text


def simple_commands(text: str) -> Iterator[list[str]]:
    """Words of each command in a line of a shell; what no shell could read is one word."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|&;\n"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def unknown_words(words: list[str]) -> Iterator[str]:
    """Options, commands and targets of ours that do not exist."""
    words = [each for each in words if not re.fullmatch(r"[A-Z_]+=.*", each) or each.startswith("ARGS=")]
    program = Path(words[0]).name if words else ""
    if program == "ldos":
        yield from unknown_to_ldos(words[1:])
    elif program == "pytest":
        yield from unknown_to_pytest(words[1:])
    elif program == "make":
        yield from (
            each
            for each in words[1:]
            if not each.startswith(("ARGS=", "-")) and "=" not in each and each not in TARGETS
        )
        arguments = next((each for each in words if each.startswith("ARGS=")), "ARGS=")
        yield from unknown_to_pytest(shlex.split(arguments[5:]))


def unknown_to_ldos(words: list[str]) -> Iterator[str]:
    command: Any = COMMANDS
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    if getattr(command, "commands", None) and not words:
        return
    if hasattr(command, "commands") and words and not words[0].startswith("-"):
        yield words[0]
    known = {"--help", *(name for each in command.params for name in (*each.opts, *each.secondary_opts))}
    yield from (each for each in words if re.match(r"--?[a-zA-Z]", each) and each.partition("=")[0] not in known)


def unknown_to_pytest(words: list[str]) -> Iterator[str]:
    yield from (each for each in words if each.startswith("--ldos") and each.partition("=")[0] not in FLAGS)


@pytest.mark.parametrize("block", blocks("python"))
def test_python_examples_parse_and_their_names_exist(block):
    tree = ast.parse(block.text)
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    assert [node.attr for node in used if node.value.id == "api" and not hasattr(api, node.attr)] == []


@pytest.mark.parametrize("block", blocks("toml"))
def test_example_settings_are_valid(block, tmp_path):
    tomllib.loads(block.text)
    (together,) = (session.blocks for session in SESSIONS if block in session.blocks)
    for each in (each for each in together if each.language == "python" and each.file):
        (tmp_path / each.file).write_text(each.text, "utf-8")  # a launch file that the settings name
    if "tool.ldos" in block.text:
        (tmp_path / "pyproject.toml").write_text(block.text, "utf-8")
        read_toml(tmp_path, None)


@pytest.mark.parametrize("block", blocks("json"))
def test_example_topologies_are_valid(block):
    from pytest_ldos.robot.topology.model import decode_topology

    if '"nodes"' in block.text:
        assert decode_topology(block.text, "a page").nodes


PAGES = sorted({each.page for each in SESSIONS} | {"README.md", "docs/tutorials/index.md"})


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_existing_files(page):
    """Those of a checkout that has the site; another has its own pages alone."""
    text = (ROOT / page).read_text("utf-8")
    links = re.findall(r"(?:\]\(|src(?:set)?=\")(?!https?:|#)([^)#\"\s]+)", text)
    missing = {link for link in links if not ((ROOT / page).parent / link).resolve().exists()}
    if not (ROOT / "docs/conf.py").exists():
        missing = {
            link for link in missing if not re.search(r"(how-to|reference|explanation|troubleshooting)/index", link)
        }
    assert missing == set()


def test_marks_in_pytest_commands_are_known():
    """``pytest -m NAME``: of this project's scenarios or instruments, or of one that a page declares."""
    declared = {
        name for each in BLOCKS.values() for name in re.findall(r"tool\.ldos\.scenarios\.\"?([\w+]+)", each.text)
    }
    known = {mark.split("(")[0] for mark in describe_marks({"baseline": ""})} | declared | {"busy_cell"}
    known |= {"cpu_load", "msg_load", "cpu_limit"}
    chosen = {
        name
        for each in blocks("console")
        for expression in re.findall(r"pytest[^\n]* -m (\S+)", each.values[0].text)
        for name in re.split(r"[+'\"]+", expression)
        if name
    }
    assert chosen - known == set()


def sessions(*, with_minutes: bool) -> list:
    return [
        pytest.param(each, id=f"{each.page}:{each.blocks[0].line}")
        for each in SESSIONS
        if each.place and any(block.commands for block in each.chosen(with_minutes=with_minutes))
    ]


def quick_sessions() -> list:
    """All of them; but a few, evenly spread, in `make acceptance` and `make docs-test` alone."""
    found = sessions(with_minutes=False)
    kept = found[:: max(1, len(found) // 4)]
    return [
        each if each in kept else pytest.param(*each.values, id=each.id, marks=pytest.mark.acceptance) for each in found
    ]


@pytest.mark.parametrize("session", quick_sessions())
def test_commands_of_seconds_run_as_shown(session, tmp_path):
    run(session, tmp_path, with_minutes=False, timeout_s=QUICK_S)


@pytest.mark.acceptance
@pytest.mark.measures_time
@pytest.mark.parametrize(
    "session",
    [each for each in sessions(with_minutes=True) if any(MINUTES in block.marks for block in each.values[0].blocks)],
)
def test_commands_of_minutes_run_as_shown(session, tmp_path):
    run(session, tmp_path, with_minutes=True, timeout_s=WHOLE_S)


def run(session: Session, folder: Path, *, with_minutes: bool, timeout_s: float) -> None:
    """Runs a session in one shell, and compares what it printed with the page."""
    place = prepare(session.place, folder)
    chosen = session.chosen(with_minutes=with_minutes)
    script = folder / "session.sh"
    script.write_text("\n".join(["cd " + shlex.quote(str(place)), "status=0", *lines_of(chosen, folder)]), "utf-8")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "110"}
    done = subprocess.run(
        ["bash", script],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    commands = [command for block in chosen for command in block.commands]
    outputs = re.findall(r"\x1e(\d+)\n(.*?)\n?\x1e\x1e(\d+)\n", done.stdout, re.DOTALL)
    assert len(outputs) == len(commands), done.stdout
    for index, (command, (_, output, status)) in enumerate(zip(commands, outputs, strict=True)):
        check(session, command, output, int(status), commands[index + 1 :])


def check(session: Session, command: Command, output: str, status: int, later: list[Command]) -> None:
    where = f"{session.page}:{command.line}: $ {command.text}"
    is_asked = bool(later) and later[0].text.startswith("echo $?")
    assert status == 0 or is_asked, f"{where}\nended with {status}:\n{output}"
    if command.text.startswith("echo $?"):
        assert output.split() == command.shown[0].split(), where
    if command.shown:
        missing = differs(command.shown, output.splitlines())
        assert not missing, f"{where}\ndoes not print\n{missing}\nbut\n{output}"


def prepare(place: str, folder: Path) -> Path:
    """The folder in which a session runs."""
    root = folder / "here"
    if place == "a clone":
        subprocess.run(["git", "clone", "--quiet", ROOT, root], check=True, timeout=QUICK_S)
        (root / ".venv").symlink_to(Path(sys.executable).parents[1])
        return root
    empty, _, files = place.partition(" with ")
    assert empty == "an empty folder", place
    root.mkdir()
    for name in filter(None, files.split(", ")):
        shutil.copy(ROOT / name, root)
    return root


def lines_of(chosen: list[Block], folder: Path) -> Iterator[str]:
    """The script: each command between marks, files before what uses them."""
    number = 0
    for block in chosen:
        if block.file:
            number += 1
            source = folder / f"block-{number}"
            source.write_text(block.text, "utf-8")
            yield f"mkdir -p $(dirname {block.file}); cat {source} {'>>' if block.is_appended else '>'} {block.file}"
        if block.before:
            yield f"({block.before}) || exit 1"
        for command in block.commands:
            yield f"printf '\\x1e%d\\n' {command.line}; (exit $status)"
            yield command.text
            yield "status=$?; printf '\\n\\x1e\\x1e%d\\n' $status"


def test_commands_not_run_here_are_counted(capsys):
    """Every block with commands runs, or says why not."""
    counts = Counter()
    for session in SESSIONS:
        for block in (each for each in session.blocks if each.commands):
            reason = ", ".join(sorted(block.absent))
            counts[reason or ("runs, minutes" if MINUTES in block.marks else "runs, seconds")] += 1
    with capsys.disabled():
        sys.stdout.write("\npages: " + "; ".join(f"{count} {name}" for name, count in sorted(counts.items())) + "\n")
    assert counts["runs, seconds"] + counts["runs, minutes"] > 0
    homeless = [
        each.page
        for each in SESSIONS
        if not each.place and any(block.commands for block in each.chosen(with_minutes=True))
    ]
    assert homeless == []


def test_pages_are_parsed():
    page = parse_page(
        "x.md",
        "<!-- runs in: a clone -->\n```console {.minutes}\n$ ls\n> -l\na\n$ pwd\n```\n"
        "<!-- file: a/b.toml -->\n```toml\nx = 1\n```\n<!-- runs in: an empty folder with LICENSE -->\n  ```console\n  $ cat LICENSE\n  ```\n",
    )
    assert [(each.place, len(each.blocks)) for each in page] == [("a clone", 2), ("an empty folder with LICENSE", 1)]
    first, written = page[0].blocks
    assert [(each.text, each.shown) for each in first.commands] == [("ls\n-l", ("a",)), ("pwd", ())]
    assert (first.marks, written.file, page[1].blocks[0].text) == ({"minutes"}, "a/b.toml", "$ cat LICENSE\n")


@pytest.mark.parametrize(
    "text",
    [
        "ldos nothing",
        "ldos history --nothing",
        "pytest --ldos-nothing=3",
        'make baseline ARGS="--ldos-nothing"',
        "make nothing",
        "cd x && ldos sweep --ovr=1",
    ],
)
def test_nonexistent_commands_are_found(text):
    assert [unknown for words in simple_commands(text) for unknown in unknown_words(words)] != []


def session_of(text: str) -> Session:
    return parse_page("x.md", f"<!-- runs in: an empty folder -->\n{text}")[0]


def test_session_continues_in_one_shell(tmp_path):
    text = (
        "<!-- file: a/b -->\n```text\nx\n```\n<!-- append to: a/b -->\n```text\ny\n```\n"
        "```console\n$ cd a && word=z\n$ cat b; echo $word\nx\ny\nz\n$ false\n$ echo $?\n1\n```\n"
        "```console {.needs-ros2}\n$ exit 3\n```\n"
    )
    run(session_of(text), tmp_path, with_minutes=False, timeout_s=QUICK_S)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("$ true\n$ false\n$ true", r"x.md:4: \$ false\s+ended with 1"),
        ("$ echo a\nb", r"does not print\s+b\s+but\s+a"),
        ("$ false\n$ echo $?\n2", r"x.md:4: \$ echo \$\?"),
        ("$ exit 0\n$ true", r"assert 0 == 2"),
    ],
)
def test_outdated_commands_fail(tmp_path, text, says):
    with pytest.raises(AssertionError, match=says):
        run(session_of(f"```console\n{text}\n```\n"), tmp_path, with_minutes=False, timeout_s=QUICK_S)
