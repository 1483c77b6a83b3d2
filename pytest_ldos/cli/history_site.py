"""``ldos history --site``: a folder of pages, of which only our own files are written or removed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import Rendered
from pytest_ldos.base.writable import require_writable_folder, write_atomically, writing
from pytest_ldos.host.checkout import read_subjects
from pytest_ldos.show.page.data_text import to_json
from pytest_ldos.show.page.formats import Format, require_format
from pytest_ldos.show.report.history.data import Shown
from pytest_ldos.show.report.history.origins import Origins

_MANIFEST: Final = "ldos-site.json"
_KIND: Final = "pytest-ldos history site"
_SCHEMA_VERSION: Final = 1
_OURS: Final = re.compile(r"[A-Za-z0-9-]+\.(?:html|svg|json)")
_ANOTHER: Final = "name another folder"


def require_site(folder: Path) -> None:
    """Refuses a folder that no site can be written to.

    Raises:
        NotWritten, ConfigurationError: it cannot be written, or it has a site's files that are not ours.
        Unavailable: a library is missing.
    """
    require_format(Format.HTML)
    require_writable_folder(folder, otherwise=_ANOTHER)
    _read_manifest(folder)


def write_site(folder: Path, shown: Shown, repository: str) -> Path:
    """Writes the site, and removes pages of an earlier one; returns its first page.

    Args:
        repository: address of the pages of the checkout here; where it is empty, as GitHub's variables name it.

    Raises:
        NotWritten, ConfigurationError: see `require_site`.
    """
    from pytest_ldos.show.report.history.site import INDEX, render_site  # noqa: PLC0415 - its library is optional

    files = render_site(shown, Origins(repository or _repository_here(), read_subjects(Path())))
    earlier = _read_manifest(folder)
    _refuse_foreign(folder, files, earlier)
    _write_manifest(folder, {*files, *earlier})
    for name, content in files.items():
        write_atomically(folder / name, content)
    for name in earlier - files.keys():
        with writing(folder / name):
            (folder / name).unlink(missing_ok=True)
    _write_manifest(folder, {*files})
    return folder / INDEX


def _repository_here() -> str:
    server, name = (os.environ.get(f"GITHUB_{each}", "") for each in ("SERVER_URL", "REPOSITORY"))
    return f"{server}/{name}" if server and name else ""


def _refuse_foreign(folder: Path, files: Mapping[str, Rendered], earlier: set[str]) -> None:
    foreign = sorted(name for name in files if name not in earlier and os.path.lexists(folder / name))
    if foreign:
        raise ConfigurationError(f"{folder / foreign[0]} is there and is no page of ours", remedy=_ANOTHER)


def _write_manifest(folder: Path, names: set[str]) -> None:
    document = {"kind": _KIND, "schema": _SCHEMA_VERSION, "files": sorted(names)}
    write_atomically(folder / _MANIFEST, to_json(document))


def _read_manifest(folder: Path) -> set[str]:
    """The files of ours in a folder; none where there is no site yet."""
    file = folder / _MANIFEST
    try:
        document = json.loads(file.read_text("utf-8"))
        names = {str(name) for name in document["files"]}
        known = (document["kind"], document["schema"]) == (_KIND, _SCHEMA_VERSION)
    except FileNotFoundError:
        return set()
    except (OSError, ValueError, KeyError, TypeError):
        known, names = False, set()
    if not known or not all(map(_OURS.fullmatch, names)):
        raise ConfigurationError(f"{file} does not list the files of a site", remedy=f"{_ANOTHER}, or remove this one")
    return names
