"""Drives in the engine: one step against the equation of motion and the analytic plant, and its manners.

What sticks is in `test_sticking.py`, rotors as bodies are in `test_rotors.py`.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.engine_states import BODY, random_states, relative, with_coupled_wrist
from tests.support.peers import one_step
from tests.support.random_trees import interpreted, random_urdf
from twin.physics.control.plant import AnalyticPlant
from twin.physics.dynamics.equation_of_motion import inverse_dynamics, mass_matrix
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import jacobian
from twin.physics.robot.drives.drives import Drives

pytestmark = pytest.mark.slow("simulates in the engine")

DT = 1e-3
TOOL = np.array([[0, 0, 1, 0.05], [0.6, 0.8, 0, -0.03], [-0.8, 0.6, 0, 0.2], [0, 0, 0, 1]])


def random_tree(load):
    """Branches and slides, whose joints PyBullet counts in an order of its own, with drives for them."""
    rng = np.random.default_rng(3)
    robot = load(random_urdf(rng, 7))
    tree, order = robot.tree, [0, 1, 6, 2, 3, 5, 4]
    shuffled = replace(
        tree,
        names=tuple(tree.names[i] for i in order),
        kinds=tuple(tree.kinds[i] for i in order),
        parents=tuple(order.index(p) if (p := tree.parents[i]) >= 0 else -1 for i in order),
        T_parent_joint=tree.T_parent_joint[order],
        axes=tree.axes[order],
        inertias=tree.inertias[order],
        flange_joint=order.index(tree.flange_joint),
    )
    coulomb = rng.uniform(0, 3, 7)
    drives = Drives(
        ratio=rng.choice([-1, 1], 7) * rng.uniform(20, 120, 7),
        rotor_inertia=rng.uniform(1e-5, 1e-3, 7),
        coupling=np.eye(7) + np.tril(rng.uniform(-0.3, 0.3, (7, 7)), -1),
        coulomb=coulomb,
        static=1.5 * coulomb,
        stribeck_speed=0.01,
        viscous=rng.uniform(0, 2, 7),
        stiffness=rng.uniform(5e3, 2e4, 7),
        damping=5.0,
    )
    return interpreted(replace(robot, tree=shuffled, drives=drives, tau_max=np.full(7, 30.0)))


@pytest.fixture(params=["irb140", "irb1400", "coupled", "tree"])
def driven(request, irb140, irb1400, load):
    """Robots with drives, which are not chosen yet."""
    if request.param == "tree":
        return random_tree(load)
    arms = {"irb140": irb140, "irb1400": irb1400, "coupled": with_coupled_wrist(irb140)}
    return arms[request.param]


def as_it_was(robot):
    """The tree without compiled kernels again, which changes of a robot leave behind."""
    return interpreted(robot) if robot.name == "random" else robot


def friction(drives, before, after):
    """F at the joints (n,), in [N m], of shafts that move: written anew, from the law as it is printed."""
    v, w = drives.coupling @ after, drives.coupling @ before
    level = drives.coulomb + (drives.static - drives.coulomb) * np.exp(-((w / drives.stribeck_speed) ** 2))
    return drives.coupling.T @ (level * np.sign(v) + drives.viscous * v)


# ---- one step -------------------------------------------------------------------------------------


def test_one_step_fulfils_the_equation_of_motion(driven):
    """`(M + N^T J N) qdd + h + F(qd+) = tau`, with our M and h, wherever every shaft moves on."""
    robot = as_it_was(driven.with_payload(BODY).with_drives("rigid"))
    drives, moving, states = robot.drives, 0, 10 if robot.name == "random" else 100  # Python runs that one
    A = sum(J * np.outer(row, row) for J, row in zip(drives.rotor_inertia, drives.motor_matrix, strict=True))
    with Simulation(robot) as simulation:
        for q, qd, tau in random_states(robot, states):
            qdd = one_step(simulation, q, qd, tau)
            after = qd + DT * qdd
            if np.all(np.abs(drives.coupling @ after) > 1e-9):
                moving += 1
                load = (
                    tau - inverse_dynamics(robot.arm, q, qd, np.zeros(robot.n)) - friction(drives, qd, after)
                )
                assert relative(qdd, np.linalg.solve(mass_matrix(robot.arm, q) + A, load)) < 1e-10
    assert moving > 0.8 * states


@pytest.mark.parametrize("mode", ["rigid", "elastic"])
def test_one_step_is_the_analytic_plant_s(driven, mode):
    """On a wall, under a wrench at a tool; elastic drives start where they carry the arm."""
    robot = as_it_was(driven.with_payload(BODY).mounted("wall").with_drives(mode))
    plant, F = (
        AnalyticPlant(robot),
        np.random.default_rng(2).uniform(-50, 50, (8 if robot.name == "random" else 30, 6)),
    )
    with Simulation(robot) as simulation:
        for k, (q, qd, tau) in enumerate(random_states(robot, len(F))):
            qdd = one_step(simulation, q, qd, tau, F[k], TOOL)
            assert relative(qdd, one_step(plant, q, qd, tau, F[k], TOOL)) < 1e-10
            given = mass_matrix(robot.arm, q) @ qdd + inverse_dynamics(robot.arm, q, qd, 0 * q)
            given -= jacobian(robot, q, TOOL).T @ F[k]
            assert relative(simulation.tau_joint, given) < 1e-9
            assert relative(simulation.motor_state()[1], plant.motor_state()[1]) < 1e-11
            np.testing.assert_allclose(simulation.motor_state()[0], plant.motor_state()[0], atol=1e-13)


def test_worlds_that_come_and_go(irb140, irb1400):
    """PyBullet keeps the model behind its inverse dynamics, and gives a closed world's number to the next."""
    robots = [
        robot.with_drives("rigid")
        for robot in (irb140, irb140.with_payload(BODY).mounted("wall"), irb1400, with_coupled_wrist(irb140))
    ]

    def check(simulation, seed):
        plant = AnalyticPlant(simulation.robot)
        for state in random_states(simulation.robot, 3, seed):
            assert relative(one_step(simulation, *state), one_step(plant, *state)) < 1e-10

    for seed, (robot, other) in enumerate(zip(robots, robots[1:] + robots[:1], strict=True)):
        with Simulation(robot) as first:
            check(first, seed)
            with Simulation(other) as second:
                for _ in range(2):
                    check(second, seed)
                    check(first, seed)
            check(first, seed)
        with Simulation(robot.mounted("inverted").with_payload(BODY)) as third:
            check(third, seed)


# ---- over time ------------------------------------------------------------------------------------


def test_elastic_drives_are_the_analytic_plant_s_over_time(irb1400):
    at = replace(irb1400.drives, friction_at=("joint",) * 6)
    robot = irb1400.with_payload(BODY).with_drives("elastic", at)
    plant = AnalyticPlant(robot)
    with Simulation(robot) as simulation:
        for each in (simulation, plant):
            each.reset(np.full(6, 0.1))
        for k in range(300):
            for each in (simulation, plant):
                each.step(0.3 * robot.tau_max * np.sin(0.01 * k * np.arange(1, 7)))
            np.testing.assert_allclose(simulation.state(), plant.state(), rtol=0, atol=3e-11)
            np.testing.assert_allclose(simulation.motor_state(), plant.motor_state(), rtol=0, atol=3e-11)
    assert np.max(np.abs(plant.state()[0] - 0.1)) > 0.1
    assert np.max(np.abs(plant.state()[0] - plant.motor_state()[0])) > 1e-4
