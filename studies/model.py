"""A study: its question, its runs, and published figures with the place of ours in the recorded results."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

ROOT: Final = Path(__file__).parent
NAMES: Final = tuple(sorted(each.parent.name for each in ROOT.glob("*/study.toml")))

Outcome = Literal["reproduced", "differs", "not measured", "not published"]


@dataclass(frozen=True)
class Value:
    """A number of ours, with its 95 % interval where the results have one."""

    number: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Run:
    """A command of a study, of ``ldos`` or ``pytest``."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Results:
    """Recorded results of a run: machine, date, and tables by name."""

    machine: str
    started_at: str
    versions: Mapping[str, str]
    notes: tuple[str, ...]
    tables: Mapping[str, list[dict[str, Any]]]

    def cell(self, place: Mapping[str, Any]) -> Value:
        """The value of a column in the only row with the given cells; a `KeyError` or `ValueError` if there is none."""
        wanted = place["row"].items()
        (row,) = (row for row in self.tables[place["table"]] if all(row[key] == cell for key, cell in wanted))
        ends = (place.get("low"), place.get("high"))
        return Value(row[place["column"]], *(None if end is None else row[end] for end in ends))


@dataclass(frozen=True)
class Figure:
    """A published figure, and ours.

    Attributes:
        published: as it was published.
        low, high: its range; both are the figure if it has none, and ``None`` if it is not a number.
        ours: ``None`` if it was not measured.
        note: why ours differs, or cannot be measured here.
    """

    what: str
    unit: str
    published: str
    low: float | None
    high: float | None
    ours: Value | None
    note: str

    @property
    def outcome(self) -> Outcome:
        """``reproduced`` if our value, or any value of its interval, is within the published range."""
        if self.ours is None:
            return "not measured"
        if self.low is None or self.high is None:
            return "not published"
        low = self.ours.number if self.ours.low is None else self.ours.low
        high = self.ours.number if self.ours.high is None else self.ours.high
        return "reproduced" if low <= self.high and high >= self.low else "differs"


@dataclass(frozen=True)
class Study:
    name: str
    settings: Mapping[str, Any]

    @property
    def title(self) -> str:
        return str(self.settings["title"])

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(Run(each["name"], tuple(each["command"])) for each in self.settings["run"])

    @cached_property
    def results(self) -> dict[str, Results]:
        """Recorded results, by the name of their run."""
        found = {}
        for run in self.runs:
            file = self.file(run.name)
            if file.is_file():
                data = json.loads(file.read_text("utf-8"))
                found[run.name] = Results(**{**data, "notes": tuple(data["notes"])})
        return found

    def file(self, run: str) -> Path:
        return ROOT / self.name / "results" / f"{run}.json"

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(self._figure(each) for each in self.settings["figure"])

    def _figure(self, given: Mapping[str, Any]) -> Figure:
        number = given.get("number")
        return Figure(
            what=given["what"],
            unit=given.get("unit", ""),
            published=given["published"],
            low=given.get("low", number),
            high=given.get("high", number),
            ours=self._ours(given),
            note=given.get("note", ""),
        )

    def _ours(self, given: Mapping[str, Any]) -> Value | None:
        """Our value: a cell of a run's table, or its ratio to another cell."""
        place = given.get("ours")
        if place is None or place["run"] not in self.results:
            return None
        value = self.results[place["run"]].cell(place)
        if (over := given.get("over")) is None:
            return value
        other = self.results[over["run"]].cell(over)
        return Value(value.number / other.number)


def read_study(name: str) -> Study:
    return Study(name, tomllib.loads((ROOT / name / "study.toml").read_text("utf-8")))
