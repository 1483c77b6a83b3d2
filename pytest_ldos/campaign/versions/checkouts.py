"""Prepares a checkout of a revision: a git worktree in which some commands were run, kept for later runs.

``.ldos/bases/COMMIT-RECIPE/`` holds ``checkout/``, ``setup.log``, and a note once it is complete.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import PreparationFailed
from pytest_ldos.campaign.versions.kept import CHECKOUT, Announce, digest_of, kept, read_note, write_note
from pytest_ldos.campaign.versions.steps import Step, every_s, run_step
from pytest_ldos.campaign.versions.version import Revision
from pytest_ldos.host.checkout import OF_ANOTHER_CHECKOUT
from pytest_ldos.host.logs import last_lines

_WORD_EVERY_S: Final = 20.0
_NOT_PASSED_ON: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", *OF_ANOTHER_CHECKOUT)
_NO_HOOKS: Final = ("-c", "core.hooksPath=/dev/null")
_REMEDY: Final = 'say how its environment is made: [tool.ldos.base] setup = ["…"], or name a folder that has one'


@dataclass(frozen=True)
class Checkout:
    """Paths of a revision's checkout.

    Attributes:
        name: of the version, for messages.
        lock: descriptor of its lock, while it is locked.
    """

    folder: Path
    revision: Revision
    name: str
    lock: int = -1

    @property
    def top(self) -> Path:
        return self.folder / CHECKOUT

    @property
    def project(self) -> Path:
        return self.top / self.revision.project

    @property
    def log(self) -> Path:
        return self.folder / "setup.log"

    def failed(self, reason: str, *, details: str = "") -> PreparationFailed:
        """The fault of a revision that could not be set up."""
        return PreparationFailed(
            f"{self.name} cannot be built: {reason}",
            details=details,
            remedy=f"see {self.log}; {_REMEDY}",
        )


@dataclass(frozen=True)
class Recipe:
    """The way to set up a checkout.

    Attributes:
        made_from: everything that the result depends on, except the revision.
        commands: of a checkout, run one after another in its project's folder.
        makes: file below the project's folder without which it is not complete; empty for none.
        is_quick: true if the commands take no time worth a warning.
    """

    made_from: Mapping[str, object]
    commands: Callable[[Checkout], Sequence[Sequence[str]]]
    makes: str = ""
    is_quick: bool = False

    def is_followed(self, checkout: Checkout) -> bool:
        """True for a checkout that was set up in this way and is complete."""
        return read_note(checkout.folder) == self.made_from and self.is_complete(checkout)

    def is_complete(self, checkout: Checkout) -> bool:
        return not self.makes or (checkout.project / self.makes).is_file()


@contextmanager
def checked_out(
    revision: Revision, recipe: Recipe, *, name: str, store: Path, announce: Announce
) -> Iterator[Checkout]:
    """Yields a checkout of the revision, which is made unless it exists; locked against other runs.

    Args:
        name: of the version, for messages.
        store: folder in which checkouts are kept.
        announce: called with progress messages.

    Raises:
        PreparationFailed: contains the last lines of the log.
    """
    folder = store.resolve() / f"{revision.commit}-{digest_of(recipe.made_from)}"
    checkout = Checkout(folder, revision, name)
    with kept(
        folder,
        name,
        checkout=revision.checkout,
        announce=announce,
        is_whole=lambda: recipe.is_followed(checkout),
        make=lambda lock: _make(replace(checkout, lock=lock), recipe, announce),
    ) as lock:
        yield replace(checkout, lock=lock)


def _make(checkout: Checkout, recipe: Recipe, announce: Announce) -> None:
    revision, folder = checkout.revision, checkout.folder
    warning = "" if recipe.is_quick else f": the first time takes minutes; log: {checkout.log}"
    announce(f"preparing {checkout.name}{warning}")
    top = str(revision.checkout)
    add = ["git", "-C", top, *_NO_HOOKS, "worktree", "add", "--force", "--detach", str(checkout.top), revision.commit]
    _run(add, checkout, announce, folder=folder)
    if not checkout.project.is_dir():
        raise PreparationFailed(
            f"{checkout.name} cannot be built: it has no folder {revision.project}, in which the project lies here",
            remedy="name a revision that has it, or compare with a stored baseline",
        )
    for command in recipe.commands(checkout):
        _run(command, checkout, announce, folder=checkout.project)
    if not recipe.is_complete(checkout):
        raise checkout.failed(f"setup made no {recipe.makes}")
    write_note(folder, recipe.made_from)


def _run(command: Sequence[str], checkout: Checkout, announce: Announce, *, folder: Path) -> None:
    """Runs a command to its end.

    Raises:
        PreparationFailed: its status is not 0, or it could not be started.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    step = Step(command=command, folder=folder, log=checkout.log, environment=environment, holds=(checkout.lock,))
    describe = every_s(_WORD_EVERY_S, f"preparing {checkout.name}")
    code = run_step(step, describe=describe, announce=announce)
    if code != 0:
        reason = f"`{shlex.join(command)}` ended with exit code {code}"
        raise checkout.failed(reason, details=last_lines(checkout.log))
