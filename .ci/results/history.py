"""The history of all machines, kept on a branch of its own: one commit without a past, so that it stays small.

Reading and writing belong together: what is written says which commit it was made from, and nothing is written over
another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from branches import head_of, move, read_files, write_commit, write_tree
from folders import read_folder
from github_api import COMMIT, Api, Failed

BRANCH: Final = "ldos-history"
MADE_FROM: Final = "made-from"
ROWS: Final = "rows"
_NAME: Final = r"[A-Za-z0-9_+-][A-Za-z0-9_.+-]{0,199}"
FILE: Final = re.compile(rf"{_NAME}/{_NAME}/{_NAME}/(?:[A-Za-z0-9_-]{{1,150}}\.parquet|pin\.json)")
"""``<stack>/<host class>/<scenario>/<runs>.parquet``, and ``pin.json`` next to it."""

_MAGIC: Final = b"PAR1"
LARGEST: Final = 64 * 1024 * 1024
"""Bytes of all files."""

_MOST: Final = 1000


def fetch(api: Api, folder: Path) -> str:
    """Writes the history as it is into a new folder; says what there is."""
    start = head_of(api, BRANCH)
    files = read_files(api, start, FILE) if start else {}
    folder.mkdir()
    (folder / ROWS).mkdir()
    (folder / MADE_FROM).write_text(f"{start}\n", "ascii")
    for path, content in files.items():
        file = folder / ROWS / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return f"{len(files)} files of {start or 'no history yet'}"


def keep(api: Api, folder: Path) -> str:
    """Puts the history that a job without rights has checked in the place of the one it was made from.

    Raises:
        Failed: the folder holds anything else, another one was kept meanwhile, or GitHub refuses.
    """
    start = _read_start(folder / MADE_FROM)
    files = read_folder(folder / ROWS, FILE, most=_MOST, largest=LARGEST)
    _require_parquet(files)
    there = head_of(api, BRANCH)
    if there != start:
        raise Failed(f"{BRANCH} is at {there or 'nothing'} now, not at {start or 'nothing'}: run this workflow again")
    made = write_commit(api, write_tree(api, files), "History of all machines", parents=())
    move(api, BRANCH, made, is_new=not there, forced=True)
    return f"{BRANCH} has {len(files)} files of {sum(map(len, files.values()))} bytes"


def _read_start(file: Path) -> str:
    try:
        text = file.read_bytes()[:64].decode("ascii").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"{file} cannot be read: {type(error).__name__}") from None
    if text and COMMIT.fullmatch(text) is None:
        raise Failed(f"{file} names no commit")
    return text


def _require_parquet(files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        if path.endswith(".parquet") and not (content.startswith(_MAGIC) and content.endswith(_MAGIC)):
            raise Failed(f"{path} is no Parquet")
