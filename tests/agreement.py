"""`python -m tests.agreement`: how well the model agrees with all that it is compared with, measured now.

Prints the table of the README, one row a quantity: the worst sample of `max |a - b| / max |b|` over random
states in the full range of positions, speeds and torques, unless the row says otherwise.
"""

import sys
from collections.abc import Iterator

import numpy as np

import twin
from tests.peers import MuJoCo, Pinocchio, largest_relative_error
from tests.test_engine_oracle import BODY, TOOL
from twin.engine import Simulation

STATES = 1000
POSES = 10_000


def rows(function, *vectors) -> np.ndarray:
    return np.array([function(*sample) for sample in zip(*vectors, strict=True)])


def against_libraries(robot, q, qd, qdd, tau) -> Iterator[tuple[str, str, float]]:
    pinocchio, mujoco = Pinocchio(robot.urdf, robot.joint_names), MuJoCo(robot.urdf)
    still = np.zeros_like(qd)
    for what, function, name, vectors in (
        ("inverse dynamics", twin.inverse_dynamics, "inverse_dynamics", (q, qd, qdd)),
        ("mass matrix", twin.mass_matrix, "mass_matrix", (q,)),
        ("gravity torque", twin.gravity_torque, "gravity_torque", (q,)),
    ):
        ours = function(robot, *vectors)
        for peer in (pinocchio, mujoco):
            yield what, type(peer).__name__, largest_relative_error(ours, rows(getattr(peer, name), *vectors))
    C = twin.coriolis_matrix(robot, q, qd)
    yield "Coriolis matrix", "Pinocchio", largest_relative_error(C, rows(pinocchio.coriolis_matrix, q, qd))
    bias = np.einsum("kij,kj->ki", C, qd) + twin.gravity_torque(robot, q)
    yield "C qd + g", "MuJoCo", largest_relative_error(bias, rows(mujoco.bias, q, qd))
    found = twin.forward_dynamics(robot, q, qd, tau)
    expected = rows(pinocchio.forward_dynamics, q, qd, tau)
    yield "forward dynamics", "Pinocchio", largest_relative_error(found, expected)
    left = np.einsum("kij,kj->ki", twin.mass_matrix(robot, q), found)
    left += twin.inverse_dynamics(robot, q, qd, still) - tau
    yield (
        "M qdd + h - tau",
        "zero, over max abs(tau)",
        float(np.max(np.max(np.abs(left), axis=1) / np.max(np.abs(tau), axis=1))),
    )


def against_engine(robot, q, qd, tau) -> Iterator[tuple[str, str, float]]:
    F = np.random.default_rng(1).uniform(-100, 100, (len(q), 6))
    for payload in (None, BODY):
        errors = []
        for where in ("floor", "wall", "inverted"):
            arm = robot.mounted(where).with_payload(payload)
            found = np.empty_like(q)
            with Simulation(arm) as simulation:
                for k in range(len(q)):
                    simulation.reset(q[k], qd[k])
                    simulation.step(tau[k], F[k], TOOL)
                    found[k] = (simulation.state()[1] - qd[k]) / simulation.time_step
            expected = twin.forward_dynamics(arm, q, qd, tau, F, TOOL)
            errors.append(largest_relative_error(found, expected))
        load = "with" if payload else "no"
        what = f"acceleration of one step: tool wrench, {load} payload; floor, wall, inverted"
        yield what, "PyBullet", max(errors)
    with Simulation(robot) as simulation:
        T, J = [], []
        for sample in q:
            simulation.reset(sample)
            T.append(simulation.tool_pose())
            J.append(simulation.jacobian(sample))
    yield "tool pose, absolute", "PyBullet", float(np.max(np.abs(twin.forward_kinematics(robot, q) - T)))
    yield "Jacobian, absolute", "PyBullet", float(np.max(np.abs(twin.jacobian(robot, q) - np.array(J))))


def inverse_kinematics(robot) -> Iterator[tuple[str, str, float]]:
    q = np.random.default_rng(2).uniform(robot.q_min, robot.q_max, (POSES, robot.n))
    T = twin.forward_kinematics(robot, q)
    solutions = twin.inverse_kinematics(robot, T)
    there = ~np.isnan(solutions[..., 0])
    error = np.abs(twin.forward_kinematics(robot, solutions[there]) - T[np.nonzero(there)[0]])
    yield f"FK(IK(T)) - T, {np.count_nonzero(there)} solutions", "itself, absolute", float(np.max(error))


def main() -> int:
    robot = twin.load("irb140")
    rng = np.random.default_rng(0)
    q, qd, qdd, tau = rng.uniform(-1, 1, (4, STATES, robot.n))
    q = robot.q_min + (q + 1) / 2 * (robot.q_max - robot.q_min)
    qd, qdd, tau = qd * robot.qd_max, 50 * qdd, tau * robot.tau_max
    print("| quantity | against | worst error |\n|---|---|---|")
    for part in (
        against_libraries(robot, q, qd, qdd, tau),
        against_engine(robot, q, qd, tau),
        inverse_kinematics(robot),
    ):
        for what, peer, error in part:
            print(f"| {what} | {peer} | {error:.0e} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
