"""Faults that have a name end a test with their message, not with a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from pytest_ldos.errors import LdosError, NotWritten
from pytest_ldos.exit_codes import INVALID
from pytest_ldos.text import visible


def fail_with(message: str) -> NoReturn:
    """Ends the test with a message; other programs' text in it is made safe to show."""
    raise pytest.fail.Exception(visible(message), pytrace=False) from None


@contextmanager
def refused_session() -> Iterator[None]:
    """Ends pytest before anything is measured: a wrong setting is its usage error, a fault of the machine ours."""
    try:
        yield
    except NotWritten as error:
        pytest.exit(visible(f"ldos: {error}"), returncode=INVALID)
    except LdosError as error:
        raise pytest.UsageError(visible(str(error))) from None


@contextmanager
def named_faults() -> Iterator[None]:
    """Ends the test with the message of a fault that has a name."""
    __tracebackhide__ = True
    try:
        yield
    except LdosError as error:
        fail_with(str(error))
