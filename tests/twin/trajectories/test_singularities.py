import numpy as np
import pytest

import twin
from twin.errors import SingularityError
from twin.trajectories.joint_paths import check_singularities, singular_distances
from twin.trajectories.joint_trajectories import quintic
from twin.trajectories.sampling import Samples, sample

ROBOT = twin.load("irb140")
RNG = np.random.default_rng(9)
Q = RNG.uniform(ROBOT.q_min, ROBOT.q_max, (200, 6))
QD = RNG.uniform(-ROBOT.qd_max, ROBOT.qd_max, (200, 6))


# Lower arm times forearm.
LENGTHS = {"irb140": 0.36 * 0.38, "irb1400": 0.6 * np.hypot(0.12, 0.72), "irb1600": 0.7 * 0.6}


def test_the_determinant_of_the_jacobian_is_their_product_and_rates_are_their_derivatives(arm):
    distances, rates = singular_distances(arm, Q, QD)
    before, after = (singular_distances(arm, Q + sign * 1e-4 * QD, QD)[0] for sign in (-1, 1))
    np.testing.assert_allclose(rates, (after - before) / 2e-4, rtol=0, atol=3e-6)
    determinant = LENGTHS[arm.name] * np.abs(np.prod(distances, axis=1))
    found = np.abs(np.linalg.det(twin.jacobian(arm, Q)))
    np.testing.assert_allclose(found, determinant, rtol=1e-12, atol=1e-15)


# The forearm leans back until the wrist centre is 0.5 mm in front of axis 1.
BENT_BACK = 0.5 - np.arccos((5e-4 - 0.07 + 0.36 * np.sin(0.5)) / 0.38)
MET = {  # an arm at each singularity, and how it is named
    "wrist": ([0.2, 0.1, 0.2, 0.3, 5e-4, 0.4], r"the sine .* is 0\.0005 \(joint_5 at 0\.0286"),
    "elbow": ([0.2, 0.1, 5e-4 - np.pi / 2, 0.3, 0.6, 0.4], r"the sine .* is 0\.0005 \(joint_3 at -89\.97"),
    "shoulder": ([0.2, -0.5, BENT_BACK, 0.3, 0.6, 0.4], r"the wrist .* is 0\.0005 m \(joint_1 at 11\.459"),
}


def standing(q):
    return Samples(np.zeros(1), np.array([q]), np.zeros((1, 6)), np.zeros((1, 6)))


@pytest.mark.parametrize("kind", MET)
def test_a_singularity_is_named(kind):
    told = rf"t = 0 s: {kind} singularity, {MET[kind][1]}.*; expected at least 0\.001"
    with pytest.raises(SingularityError, match=told):
        check_singularities(ROBOT, standing(MET[kind][0]))


def test_of_coupled_joints_all_that_turn_the_axis_are_named_and_nan_is_no_safe_distance(irb1400):
    """The elbow is stretched at q3 - q2 = -80.54 degrees, which is outside its limits."""
    stretched = np.rad2deg(-np.arctan2(0.72, 0.12))
    told = r"elbow singularity, .* \(joint_2 at 70 deg, joint_3 at -10\.5377 deg\); expected at least"
    with pytest.raises(SingularityError, match=told):
        check_singularities(irb1400, standing(np.deg2rad([0.0, 70.0, 70.0 + stretched, 0.0, 30.0, 0.0])))
    with pytest.raises(SingularityError):
        check_singularities(ROBOT, standing(np.full(6, np.nan)))


def test_a_passage_between_samples_is_noticed():
    q = np.array([0.2, 0.1, 0.2, 0.3, 0.5, 0.4])
    move = quintic(q, q * [1, 1, 1, 1, -1.3, 1], 0.5)  # through q5 = 0 at some odd time
    samples = sample(move, 1e-3)
    assert np.abs(np.sin(samples.q[:, 4])).min() > 1e-3
    told = r"wrist singularity, .* covers .* in one sample, so it passes through"
    with pytest.raises(SingularityError, match=told):
        check_singularities(ROBOT, samples)
    check_singularities(ROBOT, sample(quintic(q, q * [1, 1, 1, 1, 0.1, 1], 0.5), 1e-3))
