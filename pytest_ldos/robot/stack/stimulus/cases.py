"""Cases of stimuli other than an arm's: messages from a YAML file, or a single one without.

.. code-block:: yaml

    goal_sets:
      corners:
        - name: near
          message: {pose: {header: {frame_id: map}, pose: {position: {x: 1.0}, orientation: {w: 1.0}}}}
    reset: {pose: {header: {frame_id: map}, pose: {orientation: {w: 1.0}}}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import refuse_unknown
from pytest_ldos.robot.stack.goal_file import as_table, load_goal_file
from pytest_ldos.scenario.model import ScenarioSpec


@dataclass(frozen=True)
class MessageCase:
    """See `Case`.

    Attributes:
        message: fields of a goal or a request, by name; those that are left out keep their defaults.
    """

    name: str
    message: Mapping[str, Any] | None = None


_UNNAMED: Final = ScenarioSpec(name="default").goals
"""Name of the set that a scenario asks for if it names none."""


@dataclass(frozen=True)
class CaseBook:
    """Sets of cases by name.

    Attributes:
        reset: message of the goal that is sent after each trial; ``None`` for none.
    """

    sets: Mapping[str, Sequence[MessageCase]]
    reset: Mapping[str, Any] | None = None

    def cases(self, name: str | None = None) -> Sequence[MessageCase]:
        """Returns a set; the only one there is if no scenario names another.

        Raises:
            ConfigurationError: there is no set of that name.
        """
        if name is None or (name == _UNNAMED and name not in self.sets and len(self.sets) == 1):
            return next(iter(self.sets.values()))
        if name not in self.sets:
            raise ConfigurationError(f"there is no goal set '{name}'", remedy=f"known are: {', '.join(self.sets)}")
        return self.sets[name]

    @property
    def all_messages(self) -> Mapping[str, Mapping[str, Any]]:
        """Every message, by where it stands in the file."""
        found = {
            f"goal set '{set_name}', goal '{case.name}'": case.message or {}
            for set_name, cases in self.sets.items()
            for case in cases
        }
        return found if self.reset is None else {**found, "reset": self.reset}


def single_case(name: str) -> CaseBook:
    """A book of one case without a message."""
    return CaseBook({name: (MessageCase(name),)})


def read_cases(file: Path) -> CaseBook:
    """Reads sets of messages from a YAML file; whether a type has such fields is not known here.

    Raises:
        ConfigurationError: it cannot be read, is no YAML, or a key in it is wrong; names the place.
    """
    table = as_table(load_goal_file(file), f"{file}")
    refuse_unknown(table, {"goal_sets", "reset"}, f"key of {file}")
    sets = as_table(table.get("goal_sets"), f"{file}: goal_sets")
    if not sets:
        raise ConfigurationError(f"{file} has no goal set", remedy="name one below goal_sets, as in `corners:`")
    reset = table.get("reset")
    return CaseBook(
        {str(name): _parse_set(cases, f"{file}: goal set {name!r}") for name, cases in sets.items()},
        None if reset is None else as_table(reset, f"{file}: reset"),
    )


def _parse_set(cases: Any, where: str) -> tuple[MessageCase, ...]:
    if not isinstance(cases, list) or not cases:
        raise ConfigurationError(f"{where} is no list of goals", remedy="begin each goal with a dash")
    return tuple(_parse_case(as_table(case, where), where) for case in cases)


def _parse_case(table: Mapping[str, Any], where: str) -> MessageCase:
    refuse_unknown(table, {"name", "message"}, f"key in {where}:")
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{where} has a goal without a name", remedy="name: near")
    return MessageCase(name, as_table(table.get("message", {}), f"{where}, goal {name!r}, message"))
