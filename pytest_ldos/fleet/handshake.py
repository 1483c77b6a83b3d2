"""Checks, before any work is submitted, that the workers are able to do it."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import one_line
from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.request import Request
from pytest_ldos.trace.ctf.remote import address_of

if TYPE_CHECKING:
    from distributed import Client

_PACKAGE: Final = "pytest-ldos"

Description = tuple[str, str, list[str]]
"""Version of this package (empty if not installed), host name, and the paths that do not exist there."""


def require_able_workers(client: Client, address: str, paths: Sequence[str], *, limit_s: float) -> None:
    """Requires that all workers have this version of the package and see some paths.

    Raises:
        Unavailable: there is no worker, or one that is not able; each fault is named once.
    """
    try:
        client.wait_for_workers(1, timeout=limit_s)
    except TimeoutError:
        raise Unavailable(
            f"the scheduler at {address} has no worker",
            remedy=f"start some where the traces are: dask worker {address}",
        ) from None
    _require_python(client, address)
    faults = dict.fromkeys(_faults(client.run(_question(), list(paths), on_error="return")))
    if faults:
        raise Unavailable(
            f"workers at {address} cannot do this: {'; '.join(map(one_line, faults))}",
            remedy=f"give them {_PACKAGE} {_own_version()} and storage that all machines share, "
            "or use --scheduler local",
        )


def _require_python(client: Client, address: str) -> None:
    """Requires the same Python version: functions are sent as byte code, which other versions cannot run."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {each["host"]["python"] for each in client.get_versions()["workers"].values()}
    others = sorted(version for version in found if version.split(".")[:2] != ours.split("."))
    if others:
        raise Unavailable(
            f"workers at {address} run Python {', '.join(map(one_line, others))}, this is Python {ours}",
            remedy="start them with the same version of Python",
        )


def paths_of(traces: Sequence[Found], request: Request) -> list[str]:
    """Paths that workers must see. One trace is enough: without shared storage a worker sees none of them."""
    file = request.own.file if request.own is not None else None
    own = [] if file is None else [str(file)]
    return [*(str(each.path) for each in traces[:1] if address_of(each.path) is None), *own]


def _question() -> Callable[[list[str]], Description]:
    """A function that is serialized by value, because a worker may lack this module or have another version of it."""

    def describe(paths: list[str]) -> Description:
        import importlib.metadata
        import socket
        from pathlib import Path

        try:
            version = importlib.metadata.version("pytest-ldos")
        except importlib.metadata.PackageNotFoundError:
            version = ""
        return version, socket.gethostname(), [path for path in paths if not Path(path).exists()]

    return describe


def _faults(answers: dict[str, Description | Exception]) -> Iterator[str]:
    ours = _own_version()
    for worker, answer in sorted(answers.items()):
        if isinstance(answer, Exception):
            yield f"{worker} answers {type(answer).__name__}: {answer}"
            continue
        version, host, unseen = answer
        if version != ours:
            yield f"{host} has {f'{_PACKAGE} {version}' if version else f'no {_PACKAGE}'}, this is {ours}"
        yield from (f"{host} does not see {path}" for path in unseen)


def _own_version() -> str:
    return importlib.metadata.version(_PACKAGE)
