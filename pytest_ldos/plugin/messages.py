"""Shows escaped text in pytest, and ends tests and sessions for known faults."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from pytest_ldos.base.errors import LdosError, NotWritten
from pytest_ldos.base.exit_codes import INVALID
from pytest_ldos.base.text import Rendered, one_line, safe_lines


def fail_with(message: str) -> NoReturn:
    __tracebackhide__ = True
    raise pytest.fail.Exception(safe_lines(message), pytrace=False) from None


def skip_with(reason: str) -> NoReturn:
    __tracebackhide__ = True
    pytest.skip(one_line(reason))


def end_session(reason: str, *, status: int | None = None) -> NoReturn:
    """Ends the session, by default with pytest's status for an interrupt."""
    pytest.exit(safe_lines(reason), returncode=status)


def usage_error(message: str) -> pytest.UsageError:
    return pytest.UsageError(safe_lines(message))


def collect_error(message: str) -> Exception:
    """An error in how a test is written."""
    return pytest.Collector.CollectError(safe_lines(message))


@contextmanager
def collecting() -> Iterator[None]:
    """Turns a usage error into an error of the collected test file."""
    try:
        yield
    except pytest.UsageError as error:
        raise collect_error(str(error)) from None


def warn_of(message: str) -> None:
    warnings.warn(pytest.PytestWarning(one_line(message)), stacklevel=2)


def add_section(node: pytest.Item, text: str) -> None:
    node.add_report_section("call", "ldos", safe_lines(text))


def begin_section(reporter: pytest.TerminalReporter, title: str) -> None:
    reporter.section(one_line(title))


def write_line(reporter: pytest.TerminalReporter, text: str, **markup: bool) -> None:
    reporter.write_line(one_line(text), **markup)


def write_rendered(reporter: pytest.TerminalReporter, text: Rendered) -> None:
    """Writes rendered lines; if the terminal lacks a character, pytest alone would escape the line ends as well."""
    reporter.write(encodable(text, reporter._tw._file))  # noqa: SLF001 - as pytest itself does


def encodable(text: str, stream: object) -> str:
    """Escapes the characters that a stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


@contextmanager
def refused_session() -> Iterator[None]:
    """Ends pytest before measuring: with a usage error for a setting, as an invalid run for a fault of the machine."""
    try:
        yield
    except NotWritten as error:
        end_session(f"ldos: {error}", status=INVALID)
    except LdosError as error:
        raise usage_error(str(error)) from None


@contextmanager
def named_faults() -> Iterator[None]:
    """Ends the test with the message of a known fault."""
    __tracebackhide__ = True
    try:
        yield
    except LdosError as error:
        fail_with(str(error))
