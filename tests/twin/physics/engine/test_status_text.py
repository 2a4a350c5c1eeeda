"""Text of the window on the loads of the arm."""

from types import SimpleNamespace

import numpy as np

import twin
from twin.physics.engine.window.controls import StatusText


def loads_text(robot, q, qd, tau, push=None):
    arm = SimpleNamespace(robot=robot, state=lambda: np.array([q, qd]), tau_joint=tau)
    return StatusText(SimpleNamespace(arm=arm, push=push))._loads_text()


def test_base_load_and_force_at_the_pin_are_those_of_the_motion(irb1400):
    q, qd = np.full(6, 0.2), np.full(6, 0.5)
    tau = twin.gravity_torque(irb1400, q)
    wrenches = twin.joint_wrenches(irb1400, q, qd, twin.forward_dynamics(irb1400, q, qd, tau))
    force, moment = np.linalg.norm(wrenches.base[:3]), np.linalg.norm(wrenches.base[3:])
    pin = np.linalg.norm(wrenches.pins["parallelogram"])
    text = f"base {force:.0f} N  {moment:.0f} N m   parallelogram {pin:.0f} N"
    assert loads_text(irb1400, q, qd, tau) == text
    weight = (irb1400.tree.inertias[:, 0].sum() + irb1400.tree.base_inertia[0]) * 9.81
    assert loads_text(irb1400, q, 0 * q, tau).startswith(f"base {weight:.0f} N  ")


def test_no_load_is_stated_while_the_tool_is_pushed_or_after_a_divergence(irb140):
    q, tau = np.zeros(6), np.zeros(6)
    assert loads_text(irb140, q, q, tau)
    assert loads_text(irb140, q, q, tau, push=np.ones(3)) == ""
    assert loads_text(irb140, q, q, np.full(6, np.nan)) == ""
