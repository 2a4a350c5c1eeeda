"""One call and a batch for an open-chain arm, against Pinocchio, MuJoCo, PyBullet and roboticstoolbox."""

from collections.abc import Callable, Iterator

import mujoco
import numpy as np
import pinocchio as pin

import twin
from tests.bench import bullet, mujoco_arm
from tests.bench.timing import Meter, Row, peer, same, within
from tests.support.dh_arms import dh_frames
from tests.support.peers import Pinocchio
from tests.support.sample_drives import uncoupled
from twin.physics.kinematics.forward import FLANGE
from twin.physics.robot.robot import Robot

LOOPED = 2000
"""Number of samples for a library that takes one sample at a time, in a Python loop."""


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Run all comparisons for an open chain."""
    arm = Pinocchio(robot.urdf, robot.joint_names)
    assert list(arm.order) == list(range(robot.n))  # no reordering needed
    sample = np.random.default_rng(0).uniform(-1, 1, (3, robot.n))
    yield from _inverse_dynamics(robot, arm.model, arm.data, sample, meter)
    yield from _other_dynamics(robot, arm.model, arm.data, sample, meter)
    yield from _kinematics(robot, arm.model, arm.data, sample[0], meter)
    yield from _batches(robot, arm.model, arm.data, meter)


def _inverse_dynamics(robot, model, data, sample, meter):
    q, qd, qdd = sample
    kernels, out = robot.kernels, np.empty(robot.n)
    inertias, gravity = robot.single_sample.inertias, robot.single_sample.gravity

    def compiled():
        kernels.inverse_dynamics(q, qd, qdd, inertias, gravity, out)
        return out

    def public():
        return twin.inverse_dynamics(robot, q, qd, qdd)

    def rnea():
        return pin.rnea(model, data, q, qd, qdd)

    single = {"calls": 5000, "agree": within(1e-12)}
    yield meter.compare("inverse dynamics, compiled function", "pin.rnea", compiled, rnea, **single, goal=0.6)
    yield meter.compare("inverse dynamics, public function", "pin.rnea", public, rnea, **single, goal=0.9)

    rigid = robot.with_drives("rigid", uncoupled(robot).drives.without_friction())
    armed = model.copy()
    armed.armature = np.diag(rigid.drives.reflected_inertia).copy()
    yield meter.compare(
        "inverse dynamics with rotors, public function", "pin.rnea with armature",
        lambda: twin.inverse_dynamics(rigid, q, qd, qdd), lambda: pin.rnea(armed, data, q, qd, qdd), **single,
        goal=2.0,
    )  # fmt: skip

    yield meter.compare(
        "forward dynamics with rotors, public function", "pin.aba with armature",
        lambda: twin.forward_dynamics(rigid, q, qd, qdd), lambda: pin.aba(armed, data, q, qd, qdd),
        calls=5000, agree=within(1e-11), goal=None,
    )  # fmt: skip
    many = np.random.default_rng(1).uniform(-1, 1, (3, meter.batch, robot.n))
    few = [tuple(np.array(vector) for vector in one) for one in many[:, :LOOPED].swapaxes(0, 1)]
    yield meter.compare(
        f"inverse dynamics with rotors, batch of {meter.batch}, a sample", "pin.rnea with armature, a loop",
        lambda: twin.inverse_dynamics(rigid, *many), lambda: [pin.rnea(armed, data, *one) for one in few],
        ours_per_call=meter.batch, theirs_per_call=len(few), goal=0.15,
        agree=lambda ours, _: same(ours[:LOOPED], [pin.rnea(armed, data, *one).copy() for one in few], 1e-12),
    )  # fmt: skip

    name = "inverse dynamics, public function"
    call = _pybullet(robot, sample)
    yield meter.compare(name, "PyBullet calculateInverseDynamics", public, call, **single)
    toolbox = peer("roboticstoolbox")
    if toolbox is not None:
        call = _rne(toolbox, robot, sample)
        yield meter.compare(name, "roboticstoolbox DHRobot.rne", public, call, **single)


def _pybullet(robot: Robot, sample) -> Callable[[], object]:
    client, body, _ = bullet.loaded(robot)
    lists = [vector.tolist() for vector in sample]
    return lambda: client.calculateInverseDynamics(body, *lists)


def _rne(toolbox, robot: Robot, sample) -> Callable[[], object]:
    """Return the toolbox's recursion over the DH table, the faster of its two, which is written in C."""
    frames = dh_frames(robot.dh, robot.dh.theta0)
    links, at = [], np.eye(4)
    for joint in range(robot.n):
        at = at @ robot.tree.T_parent_joint[joint]
        T = np.linalg.inv(frames[joint]) @ at  # the link's frame in its DH frame
        R, (m, *moments) = T[:3, :3], robot.inertias[joint]
        c, (xx, yy, zz, xy, xz, yz) = np.array(moments[:3]) / m, moments[3:]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        inertia -= m * (c @ c * np.eye(3) - np.outer(c, c))
        table = {letter: getattr(robot.dh, letter)[joint] for letter in ("d", "a", "alpha")}
        offset = robot.dh.theta0[joint]
        links.append(toolbox.RevoluteDH(**table, offset=offset, m=m, r=R @ c + T[:3, 3], I=R @ inertia @ R.T))
    arm = toolbox.DHRobot(links, gravity=robot.gravity)
    return lambda: arm.rne(*sample)


