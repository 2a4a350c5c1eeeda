"""`python -m tests.support.agreement`: measure how well the models agree with other libraries.

Print a row for each quantity of the first table of docs/agreement.md, with its upper bound on that page.  An
error is the worst sample of `max |a - b| / max |b|` over random states in the full range of positions, speeds
and torques, unless the row states another measure.  The exit status is 1 if an error exceeds its bound or has
none.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import twin
from scenarios.judging.motion_range import random_positions
from scenarios.parallelogram import Parallelogram
from scenarios.setup import Setup
from tests.support.peers import MuJoCo, Pinocchio, PinocchioLoops, Reduced, largest_relative_error, one_step
from tests.support.sample_loads import BODY, TOOL
from twin.physics.engine.simulation import Simulation

PAGE = Path(__file__).parents[2] / "docs" / "agreement.md"
ROBOTS = {"IRB 140": "irb140", "IRB 1400": "irb1400", "IRB 1600": "irb1600"}
"""Robot names by the headings of the page's columns."""

STATES = 1000
POSES = 10_000
SOFTNESS = 1.0001e-4  # the smallest softness of a closed loop that MuJoCo accepts

Rows = Iterator[tuple[str, str, float]]


def rows(function, *vectors) -> np.ndarray:
    """Evaluate a function sample by sample and stack the results."""
    return np.array([function(*sample) for sample in zip(*vectors, strict=True)])


def against_libraries(robot, q, qd, qdd, tau) -> Rows:
    """Compare with the tree models of Pinocchio and MuJoCo, reduced by G if the robot has passive joints."""
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
    """Compare with libraries that close the loop by a constraint, without using G."""
    ours = twin.forward_dynamics(robot, q, qd, tau) @ robot.embedding.T
    solver = Reduced(robot, PinocchioLoops(robot.urdf, robot.tree.names, robot.loops))
    expected = rows(solver.loop_dynamics, q, qd, tau)
    what = "forward dynamics, all eight joints"
    yield what, "Pinocchio's loop solver", largest_relative_error(ours, expected)
    soft = []
    for k in (1, 2, 3, 4):
        peer = MuJoCo(robot.urdf, robot.loops, robot.tree.links, softness=k * SOFTNESS)
        soft.append(rows(Reduced(robot, peer).loop_dynamics, q, qd, tau))
    yield what, "MuJoCo, its soft loop as stiff as it allows", largest_relative_error(soft[0], ours)
    rigid = 4 * soft[0] - 6 * soft[1] + 4 * soft[2] - soft[3]
    yield what, "MuJoCo, extrapolated to a rigid loop", largest_relative_error(rigid, ours)


def against_engine(robot, q, qd, qdd, tau, payloads=(None, BODY)) -> Rows:
    """Compare one step of PyBullet under the torques of uniform accelerations and under random drive torques.

    Random torques and a wrench at the tool mostly accelerate the wrist, by up to 1e6 rad/s^2.  The relative
    error is divided by this large acceleration.
    """
    F = np.random.default_rng(1).uniform(-100, 100, (len(q), 6))
    for payload in payloads:
        load = ", with a payload" if payload else ""
        worst: dict[str, list[np.ndarray]] = {}
        gap = 0.0
        for where in ("floor", "wall", "inverted"):
            arm = robot.mounted(where).with_payload(payload)
            uniform = twin.inverse_dynamics(arm, q, qd, qdd)
            for kind, torques, wrench in (
                ("accelerations up to 50 rad/s²", uniform, np.zeros_like(F)),
                ("random torques of the drives and a tool wrench", tau, F),
            ):
                errors, widest = _steps(arm, q, qd, torques, wrench)
                worst.setdefault(kind, []).append(errors)
                gap = max(gap, widest)
        for kind, errors in worst.items():
            what = f"acceleration of one step, {kind}{load}"
            yield what, "PyBullet", float(np.max(errors))
            if robot.loops:
                yield f"{what}: median", "PyBullet", float(np.median(errors))
        if robot.loops:
            yield f"gap of the loop in these steps{load}, in m", "zero", gap
    with Simulation(robot) as simulation:
        T, J = [], []
        for sample in q:
            simulation.reset(sample)
            T.append(simulation.tool_pose())
            J.append(simulation.jacobian(sample))
    yield "tool pose, absolute", "PyBullet", float(np.max(np.abs(twin.forward_kinematics(robot, q) - T)))
    yield "Jacobian, absolute", "PyBullet", float(np.max(np.abs(twin.jacobian(robot, q) - np.array(J))))


