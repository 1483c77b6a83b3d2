"""The command `ros2 ldos`: hands its words to the program `ldos`, which then has this process."""

import argparse
import importlib.util
import os
import shutil
import sys

from ros2cli.command import CommandExtension

_MODULE = 'pytest_ldos'
_USAGE = 2
_MISSING = """\
ros2 ldos: pytest-ldos is not installed where this shell looks for programs
  → activate the environment that has it; `make ros2-setup` in its checkout makes one, .venv-ros2\
"""


class LdosCommand(CommandExtension):
    """Measure a stack, judge it against a baseline, look at its traces."""

    def add_arguments(self, parser, cli_name, *, argv=None):
        """Leave every word to the program, options among them: `-h` too is its own."""
        parser.prefix_chars = ''
        parser.add_argument('words', nargs=argparse.REMAINDER, help='words for `ldos`')

    def main(self, *, parser, args):
        """Become the program; return only where there is none."""
        program = find_program()
        if program is None:
            print(_MISSING, file=sys.stderr)
            return _USAGE
        os.execv(program[0], [*program, *args.words])


def find_program():
    """Return the command of `ldos`: that of the active environment, or this Python's own; else None."""
    found = shutil.which('ldos')
    if found is not None:
        return [found]
    if importlib.util.find_spec(_MODULE) is not None:
        return [sys.executable, '-m', f'{_MODULE}.cli.main']
    return None
