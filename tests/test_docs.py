"""Run the commands and the Python code of README and the guides as printed."""

import functools
import re
from types import ModuleType, SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest

import controllers
import scenarios
import twin
from scenarios.abb.session import ServedRobot, robot_rows
from tests.support.doc_pages import HOUSE, PAGES, blocks, follow, run_in_bash, run_in_process
from twin.abb.egm import EgmResult, Lateness
from urdf.facts import TABLES

pytestmark = pytest.mark.slow("runs every command of the pages")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_instructions_of_a_page_work(page, tmp_path, monkeypatch, small_pictures):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    mpl.use("Agg")
    executed = follow(page, tmp_path)
    assert executed or page.stem not in EXECUTED or page.parent.name == "tutorials"


EXECUTED = (
    "README", "running_scenarios", "python", "own_controller", "own_scenario", "drives", "closed_loop",
    "recordings", "plots", "own_robot", "robot_toml", "continuous_integration", "sweep", "tune",
)  # fmt: skip


def test_every_kind_of_block_is_recognized():
    text = (
        "A table. Save this as\n`a/b.toml`:\n\n```toml\nx = 1\n```\n\n"
        "    irb-twin list\n    irb-twin --help\n\n"
        "<!-- not run: too long -->\n\n```python\n1 / 0\n```\n\n"
        "<!-- exit status 2 -->\n\n    irb-twin lost\n\n"
        "- a list\n    with an indented line\n\n```console\n$ python -V\n```\n"
    )
    saved, indented, skipped, failing, console = blocks(text)
    assert (saved.saved_as, saved.text, saved.line) == ("a/b.toml", "x = 1\n", 5)
    assert indented.is_command
    assert indented.text == "irb-twin list\nirb-twin --help\n"
    assert skipped.is_skipped
    assert (failing.status, indented.status) == (2, 0)
    assert console.kind == "console"
    assert [block.needs_bash for block in (indented, failing, console)] == [False, False, True]


@pytest.mark.parametrize("status", [0, 1])
def test_command_with_an_unexpected_exit_status_is_reported(status, tmp_path):
    with pytest.raises(AssertionError, match=r"guide, line 3: irb-twin dance"):
        run_in_bash("irb-twin dance", status, tmp_path, "guide, line 3")
    with pytest.raises(AssertionError, match=r"(?s)guide, line 3: irb-twin dance.*invalid choice"):
        run_in_process("irb-twin dance", status, "guide, line 3")
    run_in_bash("irb-twin dance", 2, tmp_path, "guide, line 3")
    run_in_process("irb-twin dance", 2, "guide, line 3")


REFERENCE = sorted((HOUSE / "docs" / "reference").glob("*.rst"))
ENTRIES = re.compile(r"^\.\. auto(?:class|data|exception|function|method):: (\S+)$", flags=re.M)


def offered(package, place):
    """Yield the names that a package and the packages in it offer, except for modules."""
    for name in package.__all__:
        item = getattr(package, name)
        if not isinstance(item, ModuleType):
            yield f"{place}.{name}"
        elif hasattr(item, "__all__"):
            yield from offered(item, f"{place}.{name}")


def test_every_public_name_is_in_the_reference():
    described = ENTRIES.findall("".join(page.read_text(encoding="utf-8") for page in REFERENCE))
    names = {name for name in offered(twin, "twin") if "__" not in name}
    assert 45 <= len([name for name in names if name.count(".") == 1]) <= 55
    assert not names - set(described)
    assert not {name for name in described if re.fullmatch(r"twin\.\w+", name)} - names


def attribute(owner, name):
    """Return an attribute; a submodule counts only if its package offers it, whatever was imported before."""
    found = getattr(owner, name)
    of_package = isinstance(owner, ModuleType) and isinstance(found, ModuleType)
    return owner.__getattr__(name) if of_package else found


@pytest.mark.parametrize("page", REFERENCE, ids=lambda page: page.stem)
def test_names_of_the_reference_are_attributes_as_written(page):
    packages = SimpleNamespace(twin=twin, controllers=controllers, scenarios=scenarios)
    lost = []
    for name in ENTRIES.findall(page.read_text(encoding="utf-8")):
        try:
            functools.reduce(attribute, name.split("."), packages)
        except AttributeError as error:
            lost.append(f"{name}: {error}")
    assert not lost, "\n".join(lost)


def test_every_key_of_a_robot_toml_is_explained():
    text = (HOUSE / "docs" / "guides" / "robot_toml.md").read_text(encoding="utf-8")
    for pattern, keys in TABLES.items():
        group = pattern.rstrip("?").partition(".")[0]
        assert not group or f"`[{group}" in text, group
        for key in keys:
            assert key == "*" or f"`{key.rstrip('?')}`" in text, key


def test_script_of_the_debugging_guide_reaches_its_breakpoint(monkeypatch):
    """Run the script without a window, with a breakpoint that raises."""
    text = (HOUSE / "docs" / "guides" / "debugging.md").read_text(encoding="utf-8")
    (script,) = (block.text for block in blocks(text) if "breakpoint()" in block.text)

    class Stopped(Exception):
        """Raised in place of a stop at the breakpoint."""

    def stop():
        raise Stopped

    monkeypatch.setattr("builtins.breakpoint", stop)
    with pytest.raises(Stopped):
        exec(script.replace("gui=True", "gui=False"), {})


def test_egm_guide_shows_every_row_of_the_result_table():
    text = (HOUSE / "docs" / "guides" / "egm.md").read_text(encoding="utf-8")
    (shown,) = (block.text for block in blocks(text) if "answers taken" in block.text)
    result = EgmResult(sent=1, lateness=Lateness(cycles=1), completed=1, runs=1)
    served = ServedRobot(result=result, joints=("joint_1",), tau_peak=np.ones(1), tau_share=np.ones(1))
    names = list(robot_rows(SimpleNamespace(limit=None), served))
    assert len(names) == 8
    table = shown.partition("guided for")[2].partition("\n")[2].strip().splitlines()
    assert [re.split(r"\s{3,}", line.strip())[0] for line in table[: len(names)]] == names
