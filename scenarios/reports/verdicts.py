"""Verdicts in a word."""

from __future__ import annotations

from rich.text import Text


def verdict(holds: bool) -> Text:
    """`holds` in green or `FAILS` in red."""
    return Text("holds", "green") if holds else Text("FAILS", "bold red")
