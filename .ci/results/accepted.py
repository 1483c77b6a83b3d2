"""Changes for the worse that maintainers accepted on a pull request, by ``/ldos accept COMMIT METRIC… "reason"``.

The sizes are in comments of ours. They count as long as a comment of somebody on the allow-list names their commit and
metric; no comment counts that was edited. Which commits they apply to is decided by the lines that these change, as in
``ldos-accepted.toml``.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from branches import head_of, read_files
from github_api import BOT, Api, Failed, at, read_file
from proposals import commit_files, link_of
from surroundings import append_to, server
from word import Acceptance, is_meant, parse_word

MARK: Final = "<!-- pytest-ldos accepted -->"
FILE: Final = "accepted.json"
TABLES: Final = "ldos-accepted.toml"
_HEADER: Final = "# Accepted changes for the worse (ldos accept). Read from the version that a run is compared with.\n"
_LARGEST: Final = 65_536
_COMMITS_BEFORE: Final = "50"
_TIMEOUT_S: Final = 600
_BEGIN, _END = "\n<!-- ", " -->"
_TEXTS: Final = ("scenario", "stack", "metric", "reason", "by", "at", "commit", "base", "difference")


@dataclass(frozen=True, kw_only=True)
class Words:
    """Comments that accept changes, and the changes that they accept so far.

    Attributes:
        words: ``commit``, ``metrics``, ``reason``, ``by`` and ``at`` of each, the oldest first.
        changes: tables of ``ldos-accepted.toml``.
    """

    words: Sequence[Mapping[str, Any]] = ()
    changes: Sequence[Mapping[str, Any]] = ()


def read(api: Api, number: int, maintainers: frozenset[str]) -> Words:
    """The words on a pull request, and their changes; none with number 0."""
    there = [*api.pages(f"issues/{number}/comments")] if number else []
    words = [*_words(there, maintainers)]
    changes = [each for each in _kept(there) if any(_is_of(each, word) for word in words)]
    return Words(words=words, changes=changes)


def fetch(api: Api, folder: Path, commit: str, base: str) -> str:
    """Fetches a commit and its base into a checkout: without a base, some commits before it, so that one may be it.

    Nothing that is accepted applies to a commit that cannot be fetched.
    """
    depth, wanted = ("1", [commit, base]) if base else (_COMMITS_BEFORE, [commit])
    secret = base64.b64encode(f"x-access-token:{api.token}".encode()).decode()
    number = os.environ.get("GIT_CONFIG_COUNT", "0")
    header = {f"KEY_{number}": f"http.{server()}/.extraheader", f"VALUE_{number}": f"AUTHORIZATION: basic {secret}"}
    settings = {**header, "COUNT": str(int(number) + 1)}
    environment = os.environ | {f"GIT_CONFIG_{name}": value for name, value in settings.items()}
    command = ["git", "-C", str(folder), "fetch", "--quiet", "--no-tags", f"--depth={depth}", "origin", *wanted]
    try:
        subprocess.run(command, check=True, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        return f"no commit was fetched: {getattr(error, 'stderr', None) or type(error).__name__!a}"
    return f"{len(wanted)} commits are there"


def write(words: Words, file: Path) -> str:
    """Writes them for judge.py; returns what was found."""
    file.write_text(json.dumps(asdict(words)), "utf-8")
    return f"{len(words.words)} comments accept changes; {len(words.changes)} are known"


def keep(api: Api, number: int, file: Path, maintainers: frozenset[str]) -> str:
    """Keeps the changes of which a job without a token found the sizes, and answers what it could not find.

    Raises:
        Failed: the file is not what it should be.
    """
    if not file.exists():
        return "nothing was accepted"
    found = _load(read_file(file, _LARGEST), str(file))
    known = read(api, number, maintainers)
    new = [each for each in found["changes"] if _is_new(each, known)]
    missing = [each for each in found["missing"] if any(each in word["metrics"] for word in known.words)]
    if not new and not missing:
        return "nothing new was accepted"
    api.ask("POST", f"issues/{number}/comments", {"body": _text(new, missing)})
    return f"pull request {number} got a comment with {len(new)} accepted changes"


def propose(api: Api, file: Path, *, commit: str, base: str) -> str:
    """Makes a branch that adds the changes that a merged commit brought to ``ldos-accepted.toml``, which machines read.

    Args:
        file: of what judge.py found to apply to the commit.
        base: branch that is to get them.

    Raises:
        Failed: the file is not what it should be, or GitHub refuses.
    """
    applied = _load(read_file(file, _LARGEST), str(file))["applied"]
    before = read_files(api, head_of(api, base), re.compile(re.escape(TABLES))).get(TABLES, b"").decode()
    tables = (
        "[[accepted]]\n" + "".join(f"{name} = {json.dumps(change[name])}\n" for name in change) for change in applied
    )
    new = [table for table in tables if table not in before]
    if not new:
        return f"{TABLES} of {base} has them"
    branch, title = f"accepted/{commit}", f"Accepted changes of {commit[:12]}"
    commit_files(api, {TABLES: "\n".join([before or _HEADER, *new]).encode()}, branch, base, title)
    link = link_of(api.repository, branch, base, title)
    append_to("GITHUB_STEP_SUMMARY", f"**[Open a pull request for what was accepted]({link})**\n")
    return (
        f"the branch {branch} has {len(new)} accepted changes; open its pull request here, unless there is one: {link}"
    )


def _is_new(change: Mapping[str, Any], known: Words) -> bool:
    return change not in known.changes and any(_is_of(change, word) for word in known.words)


def _text(changes: Sequence[Mapping[str, Any]], missing: Sequence[str]) -> str:
    """The comment: lines for people in a block that nothing of them can end, then the tables."""
    lines = [
        f"{_size(each)} in {each['scenario']}, {each['stack']}; {each['by']}: {each['reason']}" for each in changes
    ]
    lines += [f"not accepted: {each}, which has no change for the worse that can be" for each in missing]
    shown = "\n".join(f"    {line}" for line in lines)
    tables = json.dumps(changes).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"{MARK}\nAccepted for the lines of this commit, up to these sizes:\n\n{shown}\n{_BEGIN}{tables}{_END}"


def _size(change: Mapping[str, Any]) -> str:
    return f"{change['metric']} up to {100 * float(change['size']):+.1f} %"


def _words(there: Sequence[Mapping[str, Any]], maintainers: frozenset[str]) -> Iterator[dict[str, Any]]:
    for comment in there:
        body, by = str(comment.get("body")), str(at(comment, "user", "login"))
        if by.casefold() not in maintainers or _is_edited(comment) or not is_meant(body):
            continue
        try:
            word = parse_word(body)
        except Failed:
            continue
        if isinstance(word, Acceptance):
            yield {**asdict(word), "by": by, "at": str(comment.get("created_at"))}


def _kept(there: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for comment in there:
        body = str(comment.get("body"))
        if at(comment, "user", "login") == BOT and body.startswith(MARK) and not _is_edited(comment):
            text = f'{{"changes": {body.rpartition(_BEGIN)[2].removesuffix(_END)}}}'
            yield from _load(text, f"comment {comment.get('id')!a} (delete it)")["changes"]


def _is_edited(comment: Mapping[str, Any]) -> bool:
    return comment.get("updated_at") != comment.get("created_at")


def _is_of(change: object, word: Mapping[str, Any]) -> bool:
    """True if the word names the change's commit and metric."""
    commit, metric = at(change, "commit"), at(change, "metric")
    is_commit = isinstance(commit, str) and len(commit) >= 12 and word["commit"].startswith(commit)
    return is_commit and metric in word["metrics"]


def _load(text: str, where: str) -> dict[str, Any]:
    """``changes`` and ``applied``, each with the fields of ``ldos-accepted.toml``, and ``missing``.

    Raises:
        Failed: it is anything else.
    """
    found: dict[str, Any] = {"missing": [], "applied": []}
    try:
        found |= json.loads(text)
        is_sound = isinstance(found["changes"], list) and all(map(_is_change, [*found["changes"], *found["applied"]]))
        is_sound &= all(isinstance(each, str) for each in found["missing"])
    except (ValueError, KeyError, TypeError, RecursionError):
        is_sound = False
    if not is_sound:
        raise Failed(f"{where} holds no accepted changes")
    return found


def _is_change(found: object) -> bool:
    if not isinstance(found, dict) or found.keys() != {*_TEXTS, "size"}:
        return False
    texts = [found[name] for name in _TEXTS]
    is_size = isinstance(found["size"], float) and math.isfinite(found["size"])
    return is_size and all(isinstance(each, str) and each.isprintable() for each in texts)
