"""The report's account of the worst moment: torques that add up, and the causes of the error."""

import re
from dataclasses import replace

import numpy as np
import pytest

from scenarios.report.worst_moment import WorstMoment, reasons, worst_moment
from tests.support import tasks
from twin.data.logs.figures import joint_error


def log_of(**settings):
    return tasks.run("joint_tracking", **{"duration": 0.4, **settings}).log


@pytest.fixture(scope="module")
def pd():
    return log_of(controller="pd", drives="rigid")


def moment_and_text(log):
    moment = worst_moment(log)
    return moment, " ".join(reasons(moment))


def test_the_worst_moment_is_that_of_the_largest_error(pd):
    moment, size = worst_moment(pd), np.abs(joint_error(pd))
    assert size[moment.sample, moment.joint] == moment.size == size.max()
    assert moment.name == pd.robot.joint_names[moment.joint]
    assert moment.t == pd.t[moment.sample]


def test_an_error_that_is_no_number_is_passed_over(pd):
    q = pd.q.copy()
    q[-1] = np.nan
    broken = replace(pd, q=q, q_seen=q, q_motor=q)
    assert np.isfinite(worst_moment(broken).size)
    q[:] = np.nan
    assert worst_moment(broken) is None


def test_parts_of_the_torque_are_those_of_the_motion_in_the_engine(pd):
    """The acceleration is taken from the engine's speeds, of which the parts know nothing."""
    import twin

    period = pd.time_step
    for sample in (0, 57, 200, 398):
        q, qd = pd.q[sample], pd.qd[sample]
        qdd = (pd.qd[sample + 1] - qd) / period
        M = twin.mass_matrix(pd.robot.arm, q)
        for joint in range(6):
            weight, speed, own, others, drive = WorstMoment(pd, sample, joint).torque_parts().values()
            near = {"rel": 1e-9, "abs": 1e-9 * float(np.abs(M @ qdd).max())}
            assert own == pytest.approx(M[joint, joint] * qdd[joint], **near)
            assert others == pytest.approx((M @ qdd)[joint] - M[joint, joint] * qdd[joint], **near)
            assert weight == pytest.approx(twin.gravity_torque(pd.robot, q)[joint], rel=1e-12, abs=1e-12)
            assert weight + speed + own + others + drive == pytest.approx(pd.tau[sample, joint], rel=1e-9)
            assert speed == pytest.approx((twin.coriolis_matrix(pd.robot, q, qd) @ qd)[joint], abs=1e-9)


def test_friction_that_the_law_does_not_know_is_found(pd):
    _, told = moment_and_text(pd)
    assert "remained in the drive (friction, rotor, spring)" in told
    assert "at its limit" not in told


def test_no_more_torque_remains_in_the_drive_than_the_motor_applied(pd):
    """The arm drives the motor against friction: the torque behind the gear has the opposite sign."""
    driven = replace(pd, tau_joint=-0.5 * pd.tau)
    lost, applied = re.search(r"on average (\S+) of (\S+) N m", moment_and_text(driven)[1]).groups()
    assert float(lost) == float(applied)


def test_a_delay_is_found():
    moment, told = moment_and_text(log_of(controller="computed_torque", delay=4))
    assert "The measured position of the joint differed" in told
    seen = moment.at(moment.log.q_seen - moment.log.q_motor)
    assert abs(seen) > 0.9 * moment.size


def test_a_motor_at_its_limit_is_found(pd):
    moment, saturated = worst_moment(pd), np.zeros_like(pd.saturated)
    saturated[moment.sample - 30 : moment.sample, moment.joint] = True
    _, told = moment_and_text(replace(pd, saturated=saturated))
    assert f"The motor of {moment.name} was at its limit in 30 of the " in told
    _, told = moment_and_text(replace(pd, saturated=np.roll(saturated, 1, axis=1)))
    assert "had a motor at its limit, which affects " in told


def test_a_loop_that_swings_is_found(pd):
    moment = worst_moment(pd)
    q = pd.q.copy()
    q[:, moment.joint] += 0.9 * moment.size * np.sin(2 * np.pi * 25 * pd.t)
    _, told = moment_and_text(replace(pd, q=q, q_motor=q, q_seen=q))
    assert "The error oscillates at about 2" in told


def test_a_law_without_a_model_goes_with_the_torque_it_must_bring():
    _, told = moment_and_text(log_of(controller="pd", bandwidth=80.0, duration=1.0))
    assert "correlates with the torque at the joint" in told


def test_rounding_is_not_explained():
    moment, told = moment_and_text(log_of(controller="computed_torque"))
    assert moment.size < 1e-12
    assert told == "This is a rounding error: there is nothing to explain."
