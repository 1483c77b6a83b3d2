"""GitHub's service for artifacts of one run, on the loopback device, as far as its own upload and download actions use it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from tests.fakes.loopback import serving

RUN, JOB = "run", "job"
_BLOCK: Final = re.compile(r"<Latest>([^<]+)</Latest>")


def make_token() -> str:
    """Token by which an action knows its run; nothing here checks its signature."""
    parts: tuple[dict[str, str], ...] = ({"alg": "none"}, {"scp": f"Actions.Results:{RUN}:{JOB}"}, {})
    return ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts)


@dataclass
class ArtifactService:
    """Artifacts by their names, each of which can be used once.

    Attributes:
        artifacts: content of each, a ZIP archive.
        blocks: parts of what is being uploaded, by their names.
    """

    url: str = ""
    artifacts: dict[str, bytes] = field(default_factory=dict)
    blocks: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def answer(self, method: str, asked: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answers a call of a method of the service."""
        name = asked.get("name", "")
        if method == "DeleteArtifact":
            self.blocks.pop(name, None)
            found = self.artifacts.pop(name, None)
            return (200, {"ok": True, "artifactId": "1"}) if found is not None else (404, {"code": "not_found"})
        if method == "CreateArtifact":
            taken = name in self.artifacts or name in self.blocks
            self.blocks.setdefault(name, {})
            return (
                (409, {"code": "already_exists"}) if taken else (200, {"ok": True, "signedUploadUrl": self._blob(name)})
            )
        if method == "FinalizeArtifact":
            return 200, {"ok": True, "artifactId": str([*self.artifacts].index(name) + 1)}
        if method == "ListArtifacts":
            return 200, {"artifacts": [*self._list(asked)]}
        assert method == "GetSignedArtifactURL", method
        return 200, {"signedUrl": self._blob(name)}

    def store(self, name: str, query: Mapping[str, list[str]], content: bytes) -> None:
        """Keeps a block of an artifact, or joins its blocks in the order of a list."""
        if query["comp"] == ["block"]:
            self.blocks[name][query["blockid"][0]] = content
        else:
            self.artifacts[name] = b"".join(self.blocks[name][each] for each in _BLOCK.findall(content.decode()))

    def _blob(self, name: str) -> str:
        return f"{self.url}/blobs/{quote(name, safe='')}?sig=x"

    def _list(self, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for number, (name, content) in enumerate(self.artifacts.items(), 1):
            if asked.get("nameFilter", name) == name and asked.get("idFilter", str(number)) == str(number):
                yield {
                    "workflowRunBackendId": RUN,
                    "workflowJobRunBackendId": JOB,
                    "databaseId": str(number),
                    "name": name,
                    "size": str(len(content)),
                    "createdAt": "2026-01-01T00:00:00Z",
                    "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
                }


@contextmanager
def running(service: ArtifactService) -> Iterator[ArtifactService]:
    """Serves it until the block ends."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = _camel(json.loads(self._body()))
            with lock:
                status, answer = service.answer(self.path.rpartition("/")[2], asked)
            self._send(status, json.dumps(answer).encode(), "application/json")

        def do_PUT(self) -> None:
            address, content = urlsplit(self.path), self._body()
            with lock:
                service.store(_name(address.path), parse_qs(address.query), content)
            self._send(201, b"", "text/plain")

        def do_GET(self) -> None:
            self._send(200, service.artifacts[_name(urlsplit(self.path).path)], "application/zip")

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _send(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            """Nothing."""

    with serving(Handler) as service.url:
        yield service


def _name(path: str) -> str:
    return unquote(path.rpartition("/")[2])


def _camel(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by one spelling: a client may use either."""
    return {re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name): value for name, value in asked.items()}
