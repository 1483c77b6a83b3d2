"""The generated pages of the documentation, by file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from docs.generate.columns import columns_page
from docs.generate.commands import commands_page
from docs.generate.loads import loads_page
from docs.generate.marks import fixtures_page, marks_page
from docs.generate.messages import messages_page
from docs.generate.metrics import metrics_page
from docs.generate.options import options_page
from docs.generate.platforms import platforms_page
from docs.generate.reasons import reasons_page
from docs.generate.records import records_page
from docs.generate.toml_tables import toml_page
from docs.generate.tracepoint_names import tracepoints_page
from docs.generate.verdicts import verdicts_page

DOCS: Final = Path(__file__).parents[1]
PAGES: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "reference/options.md": options_page,
    "reference/toml.md": toml_page,
    "reference/loads.md": loads_page,
    "reference/metrics.md": metrics_page,
    "reference/marks.md": marks_page,
    "reference/fixtures.md": fixtures_page,
    "reference/commands.md": commands_page,
    "reference/exit-codes.md": verdicts_page,
    "reference/records.md": records_page,
    "reference/tables.md": columns_page,
    "reference/tracepoints.md": tracepoints_page,
    "reference/platforms.md": platforms_page,
    "troubleshooting/reasons.md": reasons_page,
    "troubleshooting/messages.md": messages_page,
}
_HEAD: Final = "<!-- generated: make reference -->"


def render_pages() -> dict[str, str]:
    """Text of every page by its file below ``docs``."""
    return {name: "\n".join([_HEAD, "", *page()]).rstrip("\n") + "\n" for name, page in PAGES.items()}
