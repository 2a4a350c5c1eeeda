"""The short way for one sample: the same numbers as the long way, and nothing slips past its checks."""

import os
import subprocess
import sys

import numpy as np
import pytest

import twin
from tests.support.random_trees import random_urdf
from twin.kinematics import forward
from twin.multibody import single_sample
from twin.robot.evaluation import uncompiled

CALLS = {
    "inverse_dynamics": 3,
    "forward_dynamics": 3,
    "coriolis_matrix": 2,
    "mass_matrix": 1,
    "gravity_torque": 1,
    "forward_kinematics": 1,
    "jacobian": 1,
    "jacobian_dot": 2,
}


@pytest.mark.parametrize("name", CALLS)
def test_one_sample_has_the_bits_of_a_batch(arm, name, rng):
    vectors = rng.uniform(-0.5, 0.5, (CALLS[name], 6))
    function = getattr(twin, name)
    one = function(arm, *vectors)
    many = function(arm, *vectors[:, None])
    assert one.tobytes() == many[0].tobytes()
    for strange in (
        [vector.tolist() for vector in vectors],
        [np.repeat(vector, 2)[::2] for vector in vectors],  # not C-contiguous
        [frozen(vector) for vector in vectors],
    ):
        assert function(arm, *strange).tobytes() == one.tobytes()


def frozen(vector):
    vector = vector.copy()
    vector.setflags(write=False)
    return vector


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(arm, name, bad):
    for place in range(CALLS[name]):
        vectors = np.full((CALLS[name], 6), 0.1)
        vectors[place, 4] = bad
        with pytest.raises(ValueError, match=rf"to be finite, got {bad} at \[4\]"):
            getattr(twin, name)(arm, *vectors)


@pytest.mark.parametrize("name", CALLS)
def test_another_length_is_refused(arm, name):
    for place in range(CALLS[name]):
        vectors = [np.zeros(6)] * CALLS[name]
        vectors[place] = np.zeros(5)
        with pytest.raises(ValueError, match=r"of shape \(\.\.\., 6\), got \(5,\)"):
            getattr(twin, name)(arm, *vectors)


@pytest.mark.parametrize("name", CALLS)
def test_a_very_long_vector_is_refused_before_anything_is_made_for_it(arm, name):
    with pytest.raises(ValueError, match=r"got \(10000000,\)"):
        getattr(twin, name)(arm, *[np.zeros(10_000_000)] * CALLS[name])


def test_large_numbers_use_the_general_path(arm):
    """Their sum overflows, so the short way takes them for infinite."""
    qdd = np.array([1e308, 1e308, 0, 0, 0, 0])
    with np.errstate(over="ignore", invalid="ignore"):
        one = twin.inverse_dynamics(arm, np.zeros(6), np.zeros(6), qdd)
        many = twin.inverse_dynamics(arm, np.zeros((1, 6)), np.zeros((1, 6)), qdd[None])
    assert one.tobytes() == many[0].tobytes()


def test_a_payload_and_a_mounting_are_not_forgotten(arm):
    q = np.full(6, 0.3)
    plain = twin.gravity_torque(arm, q)
    loaded = twin.gravity_torque(arm.with_payload(twin.Payload(5.0)), q)
    hanging = twin.gravity_torque(arm.mounted("inverted"), q)
    assert np.max(np.abs(loaded - plain)) > 1
    np.testing.assert_allclose(hanging, -plain, rtol=1e-12)
    assert twin.gravity_torque(arm, q).tobytes() == plain.tobytes()


def test_wrench_and_tool_use_the_general_path(arm, rng):
    q, F = rng.uniform(-0.5, 0.5, 6), rng.uniform(-9, 9, 6)
    zeros = np.zeros(6)
    moved = twin.inverse_dynamics(arm, q, zeros, zeros) - twin.inverse_dynamics(arm, q, zeros, zeros, F)
    np.testing.assert_allclose(moved, twin.jacobian(arm, q).T @ F, rtol=0, atol=1e-11)
    tool = np.eye(4)
    tool[2, 3] = 0.1
    apart = twin.forward_kinematics(arm, q, tool)[:3, 3] - twin.forward_kinematics(arm, q)[:3, 3]
    np.testing.assert_allclose(np.linalg.norm(apart), 0.1, rtol=1e-12)


def test_interpreted_robots_use_the_general_path(tmp_path, rng):
    path = tmp_path / "tree.urdf"
    path.write_text(random_urdf(rng, 3))
    robot = uncompiled(twin.load(path))
    q = rng.uniform(-1, 1, 3)
    assert twin.gravity_torque(robot, q).tobytes() == twin.gravity_torque(robot, q[None])[0].tobytes()


def test_what_the_functions_share_can_be_written_to_and_is_nobody_else_s(arm):
    """numba knows the type of such arrays sooner; the robot itself must stay as it is."""
    for own, robots in ((arm.single_sample.inertias, arm.inertias), (arm.single_sample.gravity, arm.gravity)):
        assert own.flags.writeable
        assert not robots.flags.writeable
        assert not np.shares_memory(own, robots)
        np.testing.assert_array_equal(own, robots)


def test_a_name_that_is_no_kernel_is_no_attribute(arm):
    with pytest.raises(AttributeError):
        _ = arm.single_sample.nonsense
    assert forward.FLANGE is single_sample.FLANGE


def test_all_of_it_runs_without_compiling():
    """As NUMBA_DISABLE_JIT=1 asks for, and to the same digits."""
    code = (
        "import numpy as np, twin; r = twin.load('irb140'); q = np.full(6, 0.2);"
        "print(repr(float(twin.inverse_dynamics(r, q, q, q) @ np.arange(6))))"
    )
    answers = []
    for disabled in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
            capture_output=True,
            text=True,
            check=True,
        )
        answers.append(float(done.stdout))
    assert answers[0] == pytest.approx(answers[1], rel=1e-13)
