"""SIGTERM during a run, while results are written, and afterwards."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from pytest_ldos.host.temporary import terminated_like_interrupted


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_sigterm_interrupts_only_within_the_context():
    with pytest.raises(KeyboardInterrupt, match="ended by SIGTERM"), terminated_like_interrupted():
        terminate()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_sigterm_is_ignored_while_results_are_written():
    with terminated_like_interrupted() as termination:
        termination.settle()
        terminate()


def test_existing_handler_is_kept():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with terminated_like_interrupted():
            terminate()
        terminate()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [1, 1]


def test_handler_is_not_set_off_the_main_thread():
    found = []

    def look() -> None:
        with terminated_like_interrupted():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]
