"""Steps of workflows as a runner sees them: what each runs, by which shell, in which environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_EXPRESSION: Final = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@dataclass(frozen=True)
class Step:
    """One ``run:``.

    Attributes:
        where: file and name of the step.
        shell: ``bash``, the default, or ``sh``.
        environment: of workflow, job and step, with expressions as they are written.
    """

    where: tuple[str, str]
    run: str
    shell: str
    environment: Mapping[str, str]

    def fill(self, values: Mapping[str, str]) -> dict[str, str]:
        """The environment with its expressions' values.

        Raises:
            KeyError: there is none for one of them.
        """
        return {
            name: _EXPRESSION.sub(lambda match: values[match.group(1)], text) for name, text in self.environment.items()
        }


def steps_of_action(path: str, action: Mapping[str, Any]) -> Iterator[Step]:
    """Every step of a composite action that runs something."""
    for step in action["runs"]["steps"]:
        if "run" in step:
            environment = {name: str(value) for name, value in step.get("env", {}).items()}
            yield Step((path, step["name"]), step["run"], step["shell"], environment)


def steps_of(workflows: Mapping[str, Mapping[str, Any]]) -> Iterator[Step]:
    """Every step that runs something."""
    for path, workflow in workflows.items():
        for job in workflow["jobs"].values():
            shells = [each.get("defaults", {}).get("run", {}).get("shell") for each in (job, workflow)]
            for step in job.get("steps", ()):
                if "run" in step:
                    outer = {**workflow.get("env", {}), **job.get("env", {}), **step.get("env", {})}
                    environment = {name: str(value) for name, value in outer.items()}
                    shell = next((each for each in (step.get("shell"), *shells) if each), "bash")
                    yield Step((path.rpartition("/")[2], step["name"]), step["run"], shell, environment)
