"""How `--help` looks: paragraphs as wide as the terminal, examples as they are."""

from __future__ import annotations

import argparse
import re
import shutil
import textwrap

WIDEST = 100  # characters, beyond which lines are hard to read


class Unprintable(Exception):
    """Standard output takes no more: the disk behind it is full, or the like."""


class HelpPage(argparse.HelpFormatter):
    """Wraps paragraphs of descriptions; those with an indented line, as examples, stay as they are."""

    def __init__(self, prog: str) -> None:
        width = min(shutil.get_terminal_size().columns - 2, WIDEST)
        super().__init__(prog, max_help_position=28, width=width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = re.split(r"\n[ \t]*\n", text.strip("\n"))
        return "\n\n".join(
            paragraph if re.search(r"^[ \t]", paragraph, re.MULTILINE) else textwrap.fill(paragraph, width)
            for paragraph in paragraphs
        )
