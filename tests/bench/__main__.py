"""`make bench`: our calls beside Pinocchio's and bare PyBullet's, interleaved in one run on one core.

Every pair gets the same input and its results are compared before anything is timed.  A row shows the median
time of one call of each, the ratio of the medians (below 1: ours is faster) and the range of the ratio over
the repeated, interleaved rounds.  Compilation and warm-up are not timed.  The last row compares two of ours,
a step of the engine with a closed loop and one without; there the goal is a ratio of 4.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
import pybullet
from pybullet_utils.bullet_client import BulletClient

import controllers
import twin
from tests.peers import Pinocchio
from twin.closed_loop import run_closed_loop
from twin.engine import Simulation
from twin.sampling import recursion_consistent
from twin.trajectories import sines

BATCH = 100_000


@dataclass(frozen=True)
class Row:
    """One comparison: median microseconds of a call (or a sample), the spread of the ratio, its goal."""

    what: str
    against: str
    ours_us: float
    theirs_us: float
    ratio: float
    lowest: float
    highest: float
    goal: float = 1.0


def seconds(call: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def compare(
    what, against, ours, theirs, *, rounds, calls=1, ours_per_call=1, theirs_per_call=1, goal=1.0
) -> Row:
    """Time two calls in turn, `rounds` times each, after one warm-up; `per_call` is samples in a call."""
    ours(), theirs()
    pairs = [
        (seconds(ours, calls) / ours_per_call, seconds(theirs, calls) / theirs_per_call)
        for _ in range(rounds)
    ]
    ratios = [a / b for a, b in pairs]
    a, b = (statistics.median(column) * 1e6 for column in zip(*pairs, strict=True))
    row = Row(what, against, a, b, a / b, min(ratios), max(ratios), goal)
    print(
        f"{row.what:43} {row.against:20} {row.ours_us:9.3f} {row.theirs_us:9.3f} "
        f"{row.ratio:7.2f}   {row.lowest:.2f}-{row.highest:.2f}",
        flush=True,
    )
    return row


def same(a, b, relative) -> None:
    assert np.max(np.abs(np.asarray(a) - b)) <= relative * np.max(np.abs(b))


def model_rows(robot, rounds):
    peer = Pinocchio(robot.urdf, robot.joint_names)
    model, data = peer.model, peer.data
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1, 1, (3, robot.n))
    tau = rng.uniform(-50, 50, robot.n)
    kernels, out, M = robot.kernels, np.empty(robot.n), np.empty((robot.n, robot.n))
    inertial = (robot.tree.inertias, robot.gravity)
    kernels.inverse_dynamics(q, qd, qdd, *inertial, out)
    same(out, pin.rnea(model, data, q, qd, qdd), 1e-12)
    kernels.forward_dynamics(q, qd, tau, *inertial, out)
    same(out, pin.aba(model, data, q, qd, tau), 1e-11)

    def rnea():
        return pin.rnea(model, data, q, qd, qdd)

    single = {"rounds": rounds, "calls": 5000}
    yield compare(
        "inverse dynamics, compiled function", "pin.rnea",
        lambda: kernels.inverse_dynamics(q, qd, qdd, *inertial, out), rnea, **single,
    )  # fmt: skip
    yield compare(
        "inverse dynamics, public function", "pin.rnea",
        lambda: twin.inverse_dynamics(robot, q, qd, qdd), rnea, **single,
    )  # fmt: skip
    yield compare(
        "mass matrix, compiled function", "pin.crba",
        lambda: kernels.mass_matrix(q, inertial[0], M), lambda: pin.crba(model, data, q), **single,
    )  # fmt: skip
    yield compare(
        "forward dynamics, compiled function", "pin.aba",
        lambda: kernels.forward_dynamics(q, qd, tau, *inertial, out),
        lambda: pin.aba(model, data, q, qd, tau), **single,
    )  # fmt: skip
    many = rng.uniform(-1, 1, (3, BATCH, robot.n))
    few = [tuple(sample) for sample in many[:, :2000].swapaxes(0, 1)]
    start = [pin.rnea(model, data, *sample) for sample in few]
    same(twin.inverse_dynamics(robot, *many)[:2000], np.array(start), 1e-12)

    def loop():
        for sample in few:
            pin.rnea(model, data, *sample)

    yield compare(
        f"inverse dynamics, a batch of {BATCH}", "pin.rnea in a loop",
        lambda: twin.inverse_dynamics(robot, *many), loop,
        rounds=rounds, ours_per_call=BATCH, theirs_per_call=len(few),
    )  # fmt: skip


def loop_row(robot, rounds) -> Row:
    """A closed loop with its log, per step, against set torque, step, read state and nothing else."""
    path = sines(robot.poses["zero"], np.full(robot.n, 0.3), np.full(robot.n, 0.5), 2.0)
    reference = recursion_consistent(path, 1e-3)
    steps = len(reference.t)
    controller = controllers.make("computed_torque", robot)
    client = BulletClient(pybullet.DIRECT)
    body = client.loadURDF(str(robot.urdf), useFixedBase=True, flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    client.setTimeStep(1e-3)
    client.setGravity(0, 0, -9.81)
    joints = [i for i in range(client.getNumJoints(body)) if client.getJointInfo(body, i)[2] != 4]
    client.setJointMotorControlArray(body, joints, pybullet.VELOCITY_CONTROL, forces=[0.0] * robot.n)
    torque = [1.0] * robot.n

    def bare():
        for _ in range(steps):
            client.setJointMotorControlArray(body, joints, pybullet.TORQUE_CONTROL, forces=torque)
            client.stepSimulation()
            client.getJointStates(body, joints)

    with Simulation(robot) as simulation:
        return compare(
            "closed loop at 1 kHz, with log, a step", "bare PyBullet",
            lambda: run_closed_loop(simulation, controller, reference), bare,
            rounds=rounds, ours_per_call=steps, theirs_per_call=steps,
        )  # fmt: skip


def replay(simulation, steps):
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


def engine_row(robot, other, rounds, steps=1000) -> Row:
    """A step of the engine with the closed loop of a robot, against one of a robot without."""
    with Simulation(robot) as looped, Simulation(other) as plain:
        return compare(
            f"engine step of the {robot.name}, its loop closed", f"of the {other.name}",
            replay(looped, steps), replay(plain, steps),
            rounds=rounds, ours_per_call=steps, theirs_per_call=steps, goal=4.0,
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds (default 9)")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    robot = twin.load("irb140")
    print(f"{'what':43} {'against':20} {'ours/us':>9} {'theirs/us':>9} {'ratio':>7}   range")
    rows = [
        *model_rows(robot, options.rounds),
        loop_row(robot, options.rounds),
        engine_row(twin.load("irb1400"), robot, options.rounds),
    ]
    slower = [row.what for row in rows if row.ratio > row.goal]
    print(f"\nWe lose at: {'; '.join(slower)}." if slower else "\nWe lose at nothing that was measured.")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
