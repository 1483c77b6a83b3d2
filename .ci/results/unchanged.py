"""Finds that nothing which is measured differs between a commit and its base, by a digest of all files that count.

Usage: python3 -I .ci/results/unchanged.py BASE COMMIT, in the root of a project

Prints both digests and ends with 0 if they are equal. Otherwise, or in doubt, prints why the commit has to be measured
and ends with 1. Only Python's standard library and git are needed.

All files of the repository count (sources, requirements, settings, scenarios, tests, baselines), with path, mode and
content. Only plain files are left out whose paths match ``[tool.ldos.ci] paths``, as the base has it. Files by whose
names pytest, pip and colcon find what they run or build always count.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

DEFAULT: Final = ("docs/**", "*.md")
"""Paths without ``[tool.ldos.ci]``; as of `pytest_ldos.scenario.scenario_table.CiSpec`."""

_OWN, _SHARED = "ldos.toml", "pyproject.toml"
_ALWAYS: Final = frozenset(
    [
        "AMENT_IGNORE",
        "CMakeLists.txt",
        "COLCON_IGNORE",
        "colcon.meta",
        "colcon.pkg",
        "conftest.py",
        "ldos.toml",
        "package.xml",
        "pyproject.toml",
        "pytest.ini",
        "pytest.toml",
        "setup.cfg",
        "setup.py",
        "tox.ini",
    ]
)
_PLAIN, _PROGRAM, _LINK = "100644", "100755", "120000"
_MOST_LINKS: Final = 100
_SHOWN: Final = 12
_GLOB: Final = re.compile(r"(\*\*/|\*\*|\*|\?)")
_MEANS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}

Tree = Mapping[str, tuple[str, str]]
"""Mode and object of each file of a commit, by path."""

Read = Callable[[str], bytes]
"""Returns the content of an object."""


class Counts(Exception):
    """A difference counts, or cannot be excluded; the text says which."""


def compare(base: Tree, head: Tree, read: Read, *, project: str = "") -> str:
    """Both digests, in words.

    Args:
        project: the project's folder with a slash at its end; empty for the root of the repository.

    Raises:
        Counts: the commit has to be measured.
    """
    is_left_out = _left_out(_paths(base, read, project), project)
    changed = {path for path in {*base, *head} if base.get(path) != head.get(path)}
    left_out = {path for path in changed if is_left_out(path) and _modes(path, base, head) == {_PLAIN}}
    if counted := changed - left_out:
        raise Counts(f"{min(counted)} changed{f', and {len(counted) - 1} more' if len(counted) > 1 else ''}")
    _refuse_ways(head, left_out, read)
    digests = [_digest(tree, is_left_out) for tree in (head, base)]
    if digests[0] != digests[1]:
        raise Counts("the digests differ")
    shown, of_base = (each[:_SHOWN] for each in digests)
    return f"nothing that is measured changed: digest {shown}, base's {of_base}"


def _paths(base: Tree, read: Read, project: str) -> list[str]:
    """Patterns of what is left out, from the settings of the base."""
    name = next((each for each in (_OWN, _SHARED) if f"{project}{each}" in base), "")
    if not name:
        return [*DEFAULT]
    mode, found = base[f"{project}{name}"]
    try:
        document: Any = tomllib.loads(read(found).decode("utf-8-sig"))
        table = document if name == _OWN else document.get("tool", {}).get("ldos", {})
        paths = table.get("ci", {}).get("paths", [*DEFAULT])
    except (ValueError, AttributeError, RecursionError):
        paths = None
    is_list = isinstance(paths, list) and all(isinstance(each, str) for each in paths)
    if not is_list or mode not in (_PLAIN, _PROGRAM):
        raise Counts(f"[tool.ldos.ci] paths of the base cannot be read from {name}")
    return list(paths)


def _left_out(patterns: list[str], project: str) -> Callable[[str], bool]:
    forms = [
        re.escape(project) + "".join(_MEANS.get(part, re.escape(part)) for part in _GLOB.split(each))
        for each in patterns
    ]
    matches = re.compile("|".join(forms) or "(?!)", re.DOTALL).fullmatch
    return lambda path: path.rpartition("/")[2] not in _ALWAYS and matches(path) is not None


def _modes(path: str, *trees: Tree) -> set[str]:
    return {tree[path][0] for tree in trees if path in tree}


def _digest(tree: Tree, is_left_out: Callable[[str], bool]) -> str:
    counted = (
        f"{mode} {found} {path}\0"
        for path, (mode, found) in sorted(tree.items())
        if mode != _PLAIN or not is_left_out(path)
    )
    return hashlib.sha256("".join(counted).encode("utf-8", "surrogateescape")).hexdigest()


def _refuse_ways(head: Tree, left_out: set[str], read: Read) -> None:
    """Refuses links through which what counts may read a file that was left out, and submodules, which are not seen."""
    links = 0
    for path, (mode, found) in head.items():
        if mode == _LINK:
            links += 1
            target = _target(path, read(found).decode("utf-8", "surrogateescape")) if links <= _MOST_LINKS else None
            if target is None or any(each == target or each.startswith(f"{target}/") for each in left_out):
                raise Counts(f"{path} is a link that may lead to something that changed")
        elif mode not in (_PLAIN, _PROGRAM):
            raise Counts(f"{path} is a submodule, or of an unknown kind")


def _target(path: str, text: str) -> str | None:
    """The path that a link leads to; ``None`` if that is not certain, as outside of the repository."""
    folders, names = path.split("/")[:-1], [each for each in text.split("/") if each != "."]
    while names and names[0] == "..":
        if not folders:
            return None
        folders.pop()
        names.pop(0)
    # What comes after a name may be another link's; an absolute path begins with an empty name.
    is_plain = bool(names) and not {"..", ""} & set(names)
    return "/".join([*folders, *names]) if is_plain else None


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        raise Counts(f"git {arguments[0]} failed: {done.stderr.decode('utf-8', 'replace').strip()[:200]}")
    return done.stdout


def _read_tree(commit: str) -> Iterator[tuple[str, tuple[str, str]]]:
    name = _git("rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").decode().strip()
    for entry in filter(None, os.fsdecode(_git("ls-tree", "-r", "-z", "--full-tree", name)).split("\0")):
        facts, _, path = entry.partition("\t")
        mode, _, found = facts.split(" ")
        yield path, (mode, found)


def main() -> int:
    """Entry point."""
    if len(sys.argv) != 3:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        base, head = (dict(_read_tree(each)) for each in sys.argv[1:])
        project = os.fsdecode(_git("rev-parse", "--show-prefix")).removesuffix("\n")
        sys.stdout.write(f"{compare(base, head, lambda found: _git('cat-file', 'blob', found), project=project)}\n")
    except (Counts, OSError) as reason:
        sys.stdout.write(f"it has to be measured: {str(reason)!a}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
