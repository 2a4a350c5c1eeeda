"""`make docs` builds the pages without a warning, and the pages load nothing from the network."""

import os
import re
import subprocess
import sys

import pytest

from tests.support.doc_pages import HOUSE

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


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(folder)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HOUSE), os.environ.get("PYTHONPATH", "")])}
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
