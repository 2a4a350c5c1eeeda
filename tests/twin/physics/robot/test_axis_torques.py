"""Springs, gas springs, a user's columns and further friction: engine, model, rollout and identification."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from controllers.computed_torque import ComputedTorque
from tests.support import cable_column, foreign_urdf
from tests.support.identified_arms import GAS_SPRING
from twin.base.errors import TwinError
from twin.base.sibling_packages import PROJECT
from twin.data.identification.excitation import stored_excitation
from twin.data.identification.identify import with_load
from twin.data.identification.measurements import Measurements
from twin.data.identification.physical import physical_solution
from twin.data.identification.robot_file import write_robot_file
from twin.data.identification.torque_model import TorqueModel, friction_of
from twin.physics.multibody.axis_torques import Cylinder, Spring
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.loops import locked

pytestmark = pytest.mark.slow("loads and compiles arms")

TABLES = (
    GAS_SPRING
    + """
[spring.wrist]
joint = 5
stiffness = 3.0
torque = 1.5
source = "made up"

[column.cable]
function = "cable.py:cable"
value = 4.0
source = "made up"
"""
)
CABLE = Path(cable_column.__file__)
COLUMN = CABLE.read_text(encoding="utf-8")
FRICTION = {
    "coulomb_per_load": [0.05, 0.02, 0.03, 0.04, 0.01, 0.06],
    "viscous_root": [1.0, 2.0, 1.0, 0.3, 0.2, 0.1],
    "viscous_difference": [1.0, -0.8, 0.5, 0.05, -0.1, 0.05],
    "offset": [1.0, -3.0, 2.0, 0.2, 0.1, -0.3],
}


GIVEN = PROJECT / "urdf" / "irb140"


def written(folder, tables=TABLES, cable=COLUMN):
    """Write the IRB 140 with further tables and a column to a folder, and return the path of its file."""
    text = (GIVEN / "robot.toml").read_text(encoding="utf-8")
    (folder / "robot.toml").write_text(text + tables, encoding="utf-8")
    (folder / "irb140.urdf").write_bytes((GIVEN / "irb140.urdf").read_bytes())
    (folder / "cable.py").write_text(cable, encoding="utf-8")
    return folder / "robot.toml"


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    tables = TABLES.replace("cable.py", str(CABLE))
    robot = twin.load(written(tmp_path_factory.mktemp("sprung"), tables))
    assert robot.drives is not None
    drives = replace(robot.drives, static=robot.drives.coulomb, **FRICTION)
    return robot.with_drives("rigid", drives)


@pytest.fixture(scope="module")
def log(robot):
    """The arm follows an excitation motion under the torques of the exact model."""
    motion = stored_excitation(twin.load("irb140"))
    with twin.Simulation(robot, time_step=0.002) as plant:
        return twin.run_closed_loop(plant, ComputedTorque(robot), twin.sample(motion, 0.002))


@pytest.mark.parametrize("mode", ["ideal", "rigid", "elastic"])
def test_a_step_of_the_engine_is_that_of_the_model(robot, mode, rng):
    arm = uncompiled(robot.with_drives(mode))
    q, qd = rng.uniform(-0.8, 0.8, 6), rng.uniform(-1, 1, 6)
    tau = twin.gravity_torque(arm, q) + rng.normal(size=6)
    plant = twin.AnalyticPlant(arm, 5e-4)
    with twin.Simulation(arm, time_step=5e-4) as simulation:
        for one in (simulation, plant):
            one.reset(q, qd)
            for _ in range(3):
                one.step(tau)
        np.testing.assert_allclose(simulation.state(), plant.state(), rtol=0, atol=1e-12)
        np.testing.assert_allclose(simulation.tau_joint, plant.tau_joint, rtol=0, atol=1e-8)


def test_a_cylinder_has_the_length_between_its_ends(robot, rng):
    (cylinder,) = [one for one in robot.tree.torques if isinstance(one, Cylinder)]
    origin, a, b = np.array([0.07, 0.0, 0.352]), np.array([-0.25, 0.0, 0.30]), np.array([0.05, 0.0, 0.62])
    for q2 in rng.uniform(-1, 1, 5):
        c, s = np.cos(q2), np.sin(q2)
        end = origin + np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]) @ (b - origin)
        extension = cylinder.extension([0.0, q2, 0.0, 0.0, 0.0, 0.0], math)
        assert extension + 0.45 == pytest.approx(np.linalg.norm(end - a), abs=1e-12)
    a, b = rng.normal(size=(2, 3))  # with parts along the axis
    slanted = Cylinder.between(0, np.array([0.0, 0.0, 1.0]), a, b, np.eye(3), 0.45, 0.0, 0.0)
    for angle in rng.uniform(-3, 3, 5):
        end = Rotation.from_rotvec([0.0, 0.0, angle]).as_matrix() @ b
        assert slanted.extension([angle], math) + 0.45 == pytest.approx(np.linalg.norm(end - a), abs=1e-12)


def test_gravity_torque_is_the_slope_of_the_energy(robot, rng):
    conservative = uncompiled(replace(robot, tree=replace(robot.tree, torques=robot.tree.torques[:2])))
    q, e, zero = rng.uniform(-1, 1, 6), 1e-5, np.zeros(6)
    slope = [
        (twin.energy(conservative, q + e * d, zero) - twin.energy(conservative, q - e * d, zero)) / (2 * e)
        for d in np.eye(6)
    ]
    np.testing.assert_allclose(twin.gravity_torque(conservative, q), slope, rtol=0, atol=1e-6)


def test_identification_gives_all_values_back(robot, log, tmp_path):
    """Values that the given file has wrong come back from the log, to 1e-8, and from the written file.

    A fit without the further friction that the robot has would count it twice in the written file.
    """
    wrong = tuple(one.with_values([0.5 * value for value in one.values]) for one in robot.tree.torques)
    believed = replace(robot, tree=replace(robot.tree, torques=wrong))
    found = twin.identify(believed, log)
    assert {kind for kind, _ in found.model.friction} == {"load", "root", "difference"}
    assert np.max(found.residuals.percent) < 1e-6
    true = found.model.base.K @ replace(found.model, robot=robot).parameters.values
    np.testing.assert_allclose(found.beta, true, rtol=1e-7, atol=1e-8)
    alone = {one.symbol: one.value for one in found.values if one.stands_for == one.symbol}
    assert alone["Kz2"] == pytest.approx(700.0, rel=1e-8)
    assert alone["cable"] == pytest.approx(4.0, rel=1e-8)
    assert alone["Fl6"] == pytest.approx(0.06, rel=1e-7)
    solution = physical_solution(found)
    loaded = twin.load(write_robot_file(solution, tmp_path / "found.toml")[0]).with_drives("rigid")
    for one, expected in zip(loaded.tree.torques, solution.robot.tree.torques, strict=True):
        np.testing.assert_allclose(one.values, expected.values, rtol=1e-12)
    for key in FRICTION:
        found, expected = (getattr(one.drives, key) for one in (loaded, solution.robot))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(loaded.drives.coulomb_per_load, FRICTION["coulomb_per_load"], rtol=1e-3)


def test_a_load_that_is_not_recorded_is_that_of_links_and_springs(robot, rng):
    """At constant speed, and without a constant torque, which no torque tells from an offset."""
    robot = replace(robot, tree=replace(robot.tree, torques=robot.tree.torques[1:]))
    model = TorqueModel(robot, friction=friction_of(robot, ("root", "difference")))
    beta = model.base.K @ model.parameters.values
    q, qd = rng.uniform(-1, 1, (2, 20, 6))
    tau = np.zeros_like(q)
    used = np.ones(q.shape, dtype=bool)
    plain = Measurements("x", np.arange(20.0), q, qd, tau, qd, tau, used, None, 1.0, "")
    expected = twin.inverse_dynamics(uncompiled(robot.arm), q, qd, tau)
    loaded = with_load(model, beta, plain)
    np.testing.assert_allclose(loaded.load, expected, rtol=0, atol=1e-9)
    recorded = replace(plain, load=qd)
    assert with_load(model, beta, recorded) is recorded


def test_a_log_keeps_the_torques_of_its_robot_and_is_refused_beside_another_column(robot, log, tmp_path):
    given = twin.load(written(tmp_path)).with_drives("rigid", robot.drives)
    changed = tuple(one.with_values([2.0 * value for value in one.values]) for one in given.tree.torques)
    path = tmp_path / "log.npz"
    replace(log, robot=uncompiled(replace(given, tree=replace(given.tree, torques=changed)))).save(path)
    read = twin.Log.load(path).robot
    assert read.tree.torques == changed
    np.testing.assert_array_equal(read.drives.offset, robot.drives.offset)
    (tmp_path / "cable.py").write_text(COLUMN.replace("2.0", "3.0"))
    with pytest.raises(TwinError, match="is now another robot"):
        twin.Log.load(path)


def test_locked_joints_have_no_springs(robot):
    torques = robot.tree.torques
    conservative = replace(robot, loops=(), tree=replace(robot.tree, torques=torques[:2]))
    assert locked(conservative, 4).tree.torques == torques[1:2]
    with pytest.raises(TwinError, match="has the column cable over all its joints"):
        locked(robot, 3)


def test_a_rollout_is_the_run_of_the_plant(load):
    arm = twin.load(load(foreign_urdf.robot(foreign_urdf.chain(2))).urdf)
    cylinder = Cylinder.between(1, *np.eye(3)[[1, 0, 2]], np.eye(3), 1.2, 90.0, 70.0)
    arm = replace(arm, tree=replace(arm.tree, torques=(Spring(0, 3.0, 1.5), cylinder)))
    further = {key: values[:2] for key, values in FRICTION.items()}
    arm = arm.with_drives("rigid", twin.Drives([100.0, 80.0], 1e-4, viscous=2.0, **further))
    path = twin.quintic([0.1, 0.2], [0.15, 0.1], duration=0.1)
    samples, law = twin.sample(path, 0.002), ComputedTorque(arm)
    plant = twin.run_closed_loop(twin.AnalyticPlant(arm, 0.002), law, samples)
    fast = twin.run_rollouts(arm, law, samples, time_step=0.002)
    np.testing.assert_allclose(np.squeeze(fast.q), plant.q, rtol=0, atol=1e-13)


def test_values_may_have_any_sign(tmp_path):
    """An identification may find them so, and its file must load."""
    tables = TABLES
    for value in ("stiffness = 3.0", "torque = 1.5", "force = 900.0", "stiffness = 700.0", "value = 4.0"):
        assert tables.count(value) == 1
        tables = tables.replace(value, value.replace("= ", "= -"))
    torques = twin.load(written(tmp_path, tables)).tree.torques
    assert [value for one in torques for value in one.values] == [-3.0, -1.5, -900.0, -700.0, -4.0]


def test_wrong_tables_and_columns_are_refused_in_a_sentence(tmp_path):
    for before, after, said in (
        ("joint = 5", "joint = 7", "spring.wrist: expected a joint from 1 to 6, got 7"),
        ("force = 900.0", 'force = "much"', "cylinder.balancer.force: expected a finite number, got 'much'"),
        ("to = [0.05, 0.0, 0.62]", "to = [-0.25, 0.0, 0.30]", "its ends meet at some angle of the joint"),
        ("cable.py:cable", "cable.py", "column.cable: expected function as 'file.py:name', got 'cable.py'"),
        ("cable.py:cable", "cable.py:nothing", "nothing"),
    ):
        with pytest.raises(TwinError, match=said):
            twin.load(written(tmp_path, TABLES.replace(before, after)))
    with pytest.raises(TwinError, match="depends on accelerations"):
        twin.load(written(tmp_path, cable=COLUMN.replace("[0.0", "[qdd[0]")))
