"""Shared parts of commands that start a stack, and the metrics that they measure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import ConfigurationError, LdosError, Unavailable
from pytest_ldos.cli.paths import sources_here
from pytest_ldos.cli.say import complain, say
from pytest_ldos.host.fingerprint import take_fingerprint
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.host.temporary import terminated_like_interrupted
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.measure.load.choose import load_available
from pytest_ldos.measure.metrics.catalogue import Catalogue, built_in_of, catalogue_of
from pytest_ldos.measure.metrics.own import HOOK, load_metrics
from pytest_ldos.record.choose import recording_available
from pytest_ldos.robot.stack.choose import describe_stack, stack_available
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.settings import Sources


@contextmanager
def measuring(*, kept: str) -> Iterator[None]:
    """Holds the machine; a fault ends the command with its message and exit code 11.

    Args:
        kept: sentence on what is saved after an interrupt.
    """
    try:
        wait_s = sources_here().wait_s(os.environ)
        with (
            measuring_lock(wait_s=wait_s, on_waiting=lambda holder: say(f"ldos: waiting for {holder}", err=True)),
            terminated_like_interrupted(),
        ):
            yield
    except ConfigurationError:
        raise
    except LdosError as error:
        complain(error)
        raise typer.Exit(exit_codes.INVALID) from None
    except KeyboardInterrupt:
        say("", err=True)
        say(f"ldos: interrupted; {kept}", err=True)
        raise typer.Exit(exit_codes.INTERRUPTED) from None


def chosen_scenarios(names: Sequence[str] | None, sources: Sources) -> list[str]:
    """Requested scenarios, each once; ``a+b`` is both at once.

    Raises:
        ConfigurationError: one is unknown; names the nearest.
    """
    return list(dict.fromkeys(sources.scenario(name, {}).name for name in names or sources.scenario_names()[:1]))


def refuse_watching(sources: Sources) -> None:
    """Refuses profilers, which commands with many starts of the stack do not support.

    Raises:
        ConfigurationError: the environment or the project's settings request one.
    """
    asked = [name for name in ("profile", "syscalls") if sources.value(name)]
    if asked:
        raise ConfigurationError(
            f"{' and '.join(asked)} is set, but this command's starts are not watched",
            remedy=f"call it with {' '.join(f'LDOS_{name.upper()}=0' for name in asked)}; tests with "
            "@pytest.mark.ldos_sweep can be watched: pytest --ldos-profile",
        )


def refuse_unable(spec: ScenarioSpec) -> None:
    """Refuses to begin if something is missing.

    Raises:
        Unavailable: the stack, the tracer or a load is not installed or not permitted.
    """
    loads = (load_available(load, spec.stack) for load in spec.loads)
    for each in (stack_available(spec.stack), recording_available(), *loads):
        if not each.ok:
            raise Unavailable(f"cannot measure: {each.reason}", remedy=each.remedy)


def key_of(spec: ScenarioSpec) -> BaselineKey:
    """The key of the baseline for trials made here."""
    info = describe_stack(spec.stack)
    host = take_fingerprint(rmw=info.rmw, versions=info.versions)
    return BaselineKey(info.name, host.host_class, spec.name)


def policy_here(*, scenarios: int, own: Iterable[str] = ()) -> Policy:
    """The project's gate. Floors and required metrics may name metrics that only its tests register.

    Args:
        own: names of metrics that a user registered, or that records contain in addition to the built-in ones.
    """
    gate = sources_here().toml.gate
    return Policy.configured(gate, scenarios=scenarios, own=(*own, *gate.get("floors", {}), *gate.get("required", ())))


def output_here() -> Path:
    return sources_here().folder("output")


MetricsOption = Annotated[
    str | None,
    typer.Option(
        "--metrics", metavar="FILE_OR_MODULE", help=f"Metrics of your own: a conftest.py or module with {HOOK}()."
    ),
]


def chosen_metrics(given: str | None, sources: Sources) -> Catalogue:
    """All metrics to measure.

    Args:
        given: value of the option.

    Raises:
        ConfigurationError: see `load_own` and `catalogue_of`.
    """
    built_in = built_in_of(sources.stack_spec())
    return catalogue_of(load_metrics(given), sources.toml.metrics, built_in=built_in)
