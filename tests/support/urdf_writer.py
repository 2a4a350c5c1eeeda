"""Write the URDF of a robot that has none, for other libraries; numbers are exact to the bit."""

import numpy as np
from scipy.spatial.transform import Rotation

from tests.support.random_trees import text
from twin.physics.multibody.tree import body_from_parameters


def urdf_of_tree(robot):
    """Write the URDF of a robot, without its payload and limits, from its tree; the flange is `tool0`.

    Raises:
        RobotError: the masses of its links are not known.
    """
    robot.require_inertia()
    tree = robot.tree if robot.bare is None else robot.bare
    links = [*tree.links, "base_link"]  # the parent of the first joints has number -1
    parts = ['<robot name="written"><link name="base_link"/><link name="tool0"/>']
    for i in range(tree.n):
        mass, com, tensor = body_from_parameters(tree.inertias[i])
        entries = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), tensor[np.triu_indices(3)], strict=True)
        inertia = " ".join(f'{name}="{text([entry])}"' for name, entry in entries)
        parts += [
            f'<link name="{links[i]}"><inertial><origin xyz="{text(com)}"/><mass value="{text([mass])}"/>',
            f"<inertia {inertia}/></inertial></link>",
            _joint(tree.names[i], tree.kinds[i], links[tree.parents[i]], links[i], tree.T_parent_joint[i]),
            f'<axis xyz="{text(tree.axes[i])}"/>',
            '<limit lower="-9" upper="9" velocity="9" effort="999"/></joint>',
        ]
    flange = _joint("to_tool", "fixed", links[tree.flange_joint], "tool0", tree.T_joint_flange)
    return "\n".join([*parts, flange, "</joint></robot>"])


def _joint(name, kind, parent, child, T):
    rpy = Rotation.from_matrix(T[:3, :3]).as_euler("xyz")
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{text(T[:3, 3])}" rpy="{text(rpy)}"/>'
    )
