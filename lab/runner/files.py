"""Files that are read without trusting who put them there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from lab.runner.refusal import Refused, quoted

ROOT: Final = 0
_LARGEST_CONFIGURATION: Final = 64 * 1024
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


def read_configuration(path: Path, *, owner: int = ROOT) -> bytes:
    """A file that only `owner` can change: it and every folder above it are root's or the owner's.

    Raises:
        Refused: another user could have written it, or it cannot be read.
    """
    if not path.is_absolute():
        raise Refused(f"the allow-list {quoted(str(path))} is not named by an absolute path")
    content, facts = _read_regular(path, _LARGEST_CONFIGURATION, "the allow-list")
    _require_owned(path, facts, owner)
    for folder in path.parents:
        _require_owned(folder, os.lstat(folder), owner)
    return content


def _require_owned(path: Path, facts: os.stat_result, owner: int) -> None:
    """Refuses a file that others may write; a sticky folder is none: what they write in it replaces nothing."""
    if stat.S_ISLNK(facts.st_mode):
        raise Refused(f"{quoted(str(path))} is a symbolic link")
    is_sticky = stat.S_ISDIR(facts.st_mode) and bool(facts.st_mode & stat.S_ISVTX)
    if facts.st_uid not in {ROOT, owner}:
        raise Refused(f"{quoted(str(path))} belongs to user {facts.st_uid}, not to {owner}")
    if facts.st_mode & _WRITABLE_BY_OTHERS and not is_sticky:
        raise Refused(f"{quoted(str(path))} can be written by others than its owner")


def read_payload(path: Path, *, largest: int, owner: int) -> bytes:
    """The file of an event as the runner wrote it: its own, regular, by no other name, not too large.

    Raises:
        Refused: it is none of that.
    """
    content, facts = _read_regular(path, largest, "the event's payload")
    if facts.st_uid != owner:
        raise Refused(f"the event's payload belongs to user {facts.st_uid}, the runner is {owner}")
    if facts.st_mode & _WRITABLE_BY_OTHERS:
        raise Refused("the event's payload can be written by others than the runner: let it run with umask 022")
    if facts.st_nlink != 1:
        raise Refused("the event's payload has a second name (hard link)")
    return content


def _read_regular(path: Path, largest: int, what: str) -> tuple[bytes, os.stat_result]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Refused(f"{what} {quoted(str(path))} is a symbolic link") from None
        raise Refused(f"{what} {quoted(str(path))} cannot be opened: {error.strerror}") from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise Refused(f"{what} {quoted(str(path))} is no regular file")
        content = _read_most(descriptor, largest + 1)
    finally:
        os.close(descriptor)
    if len(content) > largest:
        raise Refused(f"{what} is larger than {largest} bytes")
    return content, facts


def _read_most(descriptor: int, size: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(size)
