"""What README and the guides tell their reader to do works as it stands there."""

import re

import matplotlib as mpl
import pytest

import twin
from tests.doc_pages import HOUSE, PAGES, blocks, follow, give, give_here
from urdf.facts import TABLES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_works(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    mpl.use("Agg")
    done = follow(page, tmp_path)
    assert done or page.stem not in EXECUTED


EXECUTED = (
    "README",
    "running_scenarios",
    "python",
    "own_controller",
    "own_scenario",
    "drives",
    "closed_loop",
    "recordings",
    "plots",
    "own_robot",
    "robot_toml",
    "continuous_integration",
    "sweep",
    "tune",
)


def test_the_blocks_of_a_page():
    """A page of every kind of block: what is seen of it."""
    text = (
        "A table. Save this as\n`a/b.toml`:\n\n```toml\nx = 1\n```\n\n"
        "    irb-twin list\n    irb-twin --help\n\n"
        "<!-- not run: too long -->\n\n```python\n1 / 0\n```\n\n"
        "<!-- exit status 2 -->\n\n    irb-twin lost\n\n"
        "- a list\n    with an indented line\n\n```console\n$ python -V\n```\n"
    )
    saved, listed, left_out, lost, console = blocks(text)
    assert (saved.saved_as, saved.text, saved.line) == ("a/b.toml", "x = 1\n", 5)
    assert listed.is_command
    assert listed.text == "irb-twin list\nirb-twin --help\n"
    assert left_out.is_left_out
    assert (lost.status, listed.status) == (2, 0)
    assert console.kind == "console"
    assert [block.needs_bash for block in (listed, lost, console)] == [False, False, True]


@pytest.mark.parametrize("status", [0, 1])
def test_a_command_that_ends_otherwise_is_told(status, tmp_path):
    with pytest.raises(AssertionError, match=r"guide, line 3: irb-twin dance"):
        give("irb-twin dance", status, tmp_path, "guide, line 3")
    with pytest.raises(AssertionError, match=r"(?s)guide, line 3: irb-twin dance.*invalid choice"):
        give_here("irb-twin dance", status, "guide, line 3")
    give("irb-twin dance", 2, tmp_path, "guide, line 3")
    give_here("irb-twin dance", 2, "guide, line 3")


def test_every_public_name_is_in_the_reference():
    pages = "".join(path.read_text(encoding="utf-8") for path in (HOUSE / "docs" / "reference").glob("*.rst"))
    described = re.findall(r"^\.\. auto(?:function|class):: twin\.(\w+)$", pages, flags=re.M)
    assert sorted(described) == sorted(name for name in twin.__all__ if not name.startswith("_"))


def test_every_key_of_a_robot_toml_is_explained():
    text = (HOUSE / "docs" / "guides" / "robot_toml.md").read_text(encoding="utf-8")
    for pattern, keys in TABLES.items():
        group = pattern.rstrip("?").partition(".")[0]
        assert not group or f"`[{group}" in text, group
        for key in keys:
            assert key == "*" or f"`{key.rstrip('?')}`" in text, key
