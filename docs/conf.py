"""Settings of Sphinx for the documentation (``make docs``)."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "pytest-ldos"
author = "The pytest-ldos authors"
release = metadata.version("pytest-ldos")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "generate", "figures"]

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
default_role = "literal"

html_theme = "furo"
html_title = f"pytest-ldos {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_domain_indices = False
html_sidebars = {  # a hundred decisions: the tree of all pages on each would be a third of the site
    "decisions/[0-9]*": ["sidebar/brand.html", "sidebar/search.html"],
}
linkcheck_ignore = [r"https?://.*"]  # the site refers to itself; other sites come and go

_ROOT: Final = Path(__file__).parents[1]
_REPOSITORY: Final = os.environ.get("DOCS_REPOSITORY", "")
"""Address of the repository's files, ``https://HOST/OWNER/NAME/blob/COMMIT``; empty where they have none."""


def setup(app: Sphinx) -> None:
    """Adds what Sphinx asks after each page was read."""
    app.connect("source-read", _link_files)
    app.connect("doctree-read", _leave_decision_out)
    app.connect("build-finished", _finish)


def _link_files(app: Sphinx, page: str, source: list[str]) -> None:
    """Turns links to the repository's other files into links to its address, or into their names."""
    from docs.links import link_files  # noqa: PLC0415 (Sphinx runs this file before it is on the path)

    source[0] = link_files(source[0], page=Path(app.srcdir) / f"{page}.md", root=_ROOT, address=_REPOSITORY)


def _leave_decision_out(app: Sphinx, _: object) -> None:
    """Keeps decisions out of the search, and single ones out of the tree of all pages: their README lists them."""
    page = app.env.docname
    if page.startswith("decisions/"):
        app.env.metadata[page] |= {"nosearch": True, "orphan": True}


def _finish(app: Sphinx, error: Exception | None) -> None:
    """Adds what the theme leaves out for keyboards and screen readers, and takes away what nobody sees."""
    from docs.accessible import make_accessible  # noqa: PLC0415 (as above)
    from docs.smaller import make_smaller  # noqa: PLC0415

    if error is None and app.builder.format == "html":
        for file in Path(app.outdir).rglob("*.html"):
            file.write_text(make_smaller(make_accessible(file.read_text("utf-8"))), "utf-8")
        for file in Path(app.outdir).rglob("*.map"):
            file.unlink()
