"""`python -m tests.agreement`: how well the models agree with all that they are compared with, measured now.

Prints the table of the README, one row a quantity: the worst sample of `max |a - b| / max |b|` over random
states in the full range of positions, speeds and torques, unless the row says otherwise.
"""

import sys
from collections.abc import Iterator

import numpy as np

import twin
from scenarios import parallelogram
from scenarios.checks.motion_range import random_positions
from tests.peers import MuJoCo, Pinocchio, PinocchioLoops, Reduced, largest_relative_error, one_step
from tests.test_engine_oracle import BODY, TOOL
from twin.engine.simulation import Simulation

STATES = 1000
POSES = 10_000
SOFTNESS = 1.0001e-4  # of a loop in MuJoCo: the least that it takes

Rows = Iterator[tuple[str, str, float]]


def rows(function, *vectors) -> np.ndarray:
    return np.array([function(*sample) for sample in zip(*vectors, strict=True)])


def against_libraries(robot, q, qd, qdd, tau) -> Rows:
    """Their trees, reduced by G where the robot has passive joints."""
    pinocchio = Reduced(robot, Pinocchio(robot.urdf, robot.tree.names))
    mujoco = Reduced(robot, MuJoCo(robot.urdf))
    for what, function, name, vectors in (
        ("inverse dynamics", twin.inverse_dynamics, "inverse_dynamics", (q, qd, qdd)),
        ("mass matrix", twin.mass_matrix, "mass_matrix", (q,)),
        ("gravity torque", twin.gravity_torque, "gravity_torque", (q,)),
    ):
        ours = function(robot, *vectors)
        for peer in (pinocchio, mujoco):
            yield what, peer.name, largest_relative_error(ours, rows(getattr(peer, name), *vectors))
    C = twin.coriolis_matrix(robot, q, qd)
    yield "Coriolis matrix", "Pinocchio", largest_relative_error(C, rows(pinocchio.coriolis_matrix, q, qd))
    bias = np.einsum("kij,kj->ki", C, qd) + twin.gravity_torque(robot, q)
    yield "C qd + g", "MuJoCo", largest_relative_error(bias, rows(mujoco.bias, q, qd))
    found = twin.forward_dynamics(robot, q, qd, tau)
    expected = rows(pinocchio.forward_dynamics, q, qd, tau)
    yield "forward dynamics", "Pinocchio", largest_relative_error(found, expected)
    left = np.einsum("kij,kj->ki", twin.mass_matrix(robot, q), found)
    left += twin.inverse_dynamics(robot, q, qd, np.zeros_like(qd)) - tau
    yield (
        "M qdd + h - tau",
        "zero, over max abs(tau)",
        float(np.max(np.max(np.abs(left), axis=1) / np.max(np.abs(tau), axis=1))),
    )


def against_loop_solvers(robot, q, qd, tau) -> Rows:
    """Libraries that are told of the loop itself, and know nothing of G."""
    ours = twin.forward_dynamics(robot, q, qd, tau) @ robot.embedding.T
    solver = Reduced(robot, PinocchioLoops(robot.urdf, robot.tree.names, robot.loops))
    expected = rows(solver.loop_dynamics, q, qd, tau)
    what = "forward dynamics, all joints"
    yield what, "Pinocchio's solver for closed loops", largest_relative_error(ours, expected)
    soft = []
    for k in (1, 2, 3, 4):
        peer = MuJoCo(robot.urdf, robot.loops, robot.tree.links, softness=k * SOFTNESS)
        soft.append(rows(Reduced(robot, peer).loop_dynamics, q, qd, tau))
    yield what, "MuJoCo with its loop as stiff as it allows", largest_relative_error(soft[0], ours)
    rigid = 4 * soft[0] - 6 * soft[1] + 4 * soft[2] - soft[3]
    yield what, "MuJoCo, extrapolated to a rigid loop", largest_relative_error(rigid, ours)


