"""A browser without a window: opens a page, looks at it with a script of ours, and tells what it saw."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next((found for name in NAMES if (found := shutil.which(name))), None)
REASON = f"none of {', '.join(NAMES)} is installed (make setup installs chromium where apt has it)"

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
"""A page's own rule against scripts, which one that is looked at loses."""

_MOST_OPENED = 20

_CONSOLE = re.compile(r'CONSOLE[:(]\d+\)?\] (".*)')


@dataclass(frozen=True)
class Seen:
    """Observations of the browser.

    Attributes:
        result: of the script; ``None`` without one.
        dom: the document after loading, as HTML.
        console: messages of any kind.
    """

    result: Any
    dom: str
    console: list[str]


def look_at(
    page: str,
    folder: Path,
    *,
    width: int = 1280,
    dark: bool = False,
    script: str = "",
    budget_ms: int = 0,
    until: str = "",
) -> Seen:
    """Opens `page` and evaluates `script`, an expression.

    With `budget_ms`, the page is seen when it has had so much time of its own for what it does after loading. That time
    does not wait for threads of the browser, such as one that unpacks: with `until`, the page is opened again until it
    has this text, a few times at most.

    A page that is looked at with a script loses its own rule against scripts, and stands in a frame of that width: no
    window is narrower than 500 pixels.
    """
    file = folder / "page.html"
    file.write_text(_with_probe(page, script, width) if script else page, "utf-8")
    asked = command(file, folder, width=width, budget_ms=budget_ms, dark=dark)
    opened = partial(subprocess.run, asked, capture_output=True, text=True, check=True, timeout=60)
    done = opened()
    for _ in range(_MOST_OPENED):
        if until in done.stdout:
            break
        done = opened()
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    result = json.loads(html.unescape(found.group(1))) if found else None
    return Seen(result, done.stdout, _CONSOLE.findall(done.stderr))


def _with_probe(page: str, script: str, width: int) -> str:
    probed = POLICY.sub("", page).replace("</body>", f"<script>{_PROBE % {'script': script}}</script></body>")
    frame = f'<iframe style="border: 0; width: {width}px; height: 900px" srcdoc="{html.escape(probed)}"></iframe>'
    return f'<!doctype html><meta charset="utf-8"><body style="margin: 0">{frame}</body>'


def command(file: Path, folder: Path, *, width: int, dark: bool, budget_ms: int = 0) -> list[str]:
    """The call that loads a page and prints its document."""
    assert PROGRAM is not None
    return [
        PROGRAM,
        "--headless",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--enable-logging=stderr",
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},900",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        *([f"--virtual-time-budget={budget_ms}"] if budget_ms else []),
        "--dump-dom",
        file.as_uri(),
    ]


_PROBE = """
const told = document.createElement("pre");
told.id = "probe";
try { told.textContent = JSON.stringify(%(script)s); } catch (error) { told.textContent = JSON.stringify(String(error)); }
parent.document.body.append(told);
"""

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""Pixels by which the page is wider than the window."""

FOCUSED = """[...document.querySelectorAll("a[href], summary, [tabindex='0']")].map(each => {
  each.focus();
  return document.activeElement === each;
})"""
"""For everything that the tabulator key reaches: whether it takes the focus."""

HIDDEN_OVERFLOW = """[...document.querySelectorAll("*")].filter(each =>
  each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0
  && getComputedStyle(each).overflowX === "auto" && each.tabIndex !== 0).map(each => each.className)"""
"""Elements that scroll but cannot be reached by keyboard."""

CONTRASTS = """(() => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const linear = part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = each => {
    for (let node = each; node; node = node.parentElement) {
      const color = numbers(getComputedStyle(node).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = {};
  for (const each of document.querySelectorAll("body *")) {
    const owns = [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!owns || each.id === "probe" || ["TITLE", "DESC", "SCRIPT"].includes(each.tagName.toUpperCase())) continue;
    const style = getComputedStyle(each);
    const color = numbers(each instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [luminance(color), luminance(ground(each))].sort((x, y) => y - x);
    const owner = each.closest(":not(bdi)");
    const name = owner.tagName + "." + (owner.getAttribute("class") || owner.getAttribute("fill") || "");
    const ratio = (a + 0.05) / (b + 0.05);
    found[name] = Math.min(found[name] ?? 99, ratio);
  }
  return found;
})()"""
"""The least contrast of text with what is behind it (WCAG 2), by element and class or colour."""
