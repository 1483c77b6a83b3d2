"""Pages with commands that can be run: README, tutorials and how-to pages.

A page says where its commands run, in a comment: ``<!-- runs in: a clone -->``, ``<!-- runs in: an empty folder -->`` or
``<!-- runs in: an empty folder with FILE, FILE -->`` (files of this repository). What follows is one session, up to the next such
comment. A block ``console`` has commands behind ``$ `` (continued behind ``> ``) and what they print; blocks of another language
are written to a file where ``<!-- file: NAME -->`` stands before them, or appended (``<!-- append to: NAME -->``). What a block
needs and a reader has already, such as a recording, is made by the commands of ``<!-- before: COMMANDS -->``.

The marks behind ``console`` say what a block takes: `MINUTES`, or what is not here (`ABSENT`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
MINUTES: Final = "minutes"
ABSENT: Final = {
    "installs": "needs a network and minutes; made by `make setup` here",
    "needs-ros2": "needs ROS 2 Jazzy",
    "needs-github": "needs a repository on GitHub",
    "needs-root": "changes the machine",
    "needs-machines": "needs other machines",
    "needs-container": "needs a container engine",
    "needs-network": "reads from an address that is only an example",
    "takes-long": "takes more than ten minutes",
}
"""Marks of blocks that do not run here, with the reason."""

_FENCE: Final = re.compile(
    r"(?:<!-- (?P<role>runs in|file|append to|before): (?P<value>.+?) -->)"
    r"|^(?P<indent> *)```(?P<language>\w+)(?P<marks>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Command:
    """A command and the lines that the page shows of its output; none for any output."""

    text: str
    shown: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        file: to which it is written, or appended (`is_appended`); empty for neither.
        before: commands that make what it needs.
    """

    language: str
    marks: frozenset[str]
    text: str
    line: int
    file: str = ""
    is_appended: bool = False
    before: str = ""

    @property
    def commands(self) -> list[Command]:
        return list(_commands(self)) if self.language == "console" else []

    @property
    def absent(self) -> frozenset[str]:
        return self.marks & ABSENT.keys()


@dataclass
class Session:
    """Blocks that run in one folder, in the order of the page; `place` is empty if the page names none."""

    page: str
    place: str
    blocks: list[Block] = field(default_factory=list)

    def chosen(self, *, with_minutes: bool) -> list[Block]:
        """Blocks that run here."""
        return [each for each in self.blocks if not each.absent and (with_minutes or MINUTES not in each.marks)]


def read_sessions() -> list[Session]:
    """The sessions of all pages."""
    folders = [ROOT / "docs" / name for name in ("tutorials", "how-to")]
    pages = [ROOT / "README.md", *(page for folder in folders for page in sorted(folder.rglob("*.md")))]
    return [
        session for page in pages for session in parse_page(page.relative_to(ROOT).as_posix(), page.read_text("utf-8"))
    ]


def parse_page(name: str, text: str) -> list[Session]:
    sessions = [Session(name, "")]
    role = value = before = ""
    for found in _FENCE.finditer(text):
        if found["role"] == "runs in":
            sessions.append(Session(name, found["value"]))
        elif found["role"] == "before":
            before = found["value"]
        elif found["role"]:
            role, value = found["role"], found["value"]
        else:
            marks = frozenset(re.findall(r"\.([\w-]+)", found["marks"]))
            body = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
            line = text.count("\n", 0, found.start()) + 1
            block = Block(found["language"], marks, body, line, value, role == "append to", before)
            sessions[-1].blocks.append(block)
            role = value = before = ""
    return [each for each in sessions if each.blocks]


def _commands(block: Block) -> Iterator[Command]:
    text, line = "", 0
    shown: list[str] = []
    for number, each in enumerate(block.text.splitlines(), block.line + 1):
        if each.startswith("$ "):
            if text:
                yield Command(text, tuple(shown), line)
            text, shown, line = each[2:], [], number
        elif each.startswith("> ") and not shown:
            text += f"\n{each[2:]}"
        else:
            shown.append(each)
    if text:
        yield Command(text, tuple(shown), line)