def against_engine(robot, q, qd, qdd, tau) -> Rows:
    """One step under torques of even accelerations, and under random torques of the drives.

    The latter, and a wrench at the tool, mostly accelerate the wrist, by up to 1e6 rad/s^2, and a relative
    error divides by that.
    """
    F = np.random.default_rng(1).uniform(-100, 100, (len(q), 6))
    for payload in (None, BODY):
        load = "with" if payload else "no"
        worst: dict[str, list[np.ndarray]] = {}
        gap = 0.0
        for where in ("floor", "wall", "inverted"):
            arm = robot.mounted(where).with_payload(payload)
            even = twin.inverse_dynamics(arm, q, qd, qdd)
            for kind, torques, wrench in (
                ("even accelerations", even, np.zeros_like(F)),
                ("torques of the drives and tool wrench", tau, F),
            ):
                errors, widest = _steps(arm, q, qd, torques, wrench)
                worst.setdefault(kind, []).append(errors)
                gap = max(gap, widest)
        for kind, errors in worst.items():
            what = f"acceleration of one step, {kind}, {load} payload; floor, wall, inverted"
            yield what, "PyBullet", float(np.max(errors))
            yield f"{what}: the median", "PyBullet", float(np.median(errors))
        if robot.loops:
            yield f"the same, {load} payload, the widest gap of the loop, in m", "zero", gap
    with Simulation(robot) as simulation:
        T, J = [], []
        for sample in q:
            simulation.reset(sample)
            T.append(simulation.tool_pose())
            J.append(simulation.jacobian(sample))
    yield "tool pose, absolute", "PyBullet", float(np.max(np.abs(twin.forward_kinematics(robot, q) - T)))
    yield "Jacobian, absolute", "PyBullet", float(np.max(np.abs(twin.jacobian(robot, q) - np.array(J))))


def _steps(arm, q, qd, tau, F) -> tuple[np.ndarray, float]:
    """Relative errors (N,) of the engine's accelerations, and the widest gap of a loop, in [m]."""
    found, gap = np.empty_like(q), 0.0
    with Simulation(arm) as simulation:
        for k in range(len(q)):
            found[k] = one_step(simulation, q[k], qd[k], tau[k], F[k], TOOL)
            gap = max(gap, simulation.loop_gap)
    expected = twin.forward_dynamics(arm, q, qd, tau, F, TOOL)
    return np.max(np.abs(found - expected), axis=1) / np.max(np.abs(expected), axis=1), gap


def in_motion(robot) -> Rows:
    """The scenario of the loop: ten seconds of fast motion, and the free fall before it."""
    log = parallelogram.run(parallelogram.Config(robot=robot.name, duration=10.0, speed_fraction=0.9))
    what = "10 s of fast motion at 1 kHz, computed torque:"
    yield f"{what} tracking, in rad", "zero", float(np.max(np.abs(log.q - log.q_ref)))
    yield f"{what} gap of the loop, in m", "zero", float(np.max(log.loop_gap))
    engine, model = log.arrays["free_engine"], log.arrays["free_model"]
    yield "free fall of 0.4 s, in rad and rad/s", "PyBullet", float(np.max(np.abs(engine - model)))


def inverse_kinematics(robot) -> Rows:
    q = random_positions(robot, np.random.default_rng(2), POSES)
    T = twin.forward_kinematics(robot, q)
    solutions = twin.inverse_kinematics(robot, T)
    there = ~np.isnan(solutions[..., 0])
    error = np.abs(twin.forward_kinematics(robot, solutions[there]) - T[np.nonzero(there)[0]])
    yield f"FK(IK(T)) - T, {np.count_nonzero(there)} solutions", "itself, absolute", float(np.max(error))


def states(robot) -> tuple[np.ndarray, ...]:
    """Positions within all limits, speeds within theirs, accelerations, torques within the drives'."""
    rng = np.random.default_rng(0)
    q = random_positions(robot, rng, STATES)
    qd, qdd, tau = rng.uniform(-1, 1, (3, STATES, robot.n))
    return q, qd * robot.qd_max, 50 * qdd, tau * robot.tau_max


def main() -> int:
    print("| robot | quantity | against | worst error |\n|---|---|---|---|")
    for name in twin.robot_names():
        robot = twin.load(name)
        q, qd, qdd, tau = states(robot)
        parts = [against_libraries(robot, q, qd, qdd, tau)]
        if robot.loops:
            parts += [against_loop_solvers(robot, q, qd, tau), in_motion(robot)]
        parts += [against_engine(robot, q, qd, qdd, tau), inverse_kinematics(robot)]
        for part in parts:
            for what, peer, error in part:
                print(f"| {name} | {what} | {peer} | {error:.0e} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
