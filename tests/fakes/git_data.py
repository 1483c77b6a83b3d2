"""Branches, commits, trees and blobs behind GitHub's API."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

_SUBMODULE: Final = "160000"


@dataclass
class GitData:
    """A repository's objects, by their names.

    Attributes:
        branches: what each is at.
        commits: message, tree and parents.
        trees: blobs by path, and the mode of each.
        forced: branches that were moved by force.
        longest: number of a tree's entries that are listed.
    """

    branches: dict[str, str] = field(default_factory=dict)
    commits: dict[str, dict[str, Any]] = field(default_factory=dict)
    trees: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    forced: list[str] = field(default_factory=list)
    longest: int = 100_000

    def start(self, branch: str, files: dict[str, bytes], *, parents: tuple[str, ...] = ()) -> str:
        """A branch with a commit of these files."""
        tree = self._keep_tree({path: ("100644", self._keep_blob(content)) for path, content in files.items()})
        self.branches[branch] = self._keep_commit({"message": "start", "tree": tree, "parents": [*parents]})
        return self.branches[branch]

    def files(self, branch: str) -> dict[str, bytes]:
        """Files of a branch."""
        tree = self.trees[self.commits[self.branches[branch]]["tree"]]
        return {path: self.blobs[blob] for path, (_, blob) in tree.items()}

    def answer(self, method: str, place: str, body: Any) -> tuple[int, Any]:
        """To a request for ``git/…``."""
        kind, _, name = place.partition("/")
        if method == "GET":
            return self._get(kind, name)
        if kind == "blobs":
            return 201, {"sha": self._keep_blob(base64.b64decode(body["content"]))}
        if kind == "trees":
            below = dict(self.trees[body["base_tree"]]) if "base_tree" in body else {}
            added = {each["path"]: (each["mode"], each["sha"]) for each in body["tree"]}
            assert all(blob in self.blobs for _, blob in added.values())
            return 201, {"sha": self._keep_tree({**below, **added})}
        if kind == "commits":
            return 201, {"sha": self._keep_commit(body)}
        return self._move(method, name, body)

    def _get(self, kind: str, name: str) -> tuple[int, Any]:
        if kind == "ref":
            branch = name.removeprefix("heads/")
            found = self.branches.get(branch)
            return (200, {"object": {"sha": found, "type": "commit"}}) if found else (404, {"message": "Not Found"})
        if kind == "matching-refs":
            return 200, [{"ref": f"refs/{each}"} for each in self.branches if each.startswith(name)]
        known: dict[str, Collection[str]] = {"commits": self.commits, "trees": self.trees, "blobs": self.blobs}
        if name not in known[kind]:
            return 404, {"message": "Not Found"}
        if kind == "commits":
            return 200, {"sha": name, "tree": {"sha": self.commits[name]["tree"]}}
        if kind == "trees":
            entries: list[dict[str, Any]] = [
                {"path": path, "mode": mode, "type": "blob", "sha": blob, "size": len(self.blobs[blob])}
                if mode != _SUBMODULE
                else {"path": path, "mode": mode, "type": "commit", "sha": blob}
                for path, (mode, blob) in self.trees[name].items()
            ]
            folders = {str(folder) for path in self.trees[name] for folder in PurePosixPath(path).parents} - {"."}
            entries += [{"path": each, "mode": "040000", "type": "tree", "sha": "f" * 40} for each in sorted(folders)]
            return 200, {"sha": name, "tree": entries, "truncated": len(entries) > self.longest}
        text = base64.encodebytes(self.blobs[name]).decode()
        return 200, {"sha": name, "encoding": "base64", "content": text}

    def _move(self, method: str, name: str, body: Any) -> tuple[int, Any]:
        branch = (body["ref"].removeprefix("refs/") if method == "POST" else name).removeprefix("heads/") or "?"
        if (method == "POST") == (branch in self.branches):
            return 422, {"message": "Reference already exists, or does not"}
        if body.get("force"):
            self.forced.append(branch)
        elif method == "PATCH" and self.branches[branch] not in self.commits[body["sha"]]["parents"]:
            return 422, {"message": "Update is not a fast forward"}
        self.branches[branch] = body["sha"]
        return 200, {"ref": f"refs/heads/{branch}"}

    def _keep_blob(self, content: bytes) -> str:
        name = hashlib.sha1(b"blob" + content).hexdigest()
        self.blobs[name] = content
        return name

    def _keep_tree(self, entries: dict[str, tuple[str, str]]) -> str:
        name = hashlib.sha1(json.dumps(sorted(entries.items())).encode()).hexdigest()
        self.trees[name] = entries
        return name

    def _keep_commit(self, commit: dict[str, Any]) -> str:
        name = hashlib.sha1(json.dumps([commit, len(self.commits)]).encode()).hexdigest()
        self.commits[name] = commit
        return name
