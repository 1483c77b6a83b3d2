"""No name, message or path that somebody chose can do anything where it is shown, in any format."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pytest_ldos.cli
import pytest_ldos.show
from pytest_ldos.base import errors
from pytest_ldos.base.text import Rendered, visible
from pytest_ldos.cli.say import complain, say
from pytest_ldos.plugin import messages
from pytest_ldos.show.report import workflow_commands
from tests.builders.foreign import AS_JSON, SHOWN, texts_in

PACKAGE = Path(pytest_ldos.__file__).parent

HARMFUL = (
    "\n::error::owned",
    "\r::error::owned\u2028::error::owned\x85##[error]owned",
    "a\n\n\n##vso[task.setvariable variable=x]y",
    "\x1b[2K\x1b[1A\x1b]0;title\x07\x9b31m\x9d0;title\x9c\u202eexe.gpj\u2066x\u2069\u200e\u00ad\u200b\u2060\ufeff\U000e0041\ud800",
    "::stop-commands::x",
    "\t: :error::x",
    "=cmd|' /C calc'!A0",
)
"""Hostile text; `tests.builders.reports.HOSTILE` has more for Markdown, HTML and formulas."""

OURS = re.compile(r"\x1b\[[0-9;]*m")
"""Colours."""

UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
COMMAND = re.compile(r"^\s*::|##[\w.-]*\[", re.MULTILINE)

ANNOTATIONS = {workflow_commands.render, workflow_commands.render_several}
"""They are commands to the log themselves: one for each scenario, as their own tests show."""


def tame(word: str) -> str:
    """A name as it is shown on one line."""
    return visible(word).replace("\n", " ").replace("\t", " ")


def check_shown(render, word: str) -> None:
    """Nothing harmful is left; and what is shown is what would be, had somebody chosen the tame form of each word."""
    shown, tamed = (SHOWN[render](printed.__add__) for printed in (word, tame(word)))
    if len(word) == len(tame(word)) and render not in ANNOTATIONS:  # or else it may be cut or wrapped elsewhere
        assert shown == tamed
    for found in shown:
        found.encode()
        plain = OURS.sub("", found)
        assert not UNSEEN.findall(plain)
        if render in ANNOTATIONS:
            assert all(line.startswith(("::error ", "::warning ")) for line in plain.splitlines())
        else:
            assert not COMMAND.findall(plain)


def name_of(function) -> str:
    return f"{function.__module__.removeprefix('pytest_ldos.show.')}.{function.__name__}"


LONG = {
    "report.json_text.render_as",
    "report.html.render",
    "report.sweep.render_for",
    "report.trace_against.render_against",
}
"""They draw whole pages with plots; other pages, which are escaped by the same code, represent them."""


@pytest.mark.parametrize(
    "render",
    [pytest.param(each, marks=pytest.mark.acceptance) if name_of(each) in LONG else each for each in SHOWN],
    ids=name_of,
)
def test_hostile_text_is_harmless_in(render):
    for word in HARMFUL:
        check_shown(render, word)


@settings(max_examples=12, deadline=None)
@given(st.sampled_from([*SHOWN]), st.text(max_size=20))
def test_any_text_is_harmless(render, word):
    check_shown(render, word)


@pytest.mark.parametrize("render", AS_JSON, ids=name_of)
def test_data_keeps_text_and_contains_no_command(render):
    for word in HARMFUL:
        text = AS_JSON[render](word.__add__)
        assert text.isascii()
        assert not COMMAND.findall(text)
        assert any(each.startswith(word) for each in texts_in(json.loads(text)))


def rendering_functions():
    """Functions that a module of `show` or `cli` defines for others, by their type."""
    shown = pkgutil.walk_packages(pytest_ldos.show.__path__, "pytest_ldos.show.")
    for found in (*shown, *pkgutil.walk_packages(pytest_ldos.cli.__path__, "pytest_ldos.cli.")):
        module = importlib.import_module(found.name)
        for name, each in inspect.getmembers(module, inspect.isfunction):
            is_own = each.__module__ == module.__name__ and not name.startswith("_")
            if is_own and each.__annotations__.get("return") == Rendered.__name__:
                yield each


PARTS = {
    "page.terminal.print_to_text", "page.formats.to_csv", "page.formats.to_json", "page.html.whole_page",
    "page.html.render", "page.markdown.render", "page.terminal.render", "page.formats.render",
    "page.markdown.join",
}  # fmt: skip
"""Renderers that are parts of others, or called by format."""


def test_every_renderer_is_tested():
    assert {name_of(each) for each in SHOWN} >= LONG
    assert {name_of(each) for each in rendering_functions()} == PARTS | {name_of(each) for each in (*SHOWN, *AS_JSON)}


MAKERS = {
    "base/errors.py", "cli/say.py", "plugin/outputs.py", "show/page/formats.py", "show/page/html.py", "show/page/terminal.py",
    "show/page/markdown.py", "show/report/analysis.py", "show/report/terminal.py", "show/report/drawings.py",
    "show/report/history_page.py", "show/report/markdown.py", "show/report/workflow_commands.py",
}  # fmt: skip
"""Modules that say of a text that it can be shown."""


def calls(file: Path, kind: type[ast.Name | ast.Attribute], names: set[str]) -> bool:
    """A module calls one of these functions, or methods."""
    text = file.read_text("utf-8")
    if not any(name in text for name in names):
        return False  # most modules need not be parsed
    called = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    found = (each for each in called if isinstance(each, kind))
    return any((each.attr if isinstance(each, ast.Attribute) else each.id) in names for each in found)


def modules_below(folder: Path):
    return {file.relative_to(PACKAGE).as_posix(): file for file in folder.rglob("*.py")}


def test_rendered_text_is_created_only_in_known_modules():
    assert {name for name, file in modules_below(PACKAGE).items() if calls(file, ast.Name, {"Rendered"})} == MAKERS


def test_text_reaches_pytest_in_one_module():
    """Ways out that are functions or classes, the linter bans elsewhere; these are methods."""
    ways_out = {"write_line", "write_sep", "section", "add_report_section"}
    plugin = modules_below(PACKAGE / "plugin")
    assert {name for name, file in plugin.items() if calls(file, ast.Attribute, ways_out)} == {"plugin/messages.py"}


ERRORS = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, errors.LdosError)]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_error_messages_are_escaped_on_creation(kind):
    for word in HARMFUL:
        is_of_a_trace = kind is errors.TraceUnreadable
        given = {"remedy": word} if is_of_a_trace else {"remedy": word, "details": f"{word}\nlast line"}
        made = kind(Path(f"x{word}"), 3, word, **given) if is_of_a_trace else kind(word, **given)
        for text in (str(made), made.summary, made.message):
            text.encode()
            assert not UNSEEN.findall(text)
            assert not COMMAND.findall(text)
        assert "\n" not in made.message


@pytest.mark.parametrize("hand_over", [messages.fail_with, messages.skip_with, messages.end_session])
def test_messages_that_end_a_test_or_session_are_escaped(hand_over):
    for word in HARMFUL:
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - of pytest, each of another kind
            hand_over(word)
        assert not UNSEEN.findall(str(caught.value))
        assert not COMMAND.findall(str(caught.value))


def test_refusals_and_warnings_are_escaped():
    for word in HARMFUL:
        with pytest.warns(pytest.PytestWarning) as warned:
            messages.warn_of(word)
        for text in (warned[0].message, messages.usage_error(word), messages.collect_error(word)):
            assert not UNSEEN.findall(str(text))
            assert not COMMAND.findall(str(text))


def test_output_of_commands_is_escaped(capsys):
    for word in HARMFUL:
        say(word)
        say(word, err=True)
        complain(errors.ConfigurationError(word, remedy=word, details=word))
    for text in capsys.readouterr():
        assert not UNSEEN.findall(text)
        assert not COMMAND.findall(text)
