"""A real program whose function and thread are called what no compiler would call them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SYMBOL = 'evil<script>alert(1)</script>::f<int, a&>(char const*);\x1b]0;owned\x07"'
THREAD = "\x1b[31m;<b>& 1/2"
TOOLS = ("cc", "objcopy")
REASON = "no compiler" if any(shutil.which(tool) is None for tool in TOOLS) else ""

_SOURCE = r"""
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

int spin(int count) {
  volatile int sum = 0;
  for (int number = 0; number < count; ++number) sum += number;
  return sum;
}

int main(int argc, char **argv) {
  time_t end = time(NULL) + 30;
  prctl(PR_SET_NAME, argv[argc - 1]);
  puts("ready");
  fflush(stdout);
  while (time(NULL) < end) spin(100000);
}
"""


def build_hostile(folder: Path) -> Path:
    """Builds it; it runs until it is ended, half a minute at most."""
    source, made, program = folder / "hostile.c", folder / "hostile.o", folder / "hostile"
    source.write_text(_SOURCE)
    subprocess.run(["cc", "-O1", "-fno-inline", "-fno-ipa-ra", "-c", str(source), "-o", str(made)], check=True)
    subprocess.run(["objcopy", f"--redefine-sym=spin={SYMBOL}", str(made)], check=True)
    subprocess.run(["cc", str(made), "-o", str(program)], check=True)
    return program
