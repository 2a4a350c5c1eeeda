"""Rooms (packages) import in one direction, files are short, and only the engine room imports PyBullet."""

import graphlib
import importlib
import re
import subprocess
import sys
from itertools import pairwise
from types import ModuleType

import pytest

import twin
from tests.support.house import HOUSE, entered, imported, imports
from twin.base.wings import WINGS, from_above

ORDER = (
    "urdf", "twin.base",
    "twin.physics", "twin.physics.rotations", "twin.physics.multibody", "twin.physics.robot.drives",
    "twin.physics.robot", "twin.physics.kinematics", "twin.physics.dynamics",
    "twin.physics.dynamics.symbolic",
    "twin.physics.trajectories", "twin.physics.engine.window", "twin.physics.engine", "twin.physics.control",
    "twin.data", "twin.data.logs.recordings", "twin.data.logs",
    "twin.data.identification",
    "twin.studies", "twin.studies.views", "twin.studies.cell", "twin.studies.learning", "twin.studies.sweeps",
    "twin.abb", "twin.abb.rapid", "twin.abb.egm.wire", "twin.abb.egm.guidance", "twin.abb.egm.robot",
    "twin.abb.egm.mirror", "twin.abb.egm", "twin.abb.controller", "twin.abb.rws",
    "twin", "controllers",
    "scenarios.options", "scenarios.metric", "scenarios.setup", "scenarios.class_rules", "scenarios.bench",
    "scenarios.judging", "scenarios.scenario", "scenarios", "scenarios.running", "scenarios.report",
    "scenarios.shell", "scenarios.studies.cell", "scenarios.studies.sweeps", "scenarios.studies.learning",
    "scenarios.data.identification", "scenarios.commands", "scenarios.templates",
    "scenarios.abb.rapid", "scenarios.abb.egm", "scenarios.abb",
)  # fmt: skip
"""Rooms from the bottom up, wing after wing: a room imports only from rooms before it.

Five files of `scenarios` stand for themselves in this order, because every scenario is made of them.
"""

LONGEST = 700

HOME = "CONST jointtarget home := [[5,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];\n"


def room_of_file(file):
    """Return the room of a file of the project."""
    module = ".".join(file.relative_to(HOUSE).with_suffix("").parts)
    return module if module in ORDER else module.rpartition(".")[0]


def rooms():
    """Return the files of every room."""
    found = {}
    for package in ("urdf", "twin", "controllers", "scenarios"):
        for file in sorted((HOUSE / package).rglob("*.py")):
            found.setdefault(room_of_file(file), []).append(file)
    return found


ROOMS = rooms()


def modules_of(file):
    """Yield the names that a file imports, each as a module and as a name of one."""
    for module, name in imported(file):
        yield module
        yield f"{module}.{name}".rstrip(".")


def room_of(module):
    """Return the room of a module, or `None` if the module is not part of the project."""
    path = HOUSE.joinpath(*module.split("."))
    if path.with_suffix(".py").is_file():
        return room_of_file(path.with_suffix(".py"))
    return module if path.is_dir() and module in ROOMS else None


def test_every_room_has_a_place_in_the_order():
    assert set(ROOMS) == set(ORDER)


@pytest.mark.parametrize("room", ORDER)
def test_room_imports_only_from_rooms_below_it(room):
    upwards = {
        f"{file.relative_to(HOUSE)} imports {module}"
        for file in ROOMS[room]
        for module in modules_of(file)
        if (source := room_of(module)) is not None and ORDER.index(source) > ORDER.index(room)
    }
    assert not upwards


def test_functions_above_exist():
    """A method that hands its object to a function above names this function in a text."""
    names = {
        name
        for files in ROOMS.values()
        for file in files
        for name in re.findall(r'from_above\("([\w.]+)"\)', file.read_text(encoding="utf-8"))
    }
    assert len(names) == 5
    for name in names:
        assert callable(from_above(name))


@pytest.mark.parametrize("room", ORDER)
def test_file_has_at_most_700_lines(room):
    lengths = {file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in ROOMS[room]}
    assert max(lengths.values()) <= LONGEST, max(lengths, key=lambda name: lengths[name])


