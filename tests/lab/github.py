"""The stand-in for GitHub on a machine, from the tests' side: jobs go in, results come out."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.builders.runner import ALLOW_LIST, Started, push
from tests.lab.machine import LabMachine

TOKEN: Final = "github_pat_11TOKEN0_secret"
_STAND_INS: Final = Path(__file__).parent / "stand_ins"
_CERTIFICATE: Final = """
cd /srv/github
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stand-in -keyout key -out certificate \
  -addext subjectAltName=DNS:github.com,DNS:api.github.com 2>/dev/null
cp certificate /usr/local/share/ca-certificates/stand-in.crt
update-ca-certificates >/dev/null 2>&1
echo 127.0.0.1 github.com api.github.com >>/etc/hosts
systemctl daemon-reload
systemctl enable --quiet --now github.service
"""


@dataclass(frozen=True)
class Result:
    """Attributes:
    status: the worker's exit status; below 0 the signal that ended it.
    output: what hook and steps printed.
    user: number of the user whom the job ran as.
    """

    status: int
    output: str
    user: int


class GitHub:
    """Attributes:
    digest: of the runner's archive.
    """

    def __init__(self, machine: LabMachine) -> None:
        self._machine = machine
        self._folder = machine.root / "srv/github"
        for name in ("queue", "results"):
            (self._folder / name).mkdir(parents=True)
        shutil.copy(_STAND_INS / "github", self._folder / "serve")
        shutil.copy(_STAND_INS / "github.service", machine.root / "etc/systemd/system/github.service")
        self.digest = self._pack_runner()

    def _pack_runner(self) -> str:
        archive = self._folder / "runner.tar.gz"
        with tarfile.open(archive, "w:gz") as file:
            for name in ("run.sh", "bin/Runner.Listener", "bin/Runner.Worker"):
                file.add(_STAND_INS / Path(name).name, arcname=name)
            file.add(_STAND_INS / "node", arcname="externals/node20/bin/node")
        return hashlib.sha256(archive.read_bytes()).hexdigest()

    def start(self) -> None:
        """Serves, from now on and after each boot, under GitHub's names."""
        self._machine.shell(_CERTIFICATE)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Registrations that were asked for."""
        return [json.loads(line) for line in (self._folder / "calls").read_text().splitlines()]

    def begin(self, *steps: str, started: Started | None = None) -> str:
        """Queues a job, by default one that is allowed; returns its name."""
        name, job = secrets.token_hex(4), started or push()
        content = {"name": name, "variables": dict(job.variables), "payload": job.payload, "steps": steps}
        (self._folder / f"queue/{name}.new").write_text(json.dumps(content))
        (self._folder / f"queue/{name}.new").rename(self._folder / f"queue/{name}.json")
        return name

    def result(self, name: str, *, patience_s: float = 120) -> Result:
        """Result of a job after its end."""
        file = self._folder / f"results/{name}.json"
        self._machine.await_that(file.exists, f"a result of {name}", patience_s=patience_s)
        return Result(**json.loads(file.read_text()))

    def run(self, *steps: str, started: Started | None = None) -> Result:
        """Queues a job, and waits for what comes of it."""
        return self.result(self.begin(*steps, started=started))


def allow_list() -> str:
    """Allow-list of the hook's tests, without the wait for an idle machine between jobs."""
    return ALLOW_LIST.replace("LOCK", "ldos-measuring")
