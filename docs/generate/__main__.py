"""Writes the generated pages of the documentation, and the schema of reports, again: ``python -m docs.generate``.

Each page is made from what reads the settings, marks, commands and files that it lists. A test holds the files to it.
"""

from __future__ import annotations

from docs.generate.pages import DOCS, render_pages
from docs.generate.report_schema import render_schema
from pytest_ldos.show.report.json_text import FILE

for name, text in render_pages().items():
    (DOCS / name).write_text(text, "utf-8")
FILE.write_text(render_schema(), "utf-8")
