"""axe-core: what a page lacks for those who do not see it, or use a keyboard."""

from __future__ import annotations

import html
import json
import re
import subprocess
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.oracles.chromium import POLICY, command

IS_THERE = find_spec("axe_core_python") is not None
REASON = "axe-core-python is not installed (make setup installs it)"

_RUN = """
localStorage.setItem("theme", "%s"); document.body.dataset.theme = "%s";
axe.run(document).then(found => {
  const told = document.createElement("pre");
  told.id = "probe";
  told.textContent = JSON.stringify(found.violations.map(each => [each.id, each.nodes.map(node => node.html.slice(0, 200))]));
  document.body.append(told);
});
"""


def violations(page: Path, folder: Path, *, scheme: str) -> list[Any]:
    """Rules that a page breaks, each with the elements; looked at in a copy beside it, with all of it unfolded."""
    program = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8").replace("</script>", r"<\/script>")
    scripts = f"<script>{program}</script><script>{_RUN % (scheme, scheme)}</script>"
    copy = page.with_name(f"{page.stem}-{scheme}-looked-at.html")
    unfolded = POLICY.sub("", page.read_text("utf-8")).replace("<details>", "<details open>")
    copy.write_text(unfolded.replace("</body>", f"{scripts}</body>"), "utf-8")
    asked = command(copy, folder, width=1280, dark=scheme == "dark")
    done = subprocess.run(
        [*asked[:-1], "--virtual-time-budget=20000", asked[-1]], capture_output=True, text=True, check=True, timeout=300
    )
    copy.unlink()
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, "axe did not finish"
    return list(json.loads(html.unescape(found.group(1))))
