"""`irb-twin new`: what it writes works as it stands, and nothing else is touched."""

import importlib.util
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from markdown_it import MarkdownIt

import scenarios.templates
import twin
from scenarios.commands.new import KINDS
from scenarios.shell.command_line import main
from tests.support.full_disk import disk_full_after
from urdf.build import main as build

pytestmark = pytest.mark.slow("runs commands")

HOUSE = Path(twin.__file__).parents[1]
FILES = {
    "controller": {"NAME.py", "test_NAME.py"},
    "scenario": {"NAME.py", "test_NAME.py"},
    "robot": {"NAME/robot.toml", "NAME/NAME.urdf", "NAME/test_NAME.py"},
    "station": {f"NAME/{file}" for file in ("station.toml", "server.mod", "watch.mod", "client.py")},
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder of the user."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_what_is_written_passes_its_tests_outside_the_house(folder):
    """Each kind is written side by side; `urdf.build` builds the robot."""
    for kind in KINDS:
        before = found(folder)
        assert main(["new", kind, f"swing_{kind}"]) == 0
        assert found(folder) - before == {file.replace("NAME", f"swing_{kind}") for file in FILES[kind]}
    assert build(["--check", "swing_robot/robot.toml"]) == 0
    tests = {file for file in found(folder) if "test_" in file}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "."],
        env=os.environ | {"PYTHONPATH": str(HOUSE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(re.findall(r"^(\S+)::\S+ PASSED", done.stdout, re.MULTILINE)) == tests


def test_files_have_the_given_name_and_next_commands_are_printed(folder, command):
    (folder / "mine").mkdir()
    for kind, told in (
        ("controller", "run joint_tracking --controller ./mine/big_swing.py:BigSwing pd"),
        ("scenario", "run ./mine/small_swing.py --controller pd"),
        ("robot", "validate --robot ./mine/long_swing/robot.toml"),
    ):
        before = found(folder)
        name = re.search(r"mine/(\w+)", told)[1]
        out = command(["new", kind, name, "--folder", "mine"]).out
        for file in found(folder) - before:
            assert f"wrote {file}\n" in out
            text = (folder / file).read_text(encoding="utf-8")
            assert KINDS[kind].stem not in text
            assert "MyController" not in text
        assert not re.search("NAME|CLASS|AT/", out)
        assert f"  irb-twin {told}" in out


@pytest.mark.parametrize(
    "name", ["Swing", "9lives", "a-b", "a/b", "", "class", "é", "../x", "numpy", "test_law"]
)
def test_bad_name_is_rejected(name, folder, command):
    err = command(["new", "controller", name], 2).err
    told = "expected a name of lower-case letters, digits and _, as in sliding_mode, got"
    hides = f"{name!r} is the name of a module of Python or pytest"
    assert (hides if name in ("numpy", "test_law") else told) in err
    assert err.count("\n") == 1
    assert not found(folder)


@pytest.mark.parametrize("kind", [*KINDS, "notebooks"])
def test_what_is_there_stays(kind, folder, command):
    """Any one of the files, or a folder of that name; nothing is written."""
    names = {"robot": "swing", "station": "swing", "notebooks": "swing/parallelogram.ipynb"}
    there = folder / names.get(kind, "test_swing.py")
    there.parent.mkdir(exist_ok=True)
    there.write_text("mine", encoding="utf-8")
    err = command(["new", kind, "swing"], 2).err
    told = "choose another folder; nothing was" if kind == "notebooks" else "choose another name, or another"
    assert f"{there.relative_to(folder)} exists already: {told}" in err
    assert there.read_text(encoding="utf-8") == "mine"
    assert found(folder) == {there.relative_to(folder).as_posix()}


@pytest.mark.parametrize(
    ("words", "size"), [("robot swing", 0), ("robot swing", 5000), ("notebooks swing", 20_000)]
)
def test_all_files_or_none(words, size, folder, command):
    """The disk is full at once, or after one of the files."""
    with disk_full_after(size):
        err = command(["new", *words.split()], 1).err
    assert re.fullmatch(r"irb-twin: cannot write swing/\S+: File too large\n", err), err
    assert not list(folder.iterdir())


def test_the_templates_are_those_of_the_kinds():
    folder = Path(scenarios.templates.__file__).parent
    files = {path.name for path in folder.iterdir() if path.is_file() and path.name != "__init__.py"}
    assert files == {template for kind in KINDS.values() for template in kind.files}


def test_commands_name_this_python_and_install_pytest_where_it_is_missing(folder, monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda name: None)
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pytest" else find(name))
    assert main(["new", "controller", "sliding_mode", "--folder", str(folder)]) == 0
    install, test = capsys.readouterr().out.splitlines()[-2:]
    assert install == f"  {sys.executable} -m pip install pytest"
    assert test == f"  {sys.executable} -m pytest {folder.as_posix()}/test_sliding_mode.py"


PAGES = sorted(Path(scenarios.templates.__file__).parent.glob("tutorials/*.md"))


def code_of_page(page):
    """Return the code of a page's cells and whether each is folded, by another reader of Markdown."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.info == "{code-cell}":
            lines = token.content.splitlines()
            options = list(itertools.takewhile(lambda line: line.startswith(":"), lines))
            yield "\n".join(lines[len(options) :]), "hide-cell" in "".join(options)


def test_notebooks_have_the_code_of_the_pages_and_no_outputs(folder, command):
    out = command(["new", "notebooks", "lessons"]).out
    assert found(folder) == {f"lessons/{page.stem}.ipynb" for page in PAGES}
    assert out.splitlines()[-1].endswith("-m jupyterlab ./lessons")
    assert len(PAGES) > 11
    for page in PAGES:
        notebook = nbformat.read(folder / "lessons" / f"{page.stem}.ipynb", as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        folded = [cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in code]
        assert list(zip([cell.source for cell in code], folded, strict=True)) == list(code_of_page(page))
        assert not any(cell.outputs for cell in code)
        text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        assert text.startswith("# ")
        assert not re.search(r"\{(doc|nb-download)\}|^```|^---|kernelspec", text, flags=re.M)
        linked = set(re.findall(r"\]\(([^)]+)\)", text))
        assert linked <= {f"{page.stem}.ipynb" for page in PAGES}
        if page.stem == "index":
            assert len(linked) == len(PAGES) - 1  # all but itself


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("notebooks", "expected new notebooks FOLDER, as in new notebooks lessons"),
        ("notebooks a --folder b", "expected new notebooks FOLDER, as in new notebooks lessons"),
        ("notebooks none/lessons", "there is no folder none, in which lessons would be made"),
        ("notebooks file", "file is a file: expected a folder for the notebooks"),
        ("robot swing --folder /nowhere", "--folder /nowhere: there is no such folder"),
    ],
)
def test_bad_folder_is_rejected(words, told, folder, command):
    (folder / "file").touch()
    assert command(["new", *words.split()], 2).err == f"irb-twin: {told}\n"
    assert found(folder) == {"file"}
