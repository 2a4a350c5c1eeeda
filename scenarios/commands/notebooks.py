"""Notebooks of the tutorials and lessons: the documentation's pages for Jupyter, without outputs."""

import json
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

CELL = re.compile(r"^```\{code-cell\}\n((?::[^\n]*\n)*)(.*?)\n```$", flags=re.M | re.S)
HEADER = re.compile(r"\A---\n.*?\n---\n", flags=re.S)
DOWNLOAD = re.compile(r"^\{nb-download\}.*$", flags=re.M)
LINK = re.compile(r"\{doc\}`(?:(?P<label>[^<`]+)<(?P<target>[^>`]+)>|(?P<page>[^`]+))`")


def notebooks(folder: Path) -> dict[Path, str]:
    """Return the text of the notebook of every page, by its path in a folder."""
    pages = {
        Path(page.name).stem: page.read_text(encoding="utf-8")
        for page in resources.files("scenarios.templates").joinpath("tutorials").iterdir()
        if page.name.endswith(".md")
    }
    titles = {name: re.findall(r"^# (.+)$", text, flags=re.M)[0] for name, text in sorted(pages.items())}
    return {folder / f"{name}.ipynb": notebook(pages[name], titles) for name in titles}


def notebook(page: str, titles: Mapping[str, str]) -> str:
    """Return the notebook of a page, as JSON.

    Args:
        page: text of the page, in MyST Markdown: cells stand in fences that begin with `{code-cell}`.
        titles: titles of the pages that become notebooks, by name; links to others become plain text.
    """

    def link(found: re.Match[str]) -> str:
        name = (found["target"] or found["page"]).rpartition("/")[2]
        label = (found["label"] or titles.get(name, f"*{name.replace('_', ' ')}*")).strip()
        return f"[{label}]({name}.ipynb)" if name in titles else f"{label} (documentation)"

    parts = CELL.split(DOWNLOAD.sub("", HEADER.sub("", page)))  # text, options, code, text, ...
    cells: list[dict[str, Any]] = []
    for text, options, code in zip(parts[::3], [*parts[1::3], ""], [*parts[2::3], None], strict=True):
        if text.strip():
            cells.append({"cell_type": "markdown", "metadata": {}, "source": LINK.sub(link, text).strip()})
        if code is not None:
            folded = {"tags": ["hide-cell"], "jupyter": {"source_hidden": True}}
            metadata = folded if "hide-cell" in options else {}
            empty = {"execution_count": None, "outputs": []}
            cells.append({"cell_type": "code", "metadata": metadata, "source": code} | empty)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
