"""Git queries of a folder, digests of folders, and files installed by the distribution's packages."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from pytest_ldos.base.files import write_atomically

ABBREVIATION: Final = 12  # number of characters of an abbreviated commit
CHANGED: Final = "+"  # suffix of a commit whose checkout has uncommitted changes
UNSHALLOW: Final = "git fetch --unshallow (fetch-depth: 0 of actions/checkout)"  # remedy for a shallow clone

OF_ANOTHER_CHECKOUT: Final = (
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_WORK_TREE",
)
"""Environment variables of git hooks that redirect git to another repository."""


_DESCRIBE: Final = ("describe", "--always", f"--dirty={CHANGED}", f"--abbrev={ABBREVIATION}", "--exclude=*")
_FATAL: Final = "fatal: "
_SAYS_NOTHING: Final = "Needed a single revision"  # git's message for a revision that it cannot resolve


class GitWords(NamedTuple):
    """Git's error message and its proposed fix; each may be empty."""

    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return " → ".join(filter(None, self))


def is_changed(commit: str) -> bool:
    return commit.endswith(CHANGED)


def describe_commit(folder: Path) -> str:
    """The checkout's commit, with `CHANGED` if it has uncommitted changes; empty outside of git."""
    return ask_git(folder, *_DESCRIBE) or ""


def commit_of(folder: Path) -> tuple[str, str]:
    """The checkout's commit (see `describe_commit`), or git's reason why there is none; the other one is empty."""
    commit = describe_commit(folder)
    return commit, "" if commit else str(why_no_commit(folder) or "")


def abbreviate(commit: str, folder: Path) -> str:
    return ask_git(folder, "rev-parse", f"--short={ABBREVIATION}", commit) or commit


def top_of_checkout(folder: Path) -> Path | None:
    """The top-level folder of the checkout; ``None`` outside of git."""
    top = ask_git(folder, "rev-parse", "--show-toplevel")
    return Path(top) if top else None


def read_subjects(folder: Path) -> dict[str, str]:
    """Subjects of the checkout's commits, by abbreviated commit; empty outside of git."""
    lines = (ask_git(folder, "log", "--no-show-signature", "--format=%H %s") or "").split("\n")
    return {commit[:ABBREVIATION]: subject for commit, _, subject in (line.partition(" ") for line in lines) if commit}


def read_changes(folder: Path, base: str, head: str) -> dict[str, str]:
    """Lines added and removed between two versions, as in ``+5 -2``, by file; empty if git does not know both."""
    if not (base and head) or is_changed(base):
        return {}
    commits = [base] if is_changed(head) else [base, head]
    stat = ask_git(folder, "diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", *commits, "--") or ""
    rows = (row.split("\t", 2) for row in stat.split("\0") if row.count("\t") > 1)
    return {file: "binary" if added == "-" else f"+{added} -{removed}" for added, removed, file in rows}


def why_no_commit(folder: Path) -> GitWords | None:
    """Git's reason why `describe_commit` finds no commit; ``None`` if it finds one."""
    described = _run(folder, *_DESCRIBE)
    if not isinstance(described, GitWords):
        return None
    asked = _run(folder, "log", "--max-count=1", "--format=%H")  # has a better message if there is no commit yet
    return asked if isinstance(asked, GitWords) else described


def is_shallow(folder: Path) -> bool:
    return ask_git(folder, "rev-parse", "--is-shallow-repository") == "true"


