"""Writes the generated pages of the documentation again: ``python -m docs.generate``.

Each page is made from what reads the settings, marks, commands and files that it lists. A test holds the files to it.
"""

from __future__ import annotations

from docs.generate.pages import DOCS, render_pages

for name, text in render_pages().items():
    (DOCS / name).write_text(text, "utf-8")
