"""Runs in the engine, a step: the closed loop against bare PyBullet, a loop of links against none."""

from collections.abc import Callable, Iterator

import numpy as np

import controllers
from tests.bench.bullet import loaded
from tests.bench.timing import Meter, Row, same
from twin.control.closed_loop import run_closed_loop
from twin.engine.simulation import Simulation
from twin.robot.robot import Robot
from twin.trajectories.joint_trajectories import sines
from twin.trajectories.sampling import recursion_consistent


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """A closed loop with its log, against set torque, step, read state and nothing else."""
    path = sines(robot.poses["zero"], np.full(robot.n, 0.3), np.full(robot.n, 0.5), 2.0)
    reference = recursion_consistent(path, 1e-3)
    for name, goal in (("computed_torque", 1.9), ("pid", 2.5)):
        controller = controllers.make(name, robot)
        with Simulation(robot) as simulation:
            log = run_closed_loop(simulation, controller, reference)
            steps = len(log.t) - 1
            bare, state = _bare(robot, log)
            bare()
            same(state(), [log.q[-1], log.qd[-1]], 1e-11)

            def run(simulation=simulation, controller=controller):
                run_closed_loop(simulation, controller, reference)

            yield meter.compare(
                f"closed loop at 1 kHz, {name}, with log, a step", "bare PyBullet: torque, step, read",
                run, bare, ours_per_call=steps, theirs_per_call=steps, goal=goal,
            )  # fmt: skip


def _bare(robot: Robot, log) -> tuple[Callable[[], None], Callable[[], list]]:
    """The same motion by the torques that it took, prepared as lists; and the state that it ends in."""
    client, body, joints = loaded(robot)
    client.setTimeStep(1e-3)
    for link in range(-1, client.getNumJoints(body)):
        client.changeDynamics(body, link, linearDamping=0, angularDamping=0, jointDamping=0)
        client.changeDynamics(body, link, maxJointVelocity=1e6)
        client.changeDynamics(body, link, jointLowerLimit=-1e3, jointUpperLimit=1e3)
    client.setJointMotorControlArray(body, joints, client.VELOCITY_CONTROL, forces=[0.0] * robot.n)
    torques = log.tau[:-1].tolist()  # the last one would be of the step beyond the end
    start = list(zip(joints, log.q[0].tolist(), log.qd[0].tolist(), strict=True))

    # Looked up once: the client makes its functions anew whenever they are asked for.
    apply, step, read = client.setJointMotorControlArray, client.stepSimulation, client.getJointStates
    mode = client.TORQUE_CONTROL

    def run():
        for joint, q, qd in start:
            client.resetJointState(body, joint, q, qd)
        for tau in torques:
            apply(body, joints, mode, forces=tau)
            step()
            read(body, joints)

    def state():
        states = client.getJointStates(body, joints)
        return [[joint[0] for joint in states], [joint[1] for joint in states]]

    return run, state


def loop_rows(robot: Robot, other: Robot, meter: Meter, steps: int = 1000) -> Iterator[Row]:
    """A step of the engine with the closed loop of a robot, against one of a robot without."""
    with Simulation(robot) as looped, Simulation(other) as plain:
        yield meter.compare(
            f"engine step of the {robot.name}, its loop closed", f"of the {other.name}",
            _replay(looped, steps), _replay(plain, steps),
            ours_per_call=steps, theirs_per_call=steps, goal=4.0,
        )  # fmt: skip


def _replay(simulation: Simulation, steps: int) -> Callable[[], None]:
    """A function that repeats a motion under computed torque with the torques that it took, and no more."""
    robot = simulation.robot
    path = sines(robot.poses["zero"], np.full(robot.n, 0.2), np.full(robot.n, 0.5), steps * 1e-3)
    reference = recursion_consistent(path, 1e-3)
    log = run_closed_loop(simulation, controllers.make("computed_torque", robot), reference)

    def run():
        simulation.reset(log.q[0], log.qd[0])
        for tau in log.tau[:steps]:
            simulation.step(tau)

    run()
    same(simulation.state()[0], log.q[-1], 1e-11)
    return run
