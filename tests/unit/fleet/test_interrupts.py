"""Ctrl-C with worker processes."""

from __future__ import annotations

import signal

import pytest

from pytest_ldos.fleet.tasks import interrupts_noted


class Ending:
    """An object with a finalizer, in which exceptions are lost."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_interrupt_in_a_finalizer_is_not_lost():
    before = signal.getsignal(signal.SIGINT)
    with interrupts_noted() as raise_noted:
        raise_noted()
        Ending()
        with pytest.raises(KeyboardInterrupt):
            raise_noted()
    assert signal.getsignal(signal.SIGINT) is before