def test_no_files_import_each_other_in_a_circle():
    """Also not for type checkers, or within a function."""
    graph = imports()
    assert sum(map(len, graph.values())) > 1500
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")


def test_nothing_below_imports_abb():
    above = ("twin.abb", "scenarios.abb")
    assert not [
        (module, name)
        for module, names in imports().items()
        for name in names
        if name.startswith(above) and not module.startswith(above)
    ]


@pytest.mark.parametrize(
    ("most", "words"),
    [
        (26, "list"),
        (84, "run joint_tracking --duration 0.1"),
        (110, "run {program}"),
    ],
)
def test_a_command_enters_few_files(most, words, tmp_path):
    """Files in which a function is executed: today's numbers, which no change raises without a reason."""
    program = tmp_path / "wait.mod"
    program.write_text(
        "MODULE M\nPROC main()\nMoveAbsJ home, v100, fine, tool0;\nENDPROC\n" + HOME + "ENDMODULE\n"
    )
    assert entered(*words.format(program=program).split()) <= most


def test_only_the_engine_room_imports_pybullet():
    importing_rooms = {
        room_of_file(file)
        for files in ROOMS.values()
        for file in files
        if any(module.partition(".")[0].startswith("pybullet") for module in modules_of(file))
    }
    assert importing_rooms == {"twin.physics.engine"}


def test_no_test_module_imports_another():
    """Shared code belongs in `tests/support` or `conftest.py`, also for processes that a test starts."""
    importing = re.compile(r"^\s*(?:from|import) tests\b.*\btest_\w+", re.M)
    files = sorted((HOUSE / "tests").rglob("*.py"))
    found = {str(file): importing.findall(file.read_text(encoding="utf-8")) for file in files}
    assert not {file: lines for file, lines in found.items() if lines}


def test_public_names_are_unique_and_no_submodule_shares_one():
    """Importing a submodule would replace a public name that is spelled alike."""
    assert len(set(twin.__all__)) == len(twin.__all__) > 50
    for path in (HOUSE / "twin").iterdir():
        assert path.stem not in twin.__all__ or isinstance(getattr(twin, path.stem), ModuleType)
    assert all(first < second for first, second in pairwise(sorted(twin.__all__)))
    for name in twin.__all__:
        assert getattr(twin, name) is not None
    with pytest.raises(AttributeError, match="inverse_kinetics"):
        _ = twin.inverse_kinetics


def test_importing_twin_and_the_command_line_loads_no_large_library():
    code = (
        "import sys, twin, scenarios.shell.command_line\n"
        "heavy = {'numba', 'urchin', 'pybullet', 'scipy', 'sympy', 'matplotlib', 'trimesh'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_simulation_without_a_window_does_not_import_the_window_room():
    code = (
        "import sys, twin\n"
        "with twin.Simulation(twin.load('irb140')) as simulation:\n"
        "    simulation.reset([0.0] * 6)\n"
        "    simulation.step([0.0] * 6)\n"
        "assert not [name for name in sys.modules if name.startswith('twin.physics.engine.window')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rooms_have_public_names_without_their_wing():
    code = (
        "import twin, twin.kinematics, twin.physics.kinematics\n"
        "from twin.dynamics.flexible_joint import FlexibleJoint\n"
        "assert twin.kinematics is twin.physics.kinematics\n"
        "assert twin.kinematics.__spec__.name == twin.kinematics.__name__ == 'twin.physics.kinematics'\n"
        "assert FlexibleJoint.__module__ == 'twin.physics.dynamics.flexible_joint'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    for wing, rooms_of_wing in WINGS.items():
        for room in rooms_of_wing:
            assert importlib.import_module(f"twin.{room}") is importlib.import_module(f"twin.{wing}.{room}")
    with pytest.raises(ModuleNotFoundError, match=r"twin\.kinetics"):
        importlib.import_module("twin.kinetics")
    with pytest.raises(ModuleNotFoundError, match=r"twin\.physics\.kinematics\.hand"):
        importlib.import_module("twin.kinematics.hand")
