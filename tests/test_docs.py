"""What README and the guides tell their reader to do works as it stands there."""

import re
from types import ModuleType, SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

import twin
from scenarios.cli.egm.serving import Served, rows
from tests.support.doc_pages import HOUSE, PAGES, blocks, follow, give, give_here
from twin.egm import EgmResult, Lateness
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


ROOMS = [name for name in twin.__all__ if isinstance(getattr(twin, name), ModuleType)]
"""Packages and modules of `twin` that are reached from it."""


def test_every_public_name_is_in_the_reference():
    pages = "".join(path.read_text(encoding="utf-8") for path in (HOUSE / "docs" / "reference").glob("*.rst"))
    described = re.findall(r"^\.\. auto(?:function|class):: twin\.([\w.]+)$", pages, flags=re.M)
    face = [name for name in twin.__all__ if name not in ROOMS and not name.startswith("_")]
    rooms = [room for room in ROOMS if room not in ("egm", "plugins")]
    inside = {f"{room}.{name}" for room in rooms for name in getattr(twin, room).__all__}
    assert 45 <= len(face) <= 55
    assert sorted(face) == sorted(name for name in described if "." not in name)
    assert inside <= set(described)


def test_every_key_of_a_robot_toml_is_explained():
    text = (HOUSE / "docs" / "guides" / "robot_toml.md").read_text(encoding="utf-8")
    for pattern, keys in TABLES.items():
        group = pattern.rstrip("?").partition(".")[0]
        assert not group or f"`[{group}" in text, group
        for key in keys:
            assert key == "*" or f"`{key.rstrip('?')}`" in text, key


def test_the_breakpoint_of_the_guide_to_debugging_stops(monkeypatch):
    """Its script, without the window, and a breakpoint that raises."""
    text = (HOUSE / "docs" / "guides" / "debugging.md").read_text(encoding="utf-8")
    (script,) = (block.text for block in blocks(text) if "breakpoint()" in block.text)

    class Stopped(Exception):
        """What the breakpoint does here."""

    def stop():
        raise Stopped

    monkeypatch.setattr("builtins.breakpoint", stop)
    with pytest.raises(Stopped):
        exec(script.replace("gui=True", "gui=False"), {})


def test_the_guide_to_egm_shows_every_row_of_the_table():
    text = (HOUSE / "docs" / "guides" / "egm.md").read_text(encoding="utf-8")
    (shown,) = (block.text for block in blocks(text) if "answers taken" in block.text)
    result = EgmResult(sent=1, lateness=Lateness(cycles=1), completed=1, runs=1)
    served = Served(result=result, joints=("joint_1",), tau_peak=np.ones(1), tau_max=np.ones(1))
    names = list(rows(SimpleNamespace(limit=None), served))
    assert len(names) == 7
    table = shown.partition("has ended\n")[2].strip().splitlines()
    assert [re.split(r"\s{3,}", line.strip())[0] for line in table[: len(names)]] == names
