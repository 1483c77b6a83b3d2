"""Choice of the scheduler, and refusals."""

from __future__ import annotations

import importlib.util

import pytest

from pytest_ldos.base.errors import ConfigurationError, Unavailable
from pytest_ldos.fleet.choose import LocalCluster, RemoteScheduler, choose_scheduler
from pytest_ldos.fleet.tasks import InProcess
from pytest_ldos.host.cpu import our_cpus


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (None, LocalCluster(len(our_cpus()))),
        ("local", LocalCluster(len(our_cpus()))),
        ("synchronous", InProcess()),
        ("tcp://lab-1.example:8786", RemoteScheduler("tcp://lab-1.example:8786")),
        ("tls://[::1]:8786", RemoteScheduler("tls://[::1]:8786")),
    ],
)
def test_scheduler_names(word, expected):
    assert choose_scheduler(word) == expected


def test_number_of_processes():
    assert choose_scheduler(None, workers=3) == choose_scheduler("local", workers=3) == LocalCluster(3)


@pytest.mark.parametrize(
    "word",
    ["", "locale", "tcp://", "tcp://host", "tcp://host:0", "tcp://host:70000", "http://host:8786", "tcp://a b:1"],
)
def test_unknown_scheduler_is_refused(word):
    with pytest.raises(ConfigurationError, match="unknown scheduler") as caught:
        choose_scheduler(word)
    assert "tcp://HOST:PORT" in caught.value.remedy


@pytest.mark.parametrize("word", ["synchronous", "tcp://host:1"])
def test_workers_of_a_remote_scheduler_cannot_be_set(word):
    with pytest.raises(ConfigurationError, match=f"--workers belongs to --scheduler local, not to {word}"):
        choose_scheduler(word, workers=2)


@pytest.fixture
def no_dask(monkeypatch):
    """Simulates a missing Dask installation."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


def test_without_dask(no_dask):
    assert isinstance(choose_scheduler(None), InProcess)
    for word in ("local", "tcp://host:1"):
        with pytest.raises(Unavailable, match="Dask is not installed") as caught:
            choose_scheduler(word)
        assert caught.value.remedy == "pip install 'pytest-ldos[fleet]', or use --scheduler synchronous"


def test_local_processes_need_the_key_package(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "cryptography" else find(name))
    assert isinstance(choose_scheduler(None), InProcess)
    assert choose_scheduler("tcp://host:1") == RemoteScheduler("tcp://host:1")
    for asked in ({"word": "local"}, {"word": None, "workers": 2}):
        with pytest.raises(Unavailable, match="cryptography is not installed"):
            choose_scheduler(**asked)
