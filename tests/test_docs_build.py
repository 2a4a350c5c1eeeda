"""`make docs` builds the pages without a warning, and the pages load nothing from the network."""

import os
import re
import runpy
import shutil
import subprocess
import sys

import pytest

from tests.support.browser import browser
from tests.support.doc_pages import HOUSE

pytestmark = pytest.mark.slow("builds the pages")

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data|srcset)\s*=\s*["']?(?:https?:)?//[^>]*>
    | <link\b(?![^>]*\brel=["']?canonical)[^>]*\bhref\s*=\s*["']?(?:https?:)?//[^>]*>
    | @import\s+(?:url\()?["']?(?:https?:)?//[^;]*
    | \burl\(\s*["']?(?:https?:)?//[^)]*\)
    | \b(?:fetch|importScripts|import)\(\s*["'`](?:https?:)?//[^)]*\)
    """,
    flags=re.X | re.I,
)
"""Pattern of whatever a browser loads from the network; a link that the reader may follow does not match."""

EXECUTED = "see_the_arm_move"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Folder of the built pages, from `make docs` if BUILT_PAGES names it."""
    if built := os.environ.get("BUILT_PAGES"):
        return HOUSE / built
    folder = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(folder)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(HOUSE), os.environ.get("PYTHONPATH", "")]),
        "TUTORIALS": f"{EXECUTED} parallelogram",  # a page that warned; `make docs` executes all of them
    }
    built = subprocess.run(command, cwd=HOUSE, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert not built.stderr
    return folder


def test_pages_load_nothing_from_the_network(pages):
    files = [path for path in pages.rglob("*") if path.suffix in (".html", ".css", ".js", ".svg")]
    assert len(files) > 30
    for path in files:
        found = LOADED.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.relative_to(pages)}: {found[0]}"


def test_page_of_a_notebook_shows_pictures_tables_a_replay_and_folded_answers(pages):
    text = (pages / "tutorials" / f"{EXECUTED}.html").read_text(encoding="utf-8")
    assert len(re.findall(r'<img [^>]*src="\.\./_images/\w+\.png"', text)) >= 4
    assert "<iframe srcdoc=" in text
    assert "joint_6" in text[text.index("<table>") : text.index("</table>")]
    assert text.count("<details") == text.count("Show the answer") == 2
    assert "http://127.0.0.1" not in text  # the address that viser prints


LESSONS = {
    "manipulator_equation", "newton_euler", "pd_pid_computed_torque", "dh_to_inverse_kinematics",
    "touch_and_force", "jacobian", "regressor",
}  # fmt: skip
TUTORIALS = sorted(page for page in HOUSE.glob("scenarios/templates/tutorials/*.md") if page.stem != "index")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_has_exercises_and_code_that_fits_the_page(page):
    text = page.read_text(encoding="utf-8")
    answers = re.findall(r":tags: \[hide-cell\]\n(.*?)```", text, flags=re.S)
    assert len(answers) == (3 if page.stem in LESSONS else 2)
    assert all("assert " in answer for answer in answers if page.stem in LESSONS)
    cells = re.findall(r"```\{code-cell\}\n(.*?)```", text, flags=re.S)
    assert len(cells) > 8
    assert max(len(line) for cell in cells for line in cell.splitlines()) <= 92
    assert f"<{page.stem}.ipynb>" in text


FLAWS = r"""[
    ...[...document.querySelectorAll('pre')].filter(e => e.offsetParent && e.scrollWidth > e.clientWidth)
        .map(e => 'scrolls: ' + e.innerText),
    ...[...document.querySelectorAll('th')].filter(e => e.offsetParent && !e.innerText.trim())
        .map(e => 'empty header: ' + e.parentElement.innerText),
    ...[...document.querySelectorAll('td')].flatMap(cell => {
        const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), split = []
        while (texts.nextNode())
            for (const number of texts.currentNode.data.matchAll(/[\d.]+(e[-+]?\d+)?/g)) {
                const range = document.createRange()
                range.setStart(texts.currentNode, number.index)
                range.setEnd(texts.currentNode, number.index + number[0].length)
                const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)))
                if (lines.size > 1) split.push('split number: ' + number[0])
            }
        return split
    })]"""
"""Program that lists what a reader would stumble over in a page."""


@pytest.mark.browser
def test_code_and_tables_fit_a_window_of_1280_pixels(pages, tmp_path):
    written = [*pages.glob("*.html"), *pages.glob("guides/*.html"), *pages.glob("tutorials/*.html")]
    assert len(written) > 35
    with browser(tmp_path) as open_page:
        for path in sorted(set(written) - {pages / "report.html"}):
            page = open_page(path.as_uri(), 1280, 900)
            page.wait_for("document.readyState == 'complete'")
            assert page.evaluate(FLAWS) == [], path.relative_to(pages)
            page.close()


BEYOND = """[...document.querySelectorAll('article table')].map(e => e.parentElement).filter(
    e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX == 'visible').map(e => e.innerText)"""
"""Program that lists the tables of a page that a narrow window cuts and does not scroll."""


@pytest.mark.browser
def test_tables_of_a_notebook_scroll_in_a_narrow_window(pages, tmp_path):
    with browser(tmp_path) as open_page:
        page = open_page((pages / "tutorials" / f"{EXECUTED}.html").as_uri(), 420, 900)
        page.wait_for("document.readyState == 'complete'")
        assert page.evaluate(BEYOND) == []


def test_pages_are_executed_again_when_a_package_changes(tmp_path, monkeypatch):
    """The name of the cache contains a hash of the packages, since the cache itself compares only texts."""
    monkeypatch.setattr(os, "environ", os.environ.copy())  # the configuration changes it
    digest = runpy.run_path(str(HOUSE / "docs" / "conf.py"))["digest"]
    before = digest(["controllers"])
    law = shutil.copytree(HOUSE / "controllers", tmp_path / "controllers") / "pid.py"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "controllers", raising=False)
    assert digest(["controllers"]) == before
    law.write_text(law.read_text(encoding="utf-8") + "#", encoding="utf-8")
    assert digest(["controllers"]) != before


def test_pattern_matches_every_kind_of_network_load():
    for text in (
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        "<img alt='' src='http://example/x.png'>",
        "@import 'https://example/x.css'",
        "src: url(https://example/font.woff)",
    ):
        assert LOADED.search(text), text
    assert not LOADED.search('<a href="https://example">')


def test_search_works_on_pages_opened_from_disk(pages):
    """Browsers load a script from disk, such as the index, but refuse to let a script fetch a file."""
    index = (pages / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")
    for page in ("guides/own_controller", "reference/kinematics", "conventions"):
        assert (pages / f"{page}.html").is_file()
        assert f'"{page}"' in index
    assert "SHOW_SEARCH_SUMMARY: false" in (pages / "_static" / "documentation_options.js").read_text()
