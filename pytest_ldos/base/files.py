"""Files: JSON values to dataclasses with type checks, records of a kind and version, and writing.

All files are written inside `writing`. An invalid path is a user error (`ConfigurationError`); a full disk and the like
are faults of the machine (`NotWritten`).
"""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
import re
import tempfile
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, Final, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from pytest_ldos.base.errors import ConfigurationError, LdosError, NotWritten, RecordUnreadable
from pytest_ldos.base.text import format_bytes, one_line

_LARGEST: Final = 2**63

_LONGEST_SHOWN: Final = 60
_LFS_POINTER: Final = "version https://git-lfs.github.com/spec/"
_CONFLICT: Final = re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)

Reader = Callable[[Any, str], Any]
"""Reads a plain value; the second argument names it in errors."""


def field_types(kind: Any) -> Mapping[str, Any]:
    return _field_types(kind)


@cache
def _field_types(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


Made = TypeVar("Made")


def copied(kind: type[Made], *sources: object, **own: Any) -> Made:
    """A dataclass with its `own` fields; the others are those of the same name of the first source that has them."""
    given = [{name: getattr(each, name) for name in field_types(kind) if hasattr(each, name)} for each in sources]
    return kind(**ChainMap(own, *given))


def left_by_git(text: str) -> tuple[str, str] | None:
    """Git's substitute for a file's content, with a remedy; ``None`` for ordinary content."""
    if text.startswith(_LFS_POINTER):
        return "is a Git LFS pointer: its content was not fetched", "git lfs pull (lfs: true of actions/checkout)"
    conflict = _CONFLICT.search(text)
    if conflict is None:
        return None
    line = text.count("\n", 0, conflict.start()) + 1
    return f"has an unresolved merge conflict (line {line})", "take one side: git checkout --ours or --theirs FILE"


@dataclasses.dataclass(frozen=True)
class PlainReader:
    """Reads dataclasses and nested values.

    Objects are read as dataclasses or mappings, lists as tuples, and strings as members of enumerations. Floats must be
    finite, integers must fit in 64 bits, and booleans are no numbers.

    Attributes:
        by_type: readers by type; those of other types are added on first use.
        is_whole: True if objects must have every field; otherwise fields with a default are optional.
        most_items: largest length of a list.
    """

    by_type: dict[Any, Reader] = dataclasses.field(default_factory=dict)
    is_whole: bool = False
    most_items: float = math.inf

    def read(self, hint: Any, value: Any, what: str) -> Any:
        """Reads a value of a type; `what` is its name in errors.

        Raises `ValueError`, which names the first value of a wrong type, or `TypeError` for a missing or unknown field.
        """
        return self.reader_of(hint)(value, what)

    def reader_of(self, hint: Any) -> Reader:
        if hint not in self.by_type:
            self.by_type[hint] = self._new_reader(hint)
        return self.by_type[hint]

    def _new_reader(self, hint: Any) -> Reader:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            readers = tuple(self.reader_of(each) for each in arguments if each is not type(None))
            return partial(_read_one_of, readers, type(None) in arguments)
        if origin is tuple:
            return partial(self._read_items, self.reader_of(arguments[0]))
        if origin is Mapping:
            return partial(_read_mapping, self.reader_of(arguments[0]), self.reader_of(arguments[1]))
        if dataclasses.is_dataclass(hint):
            types = field_types(hint).items()
            return partial(self._read_object, hint, {name: self.reader_of(each) for name, each in types})
        return partial(_read_word if issubclass(hint, StrEnum) else _read_leaf, hint)

    def _read_items(self, read: Reader, value: Any, what: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{what} is no list")
        if len(value) > self.most_items:
            raise ValueError(f"{what} has more than {self.most_items} items")
        return tuple(read(each, f"{what}[{number}]") for number, each in enumerate(value))

    def _read_object(self, kind: Any, readers: Mapping[str, Reader], value: Any, what: str) -> Any:
        if not isinstance(value, dict) or (self.is_whole and value.keys() != readers.keys()):
            raise ValueError(f"{what or 'it'} has not exactly the fields of a {kind.__name__}")
        place = f"{what}." if what else ""
        known = {name: readers[name](value[name], place + name) for name in value if name in readers}
        return kind(**{**value, **known})


read_plain: Final = PlainReader().read


def _read_one_of(readers: tuple[Reader, ...], is_optional: bool, value: Any, what: str) -> Any:
    """Reads a union of types; reports the last type's error."""
    if is_optional and value is None:
        return None
    for read in readers[:-1]:
        with suppress(ValueError):
            return read(value, what)
    return readers[-1](value, what)


def _read_mapping(read_name: Reader, read: Reader, value: Any, what: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        _refuse(value, what)
    return {read_name(name, f"a name in {what}"): read(each, f"{what}[{_shown(name)}]") for name, each in value.items()}


def _read_word(kind: type[StrEnum], value: Any, what: str) -> StrEnum:
    if not isinstance(value, str) or value not in {each.value for each in kind}:
        raise ValueError(f"{what} is no {kind.__name__}")
    return kind(value)


def _read_leaf(hint: Any, value: Any, what: str) -> Any:
    if hint is float:
        is_plain = _is_whole(value) or (isinstance(value, float) and math.isfinite(value))
    else:
        is_plain = _is_whole(value) if hint is int else isinstance(value, hint)
    return value if is_plain else _refuse(value, what)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST


def _refuse(value: object, what: str) -> NoReturn:
    raise ValueError(f"{what} is {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, int) and not _is_whole(value) and not isinstance(value, bool):
        return "a number of more than 64 bits"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_DAMAGE: Final = (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError, ConfigurationError)
"""Exceptions raised by damaged documents."""


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """JSON files of one kind and version; those of another are refused."""

    kind: str
    schema: int
    # remedy, again, instead: for a damaged file, for one of another version, and for other kinds, by kind
    remedy: str
    again: str
    instead: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def encode(self, values: Mapping[str, Any], *, default: Callable[[Any], Any] | None = None) -> str:
        """JSON text; numbers keep their full precision."""
        document = {"kind": self.kind, "schema": self.schema, **values}
        return json.dumps(document, indent=1, allow_nan=False, default=default) + "\n"

    def decode(self, text: str, path: Path, read: Callable[[dict[str, Any]], Made]) -> Made:
        """Reads the fields of a file; `path` is named in errors.

        Raises `RecordUnreadable` if it is no JSON, of another kind or version, or `read` found it damaged.
        """
        try:
            document = _parse_json(text)
        except (ValueError, RecursionError) as error:
            if (left := left_by_git(text)) is not None:
                raise RecordUnreadable(f"{path} {left[0]}", remedy=left[1]) from None
            raise RecordUnreadable(f"{path} is no JSON: {error}", remedy=self.remedy) from None
        values = document if isinstance(document, dict) else {}
        if (kind := values.pop("kind", None)) != self.kind:
            if remedy := self.instead.get(str(kind)):
                raise RecordUnreadable(f"{path} is a {kind}, and holds no {self.kind}", remedy=remedy)
            raise RecordUnreadable(f"{path} holds no {self.kind}", remedy=self.remedy)
        if (found := values.pop("schema", None)) != self.schema:
            raise RecordUnreadable(
                f"{path} has schema version {found}, this version of pytest-ldos reads {self.schema}", remedy=self.again
            )
        try:
            return read(values)
        except _DAMAGE as error:
            raise RecordUnreadable(f"{path} is damaged ({type(error).__name__}: {error})", remedy=self.remedy) from None


def _parse_json(text: str) -> Any:
    """Parses JSON; an unpaired surrogate, which cannot be encoded, is replaced by ``?``."""
    document = json.loads(text.removeprefix("\ufeff"))
    if _SURROGATE.search(text) is None:
        return document
    return json.loads(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))


ANOTHER: Final = "name another place"
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_REMEDIES: Final = {
    errno.EROFS: f"it is on a file system that is only read: {ANOTHER}, or have it mounted for writing",
    errno.EACCES: f"{ANOTHER}, where you may write",
    errno.EPERM: f"{ANOTHER}, where you may write",
    errno.EIO: f"its disk reports errors: {ANOTHER}, and look at the kernel's log",
    errno.EFBIG: f"raise the largest size of a file (ulimit -f), or {ANOTHER}",
}


@contextmanager
def writing(place: Path, *, needs: int = 0, otherwise: str = ANOTHER) -> Iterator[None]:
    """Converts errors of writing: `NotWritten` for a full or failing disk or no permission, else `ConfigurationError`.

    `needs` is the number of bytes, if known; `otherwise` an option with which the user can choose another place.
    """
    try:
        yield
    except OSError as error:
        raise unwritable(place, error, needs=needs, otherwise=otherwise) from None


def write_atomically(path: Path, content: str | bytes, *, otherwise: str = ANOTHER, mode: int = 0o644) -> None:
    """Writes a file atomically: a reader sees the old or the new content. For errors see `writing`."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with writing(path, needs=len(data), otherwise=otherwise):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def opened_log(log: Path) -> BinaryIO:
    """Opens another program's log for appending; for errors see `writing`."""
    with writing(log):
        return log.open("ab")


def unwritable(place: Path, error: OSError, *, needs: int = 0, otherwise: str = ANOTHER) -> LdosError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    message = f"{place} cannot be written: {one_line(reason)}"
    if error.errno in _FULL:
        return NotWritten(message, remedy=f"{_make_room(place, needs)}, or {otherwise}")
    if error.errno in _REMEDIES:
        return NotWritten(message, remedy=_REMEDIES[error.errno])
    return ConfigurationError(message, remedy=otherwise)


def _make_room(place: Path, needs: int) -> str:
    there = next(each for each in (place.absolute(), *place.absolute().parents) if each.exists())
    disk = next(each for each in (there, *there.parents) if each.is_mount())
    found = os.statvfs(disk)
    if found.f_files and not found.f_favail:
        return f"make room on {disk}, which can hold no more files"
    needed = f"{format_bytes(needs)} are needed and " if needs else ""
    return f"make room on {disk}: {needed}{format_bytes(found.f_bavail * found.f_frsize)} are free"


def require_writable_file(file: Path) -> None:
    """Creates a result file's folder, without changing the file; raises as `writing`, also if it is no regular file."""
    with writing(file):
        if file.is_dir():
            raise ConfigurationError(f"{file} cannot be written: it is a folder", remedy="name a file in it")
        if file.exists() and not file.is_file():
            raise ConfigurationError(f"{file} cannot be written: it is a pipe or a device", remedy=ANOTHER)
        _try_folder(file.parent)


def require_writable_folder(folder: Path, *, otherwise: str = ANOTHER) -> None:
    """Creates a folder for result files; for errors see `writing`."""
    with writing(folder, otherwise=otherwise):
        _try_folder(folder)


def _try_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"room")  # a full disk still accepts empty files
        file.flush()


def find_carried(folder: str) -> Path:
    package = Path(__file__).parents[1]
    found = next((each for each in (package / folder, package.parent / folder) if each.is_dir()), None)
    if found is None:
        raise ConfigurationError(f"{folder} of pytest-ldos is missing", remedy="install pytest-ldos again")
    return found
