"""Nodes of the embedded layer, spun while a test lasts."""

from __future__ import annotations

import threading

import pytest

from pytest_ldos.robot.dds.domain import claim_domain
from pytest_ldos.robot.dds.node import Context


@pytest.fixture
def context():
    """A context whose executor spins until the test ends."""
    with claim_domain() as domain:
        context = Context(domain)
        thread = threading.Thread(target=context.executor.spin)
        thread.start()
        yield context
        context.executor.stop()
        thread.join()
