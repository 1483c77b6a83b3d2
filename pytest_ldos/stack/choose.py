"""Which stack to run: the one place that knows all of them."""

from __future__ import annotations

from pathlib import Path

from pytest_ldos.host.availability import Availability
from pytest_ldos.recording.protocol import Recorder
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.stack.embedded.backend import EmbeddedBackend, embedded_available, embedded_info
from pytest_ldos.stack.protocol import StackBackend, StackInfo


def choose_backend(spec: StackSpec, *, recorder: Recorder, log_directory: Path) -> StackBackend:
    """The backend for a spec. `auto` is the embedded stack: it is the only one so far."""
    return EmbeddedBackend(spec, recorder=recorder, log_directory=log_directory)


def stack_available(spec: StackSpec) -> Availability:
    """Whether what `choose_backend` would start is installed."""
    return embedded_available()


def describe_stack(spec: StackSpec) -> StackInfo:
    """What `choose_backend` would start."""
    return embedded_info()
