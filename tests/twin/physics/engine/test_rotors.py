"""Reflected inertia a second way: rotors as bodies of the engine, geared to the joints by its constraints.

Each rotor turns on the fixed base, so that its energy is `J (N qd)^2 / 2` and nothing else: what it would do
as a gyroscope on a moving link is no part of the drives.  PyBullet solves the gears by iteration, slowly.
"""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

import twin
from tests.support.doc_pages import HOUSE
from tests.support.engine_states import BODY, random_states, relative
from tests.support.peers import one_step
from tests.support.random_trees import interpreted
from tests.support.sample_drives import uncoupled
from twin.physics.engine.simulation import Simulation

OFFSET = np.array([0.0, 0.0, 2.0])


def with_rotors(robot):
    """The robot with one more joint a motor, on the base, that carries its rotor."""
    tree, n = robot.tree, robot.n
    inertias = np.zeros((n, 10))
    inertias[:, 0] = 1.0  # its mass is carried by the base
    inertias[:, [4, 5, 6]] = robot.drives.rotor_inertia[:, None]
    tree = replace(
        tree,
        names=tree.names + tuple(f"rotor_{i}" for i in range(n)),
        links=tree.links + tuple(f"rotor_{i}" for i in range(n)),
        kinds=tree.kinds + ("revolute",) * n,
        parents=tree.parents + (-1,) * n,
        T_parent_joint=np.concatenate((tree.T_parent_joint, np.broadcast_to(np.eye(4), (n, 4, 4)))),
        axes=np.concatenate((tree.axes, np.broadcast_to([0.0, 0.0, 1.0], (n, 3)))),
        inertias=np.concatenate((tree.inertias, inertias)),
    )
    n_tree = len(robot.embedding)
    embedding = np.block([[robot.embedding, np.zeros((n_tree, n))], [np.zeros((n, n)), np.eye(n)]])
    wide = {name: np.tile(getattr(robot, name), 2) for name in ("q_min", "q_max", "qd_max", "tau_max")}
    return interpreted(
        replace(
            robot,
            tree=tree,
            embedding=embedding,
            embedding_offset=np.r_[robot.embedding_offset, np.zeros(n)],
            driven=robot.driven + tuple(range(n_tree, n_tree + n)),
            dh=None,
            poses=MappingProxyType({}),
            drives=None,
            **wide,
        )
    )


def gear(simulation, ratio, iterations):
    """Couple every rotor to its joint, so that it turns `ratio` times as fast."""
    client, joints, n = simulation._client, simulation._joints, len(ratio)
    client.setPhysicsEngineParameter(numSolverIterations=iterations, solverResidualThreshold=1e-27)
    driven = [joints[i] for i in simulation.robot.driven]
    for arm, rotor, times in zip(driven[:n], driven[n:], ratio.tolist(), strict=True):
        ends = simulation._body, arm, simulation._body, rotor
        held = client.createConstraint(*ends, client.JOINT_GEAR, [0, 0, 1], [0, 0, 0], [0, 0, 0])
        client.changeConstraint(held, gearRatio=-1 / times, erp=0, maxForce=1e9)


@pytest.mark.parametrize(("name", "iterations", "states"), [("irb140", 5000, 50), ("irb1400", 50_000, 5)])
def test_reflected_inertia_is_that_of_rotors_geared_to_the_joints(request, name, iterations, states):
    robot = uncoupled(request.getfixturevalue(name)).with_payload(BODY)  # a gear has one joint
    drives = replace(robot.drives.without_friction(), ratio=robot.drives.ratio * [1, -1, 1, 1, -1, 1])
    robot, ratio = robot.with_drives("rigid", drives), drives.ratio
    with Simulation(robot) as simulation, Simulation(with_rotors(robot.with_drives("ideal"))) as geared:
        gear(geared, ratio, iterations)
        for q, qd, tau in random_states(robot, states):
            found = one_step(simulation, q, qd, tau)
            rotors = one_step(geared, np.r_[q, ratio * q], np.r_[qd, ratio * qd], np.r_[tau, 0 * tau])
            assert relative(rotors[6:], ratio * found) < 1e-10
            assert relative(found, rotors[:6]) < 1e-10


@pytest.mark.parametrize(
    ("name", "torque", "share"), [("irb140", 0.32, 0.8), ("irb1400", 0.06, 0.2), ("irb1600", 0.17, 0.5)]
)
def test_gyroscopic_torque_of_rotors_is_as_small_as_documented(name, torque, share):
    """At the speed limits, every rotor on the link before its joint, along its axis z; h is its spin.

    The link feels omega x h, and the rotor its inertia times the part of the link's acceleration along z that
    speeds alone bring about, the sum of qd_a qd_b z_a x z_b.
    """
    robot = twin.load(name).with_drives("rigid")
    rng = np.random.default_rng(0)
    q = rng.uniform(robot.q_min, robot.q_max, (5000, 6))
    qd = rng.choice([-1.0, 1.0], q.shape) * robot.qd_max
    z = np.moveaxis(twin.jacobian(robot, q)[:, 3:], 2, 0)  # (6, N, 3)
    ratios, inertia = robot.drives.motor_matrix, robot.drives.rotor_inertia
    spin, neglected = qd @ ratios.T * inertia, np.zeros_like(q)
    for rotor in range(6):
        omega, acceleration = np.zeros((2, len(q), 3))
        for joint in range(rotor):
            turn = qd[:, joint, None] * z[joint]
            acceleration += np.cross(omega, turn)
            omega += turn
        felt = np.cross(omega, spin[:, rotor, None] * z[rotor])
        for joint in range(rotor):
            neglected[:, joint] += np.sum(z[joint] * felt, axis=1)
        neglected += np.outer(inertia[rotor] * np.sum(z[rotor] * acceleration, axis=1), ratios[rotor])
    worst = np.max(np.abs(neglected), axis=0)
    assert 0.8 * torque < np.max(worst) < torque
    assert 0.5 * share < np.max(100.0 * worst / robot.tau_max) < share
    guide = " ".join((HOUSE / "docs" / "guides" / "drives.md").read_text(encoding="utf-8").split())
    assert f"{torque} N m" in guide
    assert f"{share} %" in guide
