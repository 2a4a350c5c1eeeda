"""Arm with a parallelogram in the pendant's coordinates, against Pinocchio's tree and loop algorithms."""

from collections.abc import Iterator

import numpy as np
import pinocchio as pin
from scipy.linalg.lapack import dposv

from tests.bench.timing import Meter, Row, same
from tests.support.peers import PinocchioLoops
from twin.physics.robot.robot import Robot


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare compiled inverse and forward dynamics with the calls that a Pinocchio user combines."""
    peer = PinocchioLoops(robot.urdf, robot.tree.names, robot.loops)
    model, data = peer.model, peer.data
    # The embedding has Pinocchio's order of joints, so that nothing is reordered at run time.
    G, g0 = np.ascontiguousarray(robot.embedding[peer.back]), robot.embedding_offset[peer.back]
    G_T = np.ascontiguousarray(G.T)
    motors = np.zeros_like(G)
    motors[[peer.order[joint] for joint in robot.driven], range(robot.n)] = 1.0
    q, qd, qdd = np.random.default_rng(0).uniform(-0.5, 0.5, (3, robot.n))
    tau = 100 * qdd
    kernels, out = robot.kernels, np.empty(robot.n)
    inertias, gravity = robot.single_sample.inertias, robot.single_sample.gravity

    def inverse():
        kernels.inverse_dynamics(q, qd, qdd, inertias, gravity, out)

    def forward():
        kernels.forward_dynamics(q, qd, tau, inertias, gravity, out)

    # For such small matrices `dot` is faster than `@`, and LAPACK is faster than `numpy.linalg.solve`.
    def reduced_inverse():
        return G_T.dot(pin.rnea(model, data, G.dot(q) + g0, G.dot(qd), G.dot(qdd)))

    def reduced_forward():
        q_tree = G.dot(q) + g0
        M = G_T.dot(pin.crba(model, data, q_tree)).dot(G)
        h = G_T.dot(pin.nonLinearEffects(model, data, q_tree, G.dot(qd)))
        return dposv(M, tau - h)[1]

    settings = pin.ProximalSettings(1e-6, 1e-6, 20)  # three iterations, exact to 1e-14
    pin.initConstraintDynamics(model, data, peer.loops, peer.states)

    def constrained():
        return pin.constraintDynamics(
            model, data, G.dot(q) + g0, G.dot(qd), motors.dot(tau), peer.loops, peer.states, settings
        )

    single = {"calls": 2000, "goal": 0.4}
    what = f"{robot.name} {{}} dynamics, compiled function"
    yield meter.compare(
        what.format("inverse"), "pin.rnea on the tree, reduced by G", inverse, reduced_inverse, **single,
        agree=lambda _, theirs: same(out, theirs, 1e-12),
    )  # fmt: skip
    yield meter.compare(
        what.format("forward"), "pin.crba, nle, reduced by G, solved", forward, reduced_forward, **single,
        agree=lambda _, theirs: same(out, theirs, 1e-11),
    )  # fmt: skip
    yield meter.compare(
        what.format("forward"), "pin.constraintDynamics", forward, constrained, **single,
        agree=lambda _, theirs: same(G @ out, theirs, 1e-12),
    )  # fmt: skip
