"""Four libraries load the committed URDFs unchanged, and see the bodies that the files say."""

import warnings

import mujoco
import numpy as np
import pinocchio as pin
import pybullet
import pytest
from pybullet_utils.bullet_client import BulletClient
from scipy.spatial.transform import Rotation

from tests.support.urdf_files import FILES, Body, find, relative


def in_urchin(file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its dependencies' own deprecations
        import urchin

        links = urchin.URDF.load(str(file.path)).link_map
    bodies = {}
    for name in file.moving:
        inertial = links[name].inertial
        R, com = inertial.origin[:3, :3], inertial.origin[:3, 3]
        bodies[name] = Body(inertial.mass, com, R @ inertial.inertia @ R.T)
    return bodies


def in_pybullet(file):
    """Link i of PyBullet hangs on joint i; the inertial frame carries the principal axes."""
    client = BulletClient(pybullet.DIRECT)
    robot = client.loadURDF(str(file.path), flags=pybullet.URDF_USE_INERTIA_FROM_FILE)
    bodies = {}
    for j in range(client.getNumJoints(robot)):
        name = client.getJointInfo(robot, j)[12].decode()
        mass, _, moments, com, quaternion = client.getDynamicsInfo(robot, j)[:5]
        R = Rotation.from_quat(quaternion).as_matrix()
        bodies[name] = Body(mass, np.array(com), R @ np.diag(moments) @ R.T)
    client.disconnect()
    assert bodies.pop("tool0").mass == 0
    return bodies


def in_pinocchio(file):
    """Pinocchio keeps a body per moving joint, the fixed `tool0` merged into the last, and drops the base."""
    model = pin.buildModelFromUrdf(str(file.path))
    links = {joint.attrib["name"]: find(joint, "child").attrib["link"] for joint in file.joints("revolute")}
    bodies = zip(list(model.names)[1:], list(model.inertias)[1:], strict=True)
    return {links[name]: Body(body.mass, body.lever, body.inertia) for name, body in bodies}


def in_mujoco(file):
    """MuJoCo fuses the base with the world and `tool0` with the last link; quaternions are scalar first."""
    model = mujoco.MjModel.from_xml_path(str(file.path))
    bodies = {}
    for i in range(1, model.nbody):
        body = model.body(i)
        R = Rotation.from_quat(body.iquat, scalar_first=True).as_matrix()
        bodies[body.name] = Body(body.mass[0], body.ipos, R @ np.diag(body.inertia) @ R.T)
    return bodies


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("load", [in_urchin, in_pybullet, in_pinocchio, in_mujoco])
def test_loads_unchanged_with_the_same_bodies(load, name):
    file = FILES[name]
    bodies = load(file)
    assert sorted(bodies) == sorted(file.moving)
    for link, body in bodies.items():
        expected = file.body(link)
        assert relative(body.mass, expected.mass) < 1e-15, link
        assert relative(body.com, expected.com) < 1e-12, link
        assert relative(body.inertia, expected.inertia) < 1e-12, link
