"""A ``tc`` that keeps its qdiscs and filters in a file, where a kernel has no netem of its own.

What it does to datagrams: nothing.
"""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

_PROGRAM = """#!{python}
import json, os, sys
from pathlib import Path
state = Path({state!r})
kept = json.loads(state.read_text())
words = sys.argv[1:]
kept["calls"].append(words)
text = " ".join(words)
answer = 0
if kept["refuses"] and kept["refuses"] in text:
    sys.stderr.write("Error: \\x1b[31mSpecified qdisc kind is unknown.\\n")
    answer = 2
elif "show" in words:
    print(json.dumps(kept["qdiscs"]))
elif words[:2] == ["qdisc", "add"]:
    if "root" in words:
        kept["qdiscs"] = []
    kind = next(word for word in words if word in ("prio", "netem"))
    handle = words[words.index("handle") + 1]
    kept["qdiscs"].append({{"kind": kind, "handle": handle, "packets": kept["packets"], "drops": 0, "qlen": 0}})
elif words[:2] == ["filter", "add"]:
    kept["filters"].append(words)
elif words[:2] == ["qdisc", "del"]:
    kept["qdiscs"] = {default!r}
    kept["filters"] = []
whole = state.with_suffix(f".{{os.getpid()}}")  # others read meanwhile
whole.write_text(json.dumps(kept))
whole.replace(state)
sys.exit(answer)
"""

DEFAULT = [{"kind": "noqueue", "handle": "0:"}]


class FakeTc:
    """The program, and what it keeps.

    Attributes:
        folder: to be the first on the path.
    """

    def __init__(self, folder: Path, *, refuses: str = "", packets: int = 10**9) -> None:
        self.folder = folder
        self._state = folder / "tc.json"
        kept = {"qdiscs": DEFAULT, "filters": [], "calls": [], "refuses": refuses, "packets": packets}
        self._state.write_text(json.dumps(kept))
        program = folder / "tc"
        program.write_text(_PROGRAM.format(python=sys.executable, state=str(self._state), default=DEFAULT))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    @property
    def qdiscs(self) -> list[dict[str, object]]:
        return list(json.loads(self._state.read_text())["qdiscs"])

    @property
    def filters(self) -> list[list[str]]:
        return list(json.loads(self._state.read_text())["filters"])

    @property
    def calls(self) -> list[list[str]]:
        return list(json.loads(self._state.read_text())["calls"])

    def change(self, **values: object) -> None:
        self._state.write_text(json.dumps({**json.loads(self._state.read_text()), **values}))
