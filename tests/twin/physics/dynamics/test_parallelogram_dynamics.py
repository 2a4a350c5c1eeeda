"""The IRB 1400's embedding, and the dynamics of any embedding of any tree.

tests/test_agreement.py compares the arm with solvers for loops, and with other libraries' trees reduced by G.
"""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.peers import Pinocchio, Reduced, check_kernels, largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from tests.support.sample_loads import BODY
from twin.physics.multibody.tree import frozen


@pytest.fixture(scope="module")
def arm():
    return twin.load("irb1400")


@pytest.mark.parametrize("seed", range(2))
def test_any_embedding_of_any_tree(tmp_path, seed):
    """Weights of all sizes, an offset, joints that follow several others: against the same reduction."""
    rng = np.random.default_rng(seed)
    joints = int(rng.integers(4, 8))
    urdf = tmp_path / "tree.urdf"
    urdf.write_text(random_urdf(rng, joints))
    tree = twin.load(urdf)
    n = joints - 2
    driven = rng.permutation(joints)[:n]
    G = rng.normal(size=(joints, n))
    G[driven] = np.eye(n)
    limits = {name: frozen(np.full(n, np.inf)) for name in ("q_min", "q_max", "qd_max", "tau_max")}
    offset, coupling = frozen(rng.normal(size=joints)), frozen(np.eye(n))
    parts = dict(embedding=frozen(G), embedding_offset=offset, driven=tuple(driven.tolist()))  # noqa: C408
    robot = interpreted(replace(tree, **parts, dh_coupling=coupling, **limits))
    peer = Reduced(robot, Pinocchio(urdf, tree.tree.names))
    q, qd = rng.normal(size=(2, 5, n))
    np.testing.assert_allclose(robot.tree_positions(q), q @ G.T + offset, rtol=0, atol=1e-14)
    assert set(robot.passive) == set(range(joints)) - set(driven.tolist())
    check_kernels(robot, peer, rng)
    energy = np.array([[peer.energy(*sample)] for sample in zip(q, qd, strict=True)])
    assert largest_relative_error(twin.energy(robot, q, qd)[:, None], energy) < 1e-12


def test_another_embedding_has_other_kernels(arm):
    """They are kept by what they are made of: G and its offset are folded into them."""
    G, g0 = arm.embedding.copy(), arm.embedding_offset.copy()
    G[2, 1], g0[2] = 1.0, 0.1
    changes = {"embedding": frozen(G), "embedding_offset": frozen(g0), "loops": ()}
    others = [replace(arm, **{name: value}) for name, value in changes.items()]
    assert replace(arm, payload=BODY).kernels is arm.kernels
    assert len({id(robot.kernels) for robot in (arm, *others)}) == 4
    q = np.full(6, 0.2)
    expected = Pinocchio(arm.urdf, arm.tree.names).forward_kinematics(arm.embedding @ q + g0)
    np.testing.assert_allclose(twin.forward_kinematics(others[1], q), expected, rtol=0, atol=1e-14)
