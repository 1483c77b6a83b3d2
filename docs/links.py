"""Links of pages to files of the repository that are no pages."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Final

_LINK: Final = re.compile(r"\[(?P<text>[^\]\[]*)\]\((?P<path>\.\./[^)#\s]*)(?P<part>#[^)\s]*)?\)")


def link_files(text: str, *, page: Path, root: Path, address: str) -> str:
    """Markdown whose links out of ``docs`` lead to the repository's address.

    Without an address, the text of the link and the path of the file stand there.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return _LINK.sub(partial(_replace, page=page, root=root, address=address), text)


def _replace(found: re.Match[str], *, page: Path, root: Path, address: str) -> str:
    file = (page.parent / found["path"]).resolve()
    if file.is_relative_to(root / "docs"):
        return found[0]
    if not file.exists():
        raise FileNotFoundError(f"{page}: there is no {found['path']}")
    name = file.relative_to(root).as_posix()
    if address:
        return f"[{found['text']}]({address}/{name}{found['part'] or ''})"
    plain = found["text"].strip("`")
    return f"`{name}`" if plain in {name, file.name} else f"{found['text']} (`{name}`)"