def _steps(arm, q, qd, tau, F) -> tuple[np.ndarray, float]:
    """Return the relative errors (N,) of the engine's accelerations, and the widest loop gap in [m]."""
    found, gap = np.empty_like(q), 0.0
    with Simulation(arm) as simulation:
        for k in range(len(q)):
            found[k] = one_step(simulation, q[k], qd[k], tau[k], F[k], TOOL)
            gap = max(gap, simulation.loop_gap)
    expected = twin.forward_dynamics(arm, q, qd, tau, F, TOOL)
    return np.max(np.abs(found - expected), axis=1) / np.max(np.abs(expected), axis=1), gap


def in_motion(robot) -> Rows:
    """Run the scenario `parallelogram`: a free fall, then ten seconds of fast motion."""
    run = Parallelogram(duration=10.0, speed_fraction=0.9).run(Setup(robot=robot.name))
    log, fall = run.log, run.fall
    what = "fast motion of 10 s at 1 kHz, computed torque:"
    yield f"{what} tracking, in rad", "zero", float(np.max(np.abs(log.q - log.q_ref)))
    yield f"{what} gap of the loop, in m", "zero", float(np.max(log.loop_gap))
    yield "free fall of 0.4 s, in rad and rad/s", "PyBullet", float(np.max(np.abs(fall.engine - fall.model)))


def inverse_kinematics(robot, poses: int) -> Rows:
    """Check every inverse kinematics solution of random poses."""
    q = random_positions(robot, np.random.default_rng(2), poses)
    T = twin.forward_kinematics(robot, q)
    solutions = twin.inverse_kinematics(robot, T)
    exists = ~np.isnan(solutions[..., 0])
    error = np.abs(twin.forward_kinematics(robot, solutions[exists]) - T[np.nonzero(exists)[0]])
    yield "FK(IK(T)) - T, every solution, absolute", "itself", float(np.max(error))


def states(robot, count: int) -> tuple[np.ndarray, ...]:
    """Draw positions, speeds and torques within their limits, and accelerations up to 50 rad/s^2."""
    rng = np.random.default_rng(0)
    q = random_positions(robot, rng, count)
    qd, qdd, tau = rng.uniform(-1, 1, (3, count, robot.n))
    return q, qd * robot.qd_max, 50 * qdd, tau * robot.tau_max


def measured(name: str) -> Rows:
    """Yield the quantities of a robot, the reference of each, and its worst error."""
    robot = twin.load(name)
    q, qd, qdd, tau = states(robot, STATES)
    yield from against_libraries(robot, q, qd, qdd, tau)
    if robot.loops:
        yield from against_loop_solvers(robot, q, qd, tau)
        yield from in_motion(robot)
    yield from against_engine(robot, q, qd, qdd, tau)
    yield from inverse_kinematics(robot, POSES)


def bounds(page: str) -> dict[tuple[str, str, str], float]:
    """Read the upper bounds of a page's table, by robot, quantity and reference."""
    found: dict[tuple[str, str, str], float] = {}
    columns: list[str] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells[:2] == ["quantity", "against"]:
            columns = [ROBOTS[heading] for heading in cells[2:]]
        elif not cells:
            columns = []
        elif columns and not cells[0].startswith("---"):
            for robot, cell in zip(columns, cells[2:], strict=True):
                if cell:
                    found[robot, cells[0], cells[1]] = float(cell)
    return found


def main() -> int:
    limits, exceeded = bounds(PAGE.read_text(encoding="utf-8")), False
    print("| robot | quantity | against | worst error | bound |\n|---|---|---|---|---|")
    for name in ROBOTS.values():
        for what, peer, error in measured(name):
            bound = limits.get((name, what, peer))
            exceeded |= bound is None or not error <= bound
            print(f"| {name} | {what} | {peer} | {error:.1e} | {bound} |", flush=True)
    return int(exceeded)


if __name__ == "__main__":
    sys.exit(main())