def why_unknown(revision: str, folder: Path) -> GitWords:
    """Git's reason why it cannot resolve a revision; empty if there is just no such name."""
    refused = why_no_commit(folder)
    if refused is not None:
        return refused
    if is_shallow(folder):
        return GitWords("this clone is shallow, and has no older commits", UNSHALLOW)
    asked = _run(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    return asked if isinstance(asked, GitWords) and asked.reason != _SAYS_NOTHING else GitWords("")


def ask_git(folder: Path, *arguments: str) -> str | None:
    """Git's output in a folder; ``None`` if it fails or is not installed (`why_no_commit` has the reason)."""
    answer = _run(folder, *arguments)
    return None if isinstance(answer, GitWords) else answer


def _run(folder: Path, *arguments: str) -> str | GitWords:
    """Git's output, or its error message, in English so that messages can be recognised."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_CHECKOUT}
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, env={**environment, "LC_ALL": "C"}, capture_output=True, check=False)
    except OSError as error:
        is_absent = isinstance(error, FileNotFoundError)
        return GitWords("git is not installed" if is_absent else f"git cannot be run: {error}", "install git")
    if done.returncode == 0:
        return os.fsdecode(done.stdout).strip()
    lines = [line.strip() for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    fatal = next((index for index, line in enumerate(lines) if line.startswith(_FATAL)), 0)
    reason, *cure = lines[fatal:] or [""]
    return GitWords(reason.removeprefix(_FATAL), " ".join(cure))


_RECENT_NS: Final = 2_000_000_000  # age below which a file may change again without a new time stamp
_LEFT_OUT: Final = frozenset({".git", "__pycache__"})

Skip = Callable[[str, bool], bool]  # predicate: True for an excluded path; the second argument is true for a folder


class FileDigests:
    """Digests of files, cached in a file by path, size, inode and time stamps; an unreadable cache is ignored."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._known: dict[str, list[object]] = {}
        with suppress(OSError, ValueError):
            found = json.loads(cache.read_text("utf-8"))
            self._known = found if isinstance(found, dict) else {}
        self._used: dict[str, list[object]] = {}

    def of_folder(self, folder: Path, *, skip: Skip | None = None) -> str:
        """Digest of all names, modes, link targets and contents below a folder; follows links.

        Version control and compiled Python files are left out. Raises `OSError` if a file cannot be read.
        """
        total = hashlib.sha256()
        for entry in _entries(str(folder), skip or (lambda _path, _is_folder: False), set()):
            described = f"link {Path(entry.path).readlink()} " if entry.is_symlink() else ""
            if entry.is_file():
                found = entry.stat()
                described += f"{'x' if found.st_mode & 0o100 else '-'} {self._of_file(entry.path, found)}"
            total.update(f"{os.path.relpath(entry.path, folder)}\0{described}\0".encode("utf-8", "surrogateescape"))
        return total.hexdigest()

    def save(self) -> None:
        """Saves the used digests; for errors see `writing`."""
        write_atomically(self._cache, json.dumps(self._used))

    def _of_file(self, path: str, found: os.stat_result) -> str:
        state: list[object] = [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]
        known = self._known.get(path)
        if known is not None and known[:-1] == state:
            self._used[path] = known
            return str(known[-1])
        with Path(path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > _RECENT_NS:
            self._used[path] = [*state, digest]
        return digest


def _entries(folder: str, skip: Skip, seen: set[tuple[int, int]]) -> Iterator[os.DirEntry[str]]:
    """Files and links below a folder, sorted by name. Strings, because a distribution has 10⁵ files.

    `seen` holds devices and inodes of visited folders, because links may form cycles.
    """
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        is_folder = entry.is_dir()
        if entry.name in _LEFT_OUT or entry.name.endswith(".pyc") or skip(entry.path, is_folder):
            continue
        if not is_folder or entry.is_symlink():
            yield entry
        identity = (entry.stat().st_dev, entry.stat().st_ino) if is_folder else None
        if identity is not None and identity not in seen:
            seen.add(identity)
            yield from _entries(entry.path, skip, seen)


_GLOB: Final = re.compile(r"([][*?\\])")
_FORMAT: Final = "${binary:Package}\t${Version}\n"


@dataclass(frozen=True)
class Packaged:
    """Part of a folder that was installed by packages: their versions by name, and their files."""

    versions: Mapping[str, str] = field(default_factory=dict)
    files: frozenset[str] = frozenset()


def find_packaged(folder: Path) -> Packaged:
    """Finds the packages that own files below a folder; none without dpkg."""
    owners: dict[str, str] = {}
    for line in _ask("--search", "--", _GLOB.sub(r"\\\1", str(folder)) + "/*").splitlines():
        names, separator, file = line.partition(": ")
        if separator and not line.startswith("diversion "):
            owners[file] = names
    packages = {name for names in owners.values() for name in names.split(", ")}
    if not packages:
        return Packaged()
    shown = (line.partition("\t") for line in _ask("--show", "--showformat", _FORMAT, *packages).splitlines())
    return Packaged({name: version for name, _, version in shown}, frozenset(owners))


def _ask(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["dpkg-query", *arguments], capture_output=True, encoding="utf-8", errors="surrogateescape", check=False
        )
    except OSError:
        return ""
    return done.stdout
