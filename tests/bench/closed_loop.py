"""Time of an engine step: closed loop against bare PyBullet, and the cost of kinematic loops and drives."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

import controllers
from tests.bench.bullet import loaded
from tests.bench.timing import Meter, NotComparableError, Row, same
from tests.support.sample_drives import uncoupled
from twin import Robot, Simulation, forward_kinematics, hold, run_closed_loop, sines
from twin.physics.dynamics.environment import Environment, surface
from twin.physics.trajectories.sampling import Reference, Samples, State, sample, sample_semi_implicit

ROUNDING = 1e-15
"""Rounding of a joint's position, in [rad]."""


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare a closed loop with its log to bare PyBullet, which sets torques, steps and reads the state."""
    path = sines(robot.poses["zero"], np.full(robot.n, 0.3), np.full(robot.n, 0.5), 2.0)
    reference = sample_semi_implicit(path, 1e-3)
    for name, goal in (("computed_torque", 1.9), ("pid", 1.9)):
        controller = controllers.make(name, robot)
        with Simulation(robot) as simulation:
            log = run_closed_loop(simulation, controller, reference)
            steps = len(log.t) - 1
            bare = _bare(robot, log)
            yield meter.compare(
                f"closed loop at 1 kHz, {name}, with log, a step", "bare PyBullet: torque, step, read",
                partial(run_closed_loop, simulation, controller, reference), bare,
                ours_per_call=steps, theirs_per_call=steps, goal=goal, agree=partial(_agree, bare),
            )  # fmt: skip
    height = forward_kinematics(robot, robot.poses["test_1"])[2, 3]
    still, law = sample(hold(robot.poses["test_1"], 1.0), 1e-3), controllers.make("computed_torque", robot)
    floor = surface(f"plane=0,0,1 at=0,0,{height + 1e-4} stiffness=1e3 damping=2 friction=0.3 slip=1")
    with Simulation(robot) as simulation:
        yield meter.compare(
            "closed loop at 1 kHz, computed_torque, in contact, a step", "the same loop, free",
            partial(run_closed_loop, simulation, law, still, environment=Environment((), [floor])),
            partial(run_closed_loop, simulation, law, still),
            ours_per_call=len(still.t), theirs_per_call=len(still.t), goal=None,
        )  # fmt: skip


def _agree(bare: Callable[[float], np.ndarray], log, final: np.ndarray) -> None:
    """Compare the end of a loop with that of the replay, which has no feedback and so amplifies rounding."""
    moved = np.max(np.abs(bare(ROUNDING) - final)) / np.max(np.abs(final))
    same(final, [log.q[-1], log.qd[-1]], moved)


def _bare(robot: Robot, log) -> Callable[..., np.ndarray]:
    """Return a function that replays a log's torques in bare PyBullet, and returns the final q and qd (2, 6).

    Its argument is added to the position of each joint at the start, in [rad].
    """
    client, body, joints = loaded(robot)
    client.setTimeStep(1e-3)
    for link in range(-1, client.getNumJoints(body)):
        client.changeDynamics(body, link, linearDamping=0, angularDamping=0, jointDamping=0)
        client.changeDynamics(body, link, maxJointVelocity=1e6)
        client.changeDynamics(body, link, jointLowerLimit=-1e3, jointUpperLimit=1e3)
    client.setJointMotorControlArray(body, joints, client.VELOCITY_CONTROL, forces=[0.0] * robot.n)
    torques = log.tau[:-1].tolist()  # the last torque belongs to a step beyond the end
    start = list(zip(joints, log.q[0].tolist(), log.qd[0].tolist(), strict=True))

    # Look functions up once, because the client creates them at every access.
    apply, step, read = client.setJointMotorControlArray, client.stepSimulation, client.getJointStates
    mode = client.TORQUE_CONTROL

    def run(offset=0.0):
        for joint, q, qd in start:
            client.resetJointState(body, joint, q + offset, qd)
        for tau in torques:
            apply(body, joints, mode, forces=tau)
            step()
            states = read(body, joints)
        return np.array([joint[:2] for joint in states]).T

    return run


def loop_rows(robot: Robot, other: Robot, meter: Meter, steps: int = 1000) -> Iterator[Row]:
    """Compare an engine step of a robot with a kinematic loop to a step of a robot without one."""
    with Simulation(robot) as looped, Simulation(other) as plain:
        yield meter.compare(
            f"engine step of the {robot.name}, its loop closed", f"of the {other.name}",
            _replay(looped, steps), _replay(plain, steps),
            ours_per_call=steps, theirs_per_call=steps, goal=4.0,
        )  # fmt: skip


class _FedForward:
    """Computed torque of ideal drives, plus feedforward of rotor inertia and friction along the reference.

    The controller costs the same with and without drives, so the difference is the engine's cost of drives.
    """

    def __init__(self, robot: Robot, reference: Samples) -> None:
        self.law = controllers.make("computed_torque", robot.with_drives("ideal"))
        drives = robot.active_drives
        self.extra = np.zeros(reference.qd.shape)
        if drives is not None:
            friction = drives.coulomb * np.sign(reference.qd) + drives.viscous * reference.qd
            self.extra = reference.qdd @ drives.reflected_inertia + friction

    def reset(self) -> None:
        self.law.reset()
        self.remaining = iter(self.extra)

    def __call__(self, state: State, reference: Reference) -> np.ndarray:
        return self.law(state, reference) + next(self.remaining)


def drive_rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare a closed loop with rigid drives to one with ideal drives, while axes move and while they stick.

    In the moving case static friction equals Coulomb friction, since the feedforward could not free the axes.
    """
    path = sample_semi_implicit(sines(robot.poses["zero"], [0.3] * robot.n, [0.5] * robot.n, 2.0), 1e-3)
    standing = sample(hold(robot.poses["test_1"], 2.0), 1e-3)
    drives = uncoupled(robot).with_drives("rigid").active_drives
    assert drives is not None
    for what, reference, frictional, goal in (
        ("moving", path, replace(drives, static=drives.coulomb), 1.6),
        ("sticking", standing, drives, 2.0),
    ):
        with Simulation(robot.with_drives("rigid", frictional)) as ours, Simulation(robot) as ideal:
            runs = [
                partial(run_closed_loop, simulation, _FedForward(simulation.robot, reference), reference)
                for simulation in (ours, ideal)
            ]

            def agree(log, of_ideal, reference=reference, sticks=what == "sticking"):
                same(log.q, reference.q, 0.1)
                same(of_ideal.q, reference.q, 0.1)
                if [np.all(log.qd == 0), np.all(of_ideal.qd == 0)] != [sticks, False]:
                    raise NotComparableError("not comparable: the axes stick where they should move, or move")

            yield meter.compare(
                f"closed loop with rigid drives, {what}, a step", "with ideal drives", *runs,
                ours_per_call=len(reference.t) - 1, theirs_per_call=len(reference.t) - 1, goal=goal,
                agree=agree,
            )  # fmt: skip


def _replay(simulation: Simulation, steps: int) -> Callable[[], None]:
    """Return a function that repeats a computed torque motion by applying its logged torques."""
    robot = simulation.robot
    path = sines(robot.poses["zero"], np.full(robot.n, 0.2), np.full(robot.n, 0.5), steps * 1e-3)
    reference = sample_semi_implicit(path, 1e-3)
    log = run_closed_loop(simulation, controllers.make("computed_torque", robot), reference)

    def run():
        simulation.reset(log.q[0], log.qd[0])
        for tau in log.tau[:steps]:
            simulation.step(tau)

    run()
    same(simulation.state()[0], log.q[-1], 1e-11)
    return run
