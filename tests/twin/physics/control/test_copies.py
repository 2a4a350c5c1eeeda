"""Robots, logs and control laws travel: to other processes, into notebooks, as copies."""

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest

import controllers
import twin
from tests.support.short_runs import path
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.plant import AnalyticPlant
from twin.physics.control.rollout import run_rollouts
from twin.physics.robot.robot import Payload
from twin.physics.trajectories.sampling import sample


@pytest.fixture(params=["pickled", "copied", "deep"])
def sent(request):
    """Function that sends something, and returns what arrives."""
    ways = {"copied": copy.copy, "deep": copy.deepcopy}
    return ways.get(request.param, lambda value: pickle.loads(pickle.dumps(value)))


def arrays(value):
    """Every array in a robot, whatever it is a part of."""
    if isinstance(value, np.ndarray):
        return [value]
    if hasattr(value, "__dataclass_fields__"):
        return [a for item in fields(value) for a in arrays(getattr(value, item.name))]
    parts = value.values() if hasattr(value, "values") else value if isinstance(value, tuple) else ()
    return [array for part in parts for array in arrays(part)]


@pytest.mark.parametrize("name", ["irb1400", "rx90"])
def test_a_robot_arrives_whole_and_cannot_be_written_to(name, sent):
    robot = twin.load(name)
    if robot.has_inertia:
        load = Payload(2.0, [0.01, 0.0, 0.1], np.diag([0.01, 0.02, 0.02]))
        robot = robot.with_payload(load).with_drives("elastic")
        twin.inverse_dynamics(robot, *np.zeros((3, robot.n)))  # its kernels are made, and stay at home
    arrived = sent(robot)
    assert len(arrays(arrived)) == len(arrays(robot)) > 10
    for before, after in zip(arrays(robot), arrays(arrived), strict=True):
        assert after.tobytes() == before.tobytes()
        assert not after.flags.writeable
    assert arrived.joint_names == robot.joint_names
    assert arrived.drive_mode == robot.drive_mode
    with pytest.raises(TypeError):
        arrived.poses["mine"] = np.zeros(robot.n)
    if robot.has_inertia:
        q, qd, qdd = np.random.default_rng(3).uniform(-0.5, 0.5, (3, robot.n))
        np.testing.assert_array_equal(
            twin.inverse_dynamics(arrived, q, qd, qdd), twin.inverse_dynamics(robot, q, qd, qdd)
        )


@pytest.mark.filterwarnings("ignore:steps of .* are too long for the springs")
def test_drives_arrive_and_move_the_arm_alike(irb140, sent):
    robot = irb140.with_drives("elastic")
    _ = robot.drives.motor_matrix, robot.drives.reflected_inertia  # derived from the fields, and made anew
    arrived = sent(robot)
    assert arrived.drives.friction_at == robot.drives.friction_at
    with pytest.raises(ValueError, match="read-only"):
        arrived.drives.coulomb[0] = 0.0
    found = []
    for one in (robot, arrived):
        plant = AnalyticPlant(one)
        for tau in np.random.default_rng(4).uniform(-50, 50, (20, 6)):
            plant.step(tau)
        found.append([*plant.state(), *plant.motor_state(), plant.tau_joint])
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("name", ["pid", "dob", "adaptive"])
def test_copied_control_law_has_a_separate_memory(irb140, name, sent):
    law, reference = controllers.make(name, irb140, bandwidth=15.0), sample(path(irb140, 0.05), 1e-3)
    first = run_rollouts(irb140, law, reference)
    law.memory[:] = 0.25
    arrived = sent(law)
    np.testing.assert_array_equal(arrived.memory, law.memory)
    if name == "pid":
        arrived.integral[2] = 7.0
        assert arrived.memory[0, 2] == 7.0, "the integral is the memory"
        assert law.integral[2] == 0.25
    both = run_rollouts([irb140, sent(irb140)], arrived, reference)  # a copy has the same geometry
    np.testing.assert_array_equal(both.q, [first.q, first.q])


def test_a_log_arrives_bit_by_bit(irb140, sent):
    law = controllers.make("pid", irb140)
    log = run_closed_loop(AnalyticPlant(irb140), law, sample(path(irb140, 0.05), 1e-3))
    assert sent(log).identical(log)
