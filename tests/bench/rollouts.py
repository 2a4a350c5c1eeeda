"""Rollouts of the analytic twin against MuJoCo's bare step, with and without drives, on one and two cores."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import mujoco
import numpy as np

import controllers
from tests.bench.mujoco_arm import loaded, pressing
from tests.bench.timing import Meter, NotComparableError, Row, same
from twin import ControlLaw, Robot, Sensors, forward_kinematics, hold, run_rollouts, sines
from twin.base.errors import DriveWarning
from twin.base.threads import VARIABLE
from twin.physics.dynamics.environment import Environment, surface
from twin.physics.trajectories.sampling import Samples, sample

STEPS = 4000
ENCODERS = Sensors(encoder=True, speed_cutoff=100.0, delay=1)


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare rollouts with MuJoCo's bare step, called from Python or in MuJoCo's C loop.

    A rollout reads the state, evaluates computed torque, limits it, steps and logs; MuJoCo only steps.  For a
    robot with a closed loop MuJoCo steps the open tree, which is less work.
    """
    reference = sample(_path(robot), 1e-3)
    law = controllers.make("computed_torque", robot)
    model, data = loaded(robot)
    model.opt.timestep = 1e-3

    def ours():
        return run_rollouts(robot, law, reference)

    def in_python():
        mujoco.mj_resetData(model, data)
        for _ in range(STEPS):
            mujoco.mj_step(model, data)

    def in_c():
        mujoco.mj_resetData(model, data)
        mujoco.mj_step(model, data, STEPS)

    for against, theirs in (("mj_step", in_python), ("mj_step, its own loop in C", in_c)):
        yield meter.compare(
            f"rollout of {STEPS} steps, {robot.name}, a step", against, ours, theirs,
            ours_per_call=STEPS, theirs_per_call=STEPS, goal=0.55,
            agree=None if robot.passive else lambda rollout, _: _same_motion(rollout, model, data),
        )  # fmt: skip
    if not robot.passive:
        yield _in_contact(robot, law, meter)
    laws, short = _sweep(robot, reference, meter)
    count = len(laws)
    with on_threads(1):
        yield meter.compare(
            f"{count} rollouts, {robot.name}, one core, a step", "mj_step, its own loop in C",
            lambda: run_rollouts(robot, laws, short), in_c,
            ours_per_call=count * len(short.t), theirs_per_call=STEPS, goal=0.5,
        )  # fmt: skip
    if robot.drives is not None:
        yield from _with_drives(robot, laws, short, meter)
    yield _two_cores(robot, laws, short, meter)


def _in_contact(robot: Robot, law: ControlLaw, meter: Meter) -> Row:
    """Compare a rollout on a plane with friction to MuJoCo's step with one contact."""
    q, steps = np.array([0.3, 0.4, -0.2, 0.5, 0.7, -0.4]), STEPS // 4
    height = forward_kinematics(robot, q)[2, 3]
    model, data = pressing(robot, q, height + 1e-3)
    row = surface(f"plane=0,0,1 at=0,0,{height + 1e-6} stiffness=1e3 damping=2 friction=0.3 slip=1")
    hold_there, world = sample(hold(q, steps * 1e-3), 1e-3), Environment((), [row])

    def theirs():
        mujoco.mj_step(model, data, steps)
        return data.ncon

    def agree(rollout, contacts):
        deepest = height + 1e-6 - forward_kinematics(robot, rollout.q[-1])[2, 3]
        if contacts != 1 or not deepest > 0:
            raise NotComparableError("not comparable: one of the tools does not touch the plane")

    return meter.compare(
        f"rollout of the {robot.name} in contact, a step", "mj_step with one contact, its own loop in C",
        lambda: run_rollouts(robot, law, hold_there, environment=world), theirs,
        ours_per_call=steps, theirs_per_call=steps, goal=None, agree=agree,
    )  # fmt: skip


def _with_drives(robot: Robot, laws: list[ControlLaw], reference: Samples, meter: Meter) -> Iterator[Row]:
    """Compare steps with rotors, friction, springs, and delayed encoders to steps of ideal drives."""
    count, steps = len(laws), len(laws) * len(reference.t)
    with on_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", DriveWarning)  # the springs of the unloaded, light wrist
        for what, mode, sensors, goal in (
            ("rigid drives", "rigid", None, 1.7),
            ("elastic drives", "elastic", None, 3.0),
            ("elastic drives, encoders", "elastic", ENCODERS, 3.5),
        ):
            driven = robot.with_drives(mode)

            def ours(driven=driven, sensors=sensors):
                run_rollouts(driven, laws, reference, sensors=sensors)

            yield meter.compare(
                f"{count} rollouts, {robot.name}, {what}, a step", "ideal drives", ours,
                lambda: run_rollouts(robot, laws, reference),
                ours_per_call=steps, theirs_per_call=steps, goal=goal,
            )  # fmt: skip


def _path(robot):
    frequencies = np.array([0.31, 0.43, 0.57, 0.61, 0.73, 0.89]) / 2
    return sines(robot.poses["zero"] + 0.1, np.full(robot.n, 0.3), frequencies[: robot.n], STEPS * 1e-3)


def _same_motion(rollout, model, data):
    """Compare the motion with MuJoCo's under the same torques; its integrator is the same."""
    mujoco.mj_resetData(model, data)
    data.qpos[:], data.qvel[:] = rollout.q[0], rollout.qd[0]
    for k in range(STEPS // 4):
        same(data.qpos, rollout.q[k], 1e-9)
        data.qfrc_applied[:] = rollout.tau[k]
        mujoco.mj_step(model, data)


def _sweep(robot: Robot, reference: Samples, meter: Meter) -> tuple[list[ControlLaw], Samples]:
    """Return controllers of many bandwidths, and the first quarter of a reference."""
    bandwidths = np.linspace(5.0, 30.0, 8 if meter.is_short else 128)
    laws = [controllers.make("computed_torque", robot, bandwidth=omega) for omega in bandwidths]
    return laws, Samples(*(part[: STEPS // 4] for part in reference))


def _two_cores(robot: Robot, laws: list[ControlLaw], reference: Samples, meter: Meter) -> Row:
    def on(threads):
        with on_threads(threads):
            return run_rollouts(robot, laws, reference)

    samples = len(laws) * len(reference.t)
    return meter.compare(
        f"{len(laws)} rollouts, {robot.name}, on two cores, a step", "one core", lambda: on(2), lambda: on(1),
        ours_per_call=samples, theirs_per_call=samples, goal=0.55,
        agree=lambda two, one: same(two.q, one.q, 0.0),
    )  # fmt: skip


@contextmanager
def on_threads(count):
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
