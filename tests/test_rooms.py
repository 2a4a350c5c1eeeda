"""The rooms of the house: arrows between them run one way, none is overfull, PyBullet is behind one door."""

import ast
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import twin

HOUSE = Path(twin.__file__).parents[1]
ORDER = (
    "urdf",
    "twin",
    "twin.rotations",
    "twin.multibody",
    "twin.robot.drives",
    "twin.robot",
    "twin.robot.loading",
    "twin.kinematics",
    "twin.dynamics",
    "twin.dynamics.symbolic",
    "twin.logs.recordings",
    "twin.trajectories",
    "twin.engine.window",
    "twin.engine",
    "twin.logs",
    "twin.logs.views",
    "twin.control",
    "twin.sweeps",
    "twin.identification.drives",
    "twin.identification",
    "twin.egm.wire",
    "twin.egm.guidance",
    "twin.egm.robot",
    "twin.egm.mirror",
    "twin.egm",
    "controllers",
    "scenarios.metric",
    "scenarios.cli.arguments",
    "scenarios.base",
    "scenarios.bench",
    "scenarios.checks",
    "scenarios",
    "scenarios.running",
    "scenarios.report",
    "scenarios.sweeping",
    "scenarios.cli",
    "scenarios.cli.egm",
    "scenarios.templates",
)
"""From the ground up: a room imports from those before it.  Three files have places of their own: what
every scenario shares is below what scenarios are made of."""

MOST_FILES = 14
LONGEST = 500


def room_of_file(file):
    """The room of a file of ours."""
    module = ".".join(file.relative_to(HOUSE).with_suffix("").parts)
    return module if module in ORDER else module.rpartition(".")[0]


def rooms():
    """The files of every room."""
    found = {}
    for package in ("urdf", "twin", "controllers", "scenarios"):
        for file in sorted((HOUSE / package).rglob("*.py")):
            found.setdefault(room_of_file(file), []).append(file)
    return found


ROOMS = rooms()


def imported(file):
    """The modules of ours that a file imports, at its top or within a function."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module):
    """The room of a module, or `None` for what is none of ours."""
    path = HOUSE.joinpath(*module.split("."))
    if path.with_suffix(".py").is_file():
        return room_of_file(path.with_suffix(".py"))
    return module if path.is_dir() and module in ROOMS else None


def test_every_room_is_known():
    assert set(ROOMS) == set(ORDER)


@pytest.mark.parametrize("room", ORDER)
def test_a_room_imports_from_those_below_it_alone(room):
    upwards = {
        f"{file.relative_to(HOUSE)} imports {module}"
        for file in ROOMS[room]
        for module in imported(file)
        if (there := room_of(module)) is not None and ORDER.index(there) > ORDER.index(room)
    }
    assert not upwards


@pytest.mark.parametrize("room", ORDER)
def test_a_room_is_not_overfull_and_its_files_are_short(room):
    assert len([file for file in ROOMS[room] if file.name != "__init__.py"]) <= MOST_FILES
    lengths = {file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in ROOMS[room]}
    assert max(lengths.values()) <= LONGEST, max(lengths, key=lambda name: lengths[name])


def test_pybullet_is_behind_one_door():
    doors = {
        room_of_file(file)
        for files in ROOMS.values()
        for file in files
        if any(module.partition(".")[0].startswith("pybullet") for module in imported(file))
    }
    assert doors == {"twin.engine"}


def test_no_test_module_imports_another():
    """What they share is in `tests/support` or in a `conftest.py`, also for the processes that they start."""
    importing = re.compile(r"^\s*(?:from|import) tests\b.*\btest_\w+", re.M)
    files = sorted((HOUSE / "tests").rglob("*.py"))
    found = {str(file): importing.findall(file.read_text(encoding="utf-8")) for file in files}
    assert not {file: lines for file, lines in found.items() if lines}


def test_a_name_is_public_once_and_no_module_takes_it():
    """Importing a submodule would replace a public name that is the same."""
    assert len(set(twin.__all__)) == len(twin.__all__) > 60
    assert not set(twin.__all__) & {path.stem for path in (HOUSE / "twin").iterdir()}
    assert all(first < second for first, second in pairwise(sorted(twin.__all__)))
    for name in twin.__all__:
        assert getattr(twin, name) is not None
    with pytest.raises(AttributeError, match="inverse_kinetics"):
        _ = twin.inverse_kinetics


def test_the_top_of_the_house_is_light():
    code = (
        "import sys, twin, scenarios.cli.command_line\n"
        "heavy = {'numba', 'urchin', 'pybullet', 'scipy', 'sympy', 'matplotlib', 'trimesh'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_simulation_without_a_window_imports_none():
    code = (
        "import sys, twin\n"
        "with twin.Simulation(twin.load('irb140')) as simulation:\n"
        "    simulation.reset([0.0] * 6)\n"
        "    simulation.step([0.0] * 6)\n"
        "assert not [name for name in sys.modules if name.startswith('twin.engine.window')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
