"""Small robots as URDF text that each expose one pitfall of PyBullet, and the error of one step."""

import numpy as np

from twin import Simulation, forward_dynamics

BALL = (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)


def inertial(mass=2.0, com="0.1 0.05 0.2", rpy="0 0 0", tensor=BALL):
    xx, yy, zz, xy, xz, yz = (repr(float(x)) for x in tensor)
    return (
        f'<inertial><origin xyz="{com}" rpy="{rpy}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="{xz}" iyz="{yz}"/></inertial>'
    )


def joint(name, parent, child, kind="revolute", axis="0 0 1", inside=""):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0.1 0.2 0.3" rpy="0.3 -0.2 0.1"/><axis xyz="{axis}"/>'
        f'<limit lower="-1" upper="1" effort="100" velocity="3"/>{inside}</joint>'
    )


LUMP = inertial()


def arm(base=LUMP, first=LUMP, second=LUMP, axis="0 0 1", dynamics="", shape=""):
    """Return URDF text of two links on a base, with a massless frame `tool0` at the end."""
    return "\n".join(
        [
            '<robot name="arm">',
            f'<link name="base">{base}</link>',
            f'<link name="one">{first}{shape}</link>',
            f'<link name="two">{second}</link>',
            f'<link name="tool0">{inertial(0.0, tensor=np.zeros(6))}</link>',
            joint("shoulder", "base", "one", axis=axis, inside=dynamics),
            joint("elbow", "one", "two", axis="0 1 0"),
            joint("flange", "two", "tool0", kind="fixed"),
            "</robot>",
        ]
    )


ROTOR = f"""
<robot name="rotor">
  <link name="base">{inertial()}</link>
  <link name="wheel">{inertial(com="0 0 0")}</link>
  <joint name="axle" type="revolute"><parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="100" velocity="3"/></joint>
</robot>"""

# A valid robot: shapes that match the masses and moments, limits on every joint.
SOUND = """<robot name="arm">
<link name="base"><visual><geometry><box size="0.2 0.2 0.1"/></geometry></visual></link>
<link name="one">
  <inertial><origin xyz="0.15 0 0"/><mass value="3"/>
  <inertia ixx="0.004" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><origin xyz="0.15 0 0"/><geometry><box size="0.3 0.1 0.1"/></geometry></collision>
</link>
<link name="two">
  <inertial><origin xyz="0 0 0.1" rpy="0.1 0 0"/><mass value="1"/>
  <inertia ixx="0.004" iyy="0.004" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.05" length="0.2"/></geometry></visual>
</link>
<joint name="turn" type="revolute">
  <parent link="base"/><child link="one"/><origin xyz="0 0 0.1"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" velocity="3" effort="5"/>
</joint>
<joint name="slide" type="prismatic">
  <parent link="one"/><child link="two"/><origin xyz="0.3 0 0"/><axis xyz="0 0 1"/>
  <limit lower="0" upper="0.2" velocity="0.5" effort="50"/>
</joint>
</robot>"""


def one_step_error(simulation, rng, states=10):
    """Return the largest relative error of the acceleration of one step over random states."""
    robot, dt, worst = simulation.robot, simulation.time_step, 0.0
    for _ in range(states):
        q, qd, tau = rng.uniform(-3, 3, robot.n), rng.uniform(-2, 2, robot.n), rng.uniform(-9, 9, robot.n)
        simulation.reset(q, qd)
        simulation.step(tau)
        q_next, qd_next = simulation.state()
        qdd = forward_dynamics(robot, q, qd, tau)
        worst = max(worst, np.max(np.abs((qd_next - qd) / dt - qdd)) / np.max(np.abs(qdd)))
        np.testing.assert_array_equal(q_next, q + dt * qd_next)
    return worst


def agrees(robot, rng):
    with Simulation(robot) as simulation:
        return one_step_error(simulation, rng) < 1e-11
