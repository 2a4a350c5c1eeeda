"""Formulas of small trees: they must agree with the kernel, from which they share nothing."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from tests.support.random_trees import interpreted, random_urdf
from tests.support.small_robots import inertial
from tests.support.symbolic_checks import agrees, is_skew
from twin.dynamics.symbolic.trees import mass_symbols, tree_dynamics


@pytest.fixture
def right_angled(load):
    """Three joints about z, y and y, with mass off every axis, as a robot with named links."""
    links = "".join(f'<link name="{name}">{inertial()}</link>' for name in ("base", "one", "two", "three"))
    axes = (("base", "one", "0 0 1"), ("one", "two", "0 1 0"), ("two", "three", "0 -1 0"))
    joints = "".join(
        f'<joint name="to_{child}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.15 0.02 0.4"/><axis xyz="{axis}"/>'
        '<limit lower="-3" upper="3" effort="9" velocity="9"/></joint>'
        for parent, child, axis in axes
    )
    return load(f'<robot name="right_angled">{links}{joints}</robot>')


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_are_the_kernel(load, seed):
    rng = np.random.default_rng(seed)
    robot = load(random_urdf(rng, 2 + seed % 2))
    agrees(tree_dynamics(robot.tree), robot, rng)


def test_mounted_robot_is_the_kernel(load, rng):
    robot = load(random_urdf(rng, 2)).with_gravity((3.0, -4.0, 5.0))
    agrees(tree_dynamics(robot.tree, gravity=robot.gravity.tolist()), interpreted(robot), rng)


def test_coupled_tree_is_the_kernel(right_angled, rng):
    """An embedding with offsets and a ratio that is not whole."""
    G, g0 = np.array([[1, 0], [0.5, 0], [-1, 1]]), np.array([0.1, 0, -0.3])
    limits = {name: getattr(right_angled, name)[:2] for name in ("q_min", "q_max", "qd_max", "tau_max")}
    coupled = interpreted(replace(right_angled, embedding=G, embedding_offset=g0, driven=(0, 2), **limits))
    agrees(tree_dynamics(right_angled.tree, G, g0), coupled, rng)
    with pytest.raises(ValueError, match=r"expected G \(3, n\), g0 \(3,\) and 3 links, got \(2, 2\), \(3,\)"):
        tree_dynamics(right_angled.tree, np.eye(2))


def test_symbols_for_masses_are_the_kernel(right_angled, rng):
    tree = right_angled.tree
    gx, gy, gz = sp.symbols("gx gy gz", real=True)
    dynamics = tree_dynamics(tree, links=mass_symbols(tree), gravity=(gx, gy, gz))
    values = {"gx": 0.0, "gy": 0.0, "gz": -9.81}
    for k in (1, 2, 3):  # as tests.support.small_robots.inertial gives them
        values |= {f"m{k}": 2.0, f"x{k}": 0.1, f"y{k}": 0.05, f"z{k}": 0.2}
        values |= {f"I{pair}{k}": 0.1 if pair[0] == pair[1] else 0.0 for pair in ("xx", "yy", "zz", "xy")}
        values |= {f"I{pair}{k}": 0.0 for pair in ("xz", "yz")}
    agrees(dynamics, right_angled, rng, [values[symbol.name] for symbol in dynamics.parameters])
    assert is_skew(dynamics)
