"""Observations of a neighbour during trials; imported by inner test runs."""

from __future__ import annotations

import contextlib

import psutil
import pytest

from pytest_ldos.measure.load.protocol import RepeatedLoad


@pytest.fixture
def neighbour_found(monkeypatch):
    """Processes of the neighbour while it runs, and the domain of the stack under test."""
    found, applied_to = {}, RepeatedLoad.applied_to

    @contextlib.contextmanager
    def looked_at(load, site):
        with applied_to(load, site) as running:
            if load.spec.KIND == "noisy_neighbour":
                tree = psutil.Process().children(recursive=True)
                driver = next(each for each in tree if "pytest_ldos.measure.load.noisy_neighbour" in each.cmdline())
                found["processes"] = {each.pid: each.name() for each in [driver, *driver.children(recursive=True)]}
                found["ours"] = site.domain
            yield running

    monkeypatch.setattr(RepeatedLoad, "applied_to", looked_at)
    return found
