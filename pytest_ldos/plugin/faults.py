"""Ends of tests and sessions by a known fault: with its message, not with a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pytest_ldos.base.errors import LdosError, NotWritten
from pytest_ldos.base.exit_codes import INVALID
from pytest_ldos.plugin.messages import end_session, fail_with, usage_error


@contextmanager
def refused_session() -> Iterator[None]:
    """Ends pytest before anything is measured: usage error for a setting, invalid run for a fault of the machine."""
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
