"""Settings of one pytest session: given and derived values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ldos.plugin.marks import describe_marks
from pytest_ldos.plugin.scenarios import combinations_in, scenario_arguments
from pytest_ldos.scenario.settings import Sources

if TYPE_CHECKING:
    from pytest_ldos.judge.baseline.store import BaselineStores
    from pytest_ldos.scenario.model import ScenarioSpec
    from pytest_ldos.scenario.watching import WatchSpec


@dataclass(frozen=True)
class Settings:
    """The settings of one pytest session.

    Attributes:
        config: pytest's own settings.
        sources: ours.
    """

    config: pytest.Config
    sources: Sources

    def value(self, name: str) -> Any:
        """The value of an option."""
        return self.sources.value(name)

    @property
    def root(self) -> Path:
        """The project's folder: that of its settings file, or pytest's root without one."""
        return self.sources.root

    @property
    def folder(self) -> Path:
        """The folder to which paths on the command line are relative."""
        return self.config.invocation_params.dir

    @property
    def output(self) -> Path:
        """The folder for all files of a run."""
        return self.sources.folder("output")

    @property
    def is_strict(self) -> bool:
        """True if a run without a verdict fails: as set, or by default on CI."""
        strict = self.value("strict")
        return bool(os.environ.get("CI")) if strict is None else bool(strict)

    @property
    def wait_s(self) -> float:
        """Longest time to wait for the machine: as set, or by default on CI."""
        return self.sources.wait_s(os.environ)

    @property
    def traces_limit_bytes(self) -> int:
        """Largest disk space of all runs' traces."""
        return int(self.value("traces_limit_mb") * 1_000_000)

    @property
    def watch_spec(self) -> WatchSpec:
        """The profilers that watch the measured processes in addition to the tracer."""
        from pytest_ldos.scenario.watching import WatchSpec

        return WatchSpec(
            profile=self.value("profile"),
            profiler=self.value("profiler"),
            rate_hz=self.value("profile_rate"),
            syscalls=self.value("syscalls"),
        )

    def describe_file(self) -> str:
        """A line on the settings file, and on the project's folder if it is another one."""
        file, folder = self.sources.file, self.folder
        if file is None:
            return f"ldos: no settings file above the tests; results are in {self.output}"
        shown = file.relative_to(folder) if file.is_relative_to(folder) else file
        return f"ldos: settings {shown}" + ("" if file.parent == self.root else f"; results are in {self.output}")

    @property
    def stores(self) -> BaselineStores:
        """The repository's and the machine's baselines."""
        from pytest_ldos.judge.baseline.store import BaselineStores

        return BaselineStores.of(self.sources)

    def short(self, path: Path) -> Path:
        """A path for display: relative to the project's folder if it is below it."""
        return path.relative_to(self.root) if path.is_relative_to(self.root) else path

    # --- scenarios --------------------------------------------------------------------

    def markers(self) -> Mapping[str, str]:
        """Names and descriptions of this session's markers."""
        described = {name: table.description for name, table in self.sources.toml.scenarios.items()}
        for name, spellings in combinations_in(self.config.getoption("markexpr"), described).items():
            described |= {each: "several at once" for each in (name, *spellings) if each not in described}
        return describe_marks(described)

    def scenario_names(self) -> list[str]:
        """Names of all known scenarios."""
        return self.sources.scenario_names()

    def scenario_of(self, item: pytest.Item, sources: Sources | None = None) -> ScenarioSpec:
        """The scenario of a test, by its marker.

        Args:
            sources: settings to read it from, instead of the session's.

        Raises:
            ConfigurationError: it has none, or one with unknown arguments.
        """
        name, arguments = scenario_arguments(item, self.scenario_names())
        return (sources or self.sources).scenario(name, arguments)
