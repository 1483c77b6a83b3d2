"""Faults that have a name end a test with their message, not with a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from pytest_ldos.errors import LdosError
from pytest_ldos.text import visible


def fail_with(message: str) -> NoReturn:
    """Ends the test with a message; other programs' text in it is made safe to show."""
    raise pytest.fail.Exception(visible(message), pytrace=False) from None


@contextmanager
def named_faults() -> Iterator[None]:
    """Ends the test with the message of a fault that has a name."""
    __tracebackhide__ = True
    try:
        yield
    except LdosError as error:
        fail_with(str(error))