def _other_dynamics(robot, model, data, sample, meter):
    q, qd, tau = sample[0], sample[1], 50 * sample[2]
    kernels, qdd, M = robot.kernels, np.empty(robot.n), np.empty((robot.n, robot.n))
    inertias, gravity = robot.single_sample.inertias, robot.single_sample.gravity
    world = pin.Convention.WORLD  # faster for this algorithm, but not for the mass matrix
    single = {"calls": 5000, "goal": 0.8}
    yield meter.compare(
        "mass matrix, compiled function", "pin.crba",
        lambda: kernels.mass_matrix(q, inertias, M), lambda: pin.crba(model, data, q), **single,
        agree=lambda _, upper: same(np.triu(M), np.triu(upper), 1e-12),
    )  # fmt: skip
    yield meter.compare(
        "forward dynamics, compiled function", "pin.aba",
        lambda: kernels.forward_dynamics(q, qd, tau, inertias, gravity, qdd),
        lambda: pin.aba(model, data, q, qd, tau, world), **single,
        agree=lambda _, theirs: same(qdd, theirs, 1e-11),
    )  # fmt: skip


def _kinematics(robot, model, data, q, meter):
    """Compare kinematics; Pinocchio stores the pose of one requested frame, or of all, in its data."""
    kernels, T, J = robot.kernels, np.empty((4, 4)), np.empty((6, robot.n))
    tool = model.getFrameId("tool0")

    def pose():
        pin.forwardKinematics(model, data, q)
        pin.updateFramePlacement(model, data, tool)

    def same_pose(*_):
        same(T, data.oMf[tool].homogeneous, 1e-12)

    single = {"calls": 5000, "agree": same_pose}
    ours = lambda: kernels.tool_pose(q, FLANGE, T)  # noqa: E731
    what = "forward kinematics, compiled function"
    yield meter.compare(what, "pin.updateFramePlacement", ours, pose, **single)
    theirs = lambda: pin.framesForwardKinematics(model, data, q)  # noqa: E731
    yield meter.compare(what, "pin.framesForwardKinematics", ours, theirs, **single)

    def frame_jacobian():
        return pin.computeFrameJacobian(model, data, q, tool, pin.LOCAL_WORLD_ALIGNED)

    yield meter.compare(
        "Jacobian, compiled function", "pin.computeFrameJacobian",
        lambda: kernels.jacobian(q, FLANGE, J), frame_jacobian, calls=5000,
        agree=lambda _, theirs: same(J, theirs, 1e-12),
    )  # fmt: skip


def _batches(robot, model, data, meter):
    many = np.random.default_rng(1).uniform(-1, 1, (3, meter.batch, robot.n))
    few = [tuple(np.array(vector) for vector in sample) for sample in many[:, :LOOPED].swapaxes(0, 1)]

    def rnea(samples=few):
        for sample in samples:
            tau = pin.rnea(model, data, *sample)
        return tau

    engine, state = mujoco_arm.loaded(robot)
    inverse, q_state, qd_state, qdd_state = mujoco.mj_inverse, state.qpos, state.qvel, state.qacc

    def mj_inverse(samples=few):
        for q, qd, qdd in samples:
            q_state[:], qd_state[:], qdd_state[:] = q, qd, qdd
            inverse(engine, state)
        return state.qfrc_inverse.copy()

    for against, theirs, goal in (("pin.rnea", rnea, 0.15), ("mj_inverse", mj_inverse, 0.08)):
        yield meter.compare(
            f"inverse dynamics, batch of {meter.batch}, a sample", f"{against} in a Python loop",
            lambda: twin.inverse_dynamics(robot, *many), theirs,
            ours_per_call=meter.batch, theirs_per_call=len(few), goal=goal,
            agree=lambda ours, _, theirs=theirs: same(
                ours[:LOOPED], [theirs([sample]).copy() for sample in few], 1e-12
            ),
        )  # fmt: skip
