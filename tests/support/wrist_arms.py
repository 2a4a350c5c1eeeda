"""URDFs of random arms with a spherical wrist, with frames, axes, base and flange drawn anywhere."""

import numpy as np
from scipy.spatial.transform import Rotation

import twin
from twin.robot.dh import DH, dh_transforms


def random_table(rng, offset):
    """Return the DH table of a random arm; with `offset`, the wrist centre lies beside the arm's plane."""
    right = np.pi / 2
    a = [rng.uniform(-0.2, 0.3), rng.uniform(0.3, 0.8), rng.uniform(-0.1, 0.2), 0.0, 0.0, 0.0]
    d = [rng.uniform(0.1, 0.6), 0.0, rng.uniform(-0.2, 0.2) * offset, rng.uniform(0.3, 0.8), 0.0, 0.1]
    alpha = [-right, 0.0, rng.choice([-right, right]), 0.0, 0.0, 0.0]
    alpha[3] = rng.choice([-right, right])
    alpha[4] = -alpha[3]
    theta0 = rng.uniform(-0.3, 0.3, 6) - right * np.eye(6)[1]
    return DH(*(np.array(column, dtype=float) for column in (theta0, d, a, alpha)))


def random_pose(rng, length=0.3):
    T = np.eye(4)
    T[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    T[:3, 3] = rng.uniform(-length, length, 3)
    return T


def urdf_text(rng, dh, digits=17):
    """Return the URDF of an arm with this table; its numbers are rounded to some digits after the point."""
    frames = [np.eye(4)]
    for A in dh_transforms(dh, dh.theta0):
        frames.append(frames[-1] @ A)
    T_base_0 = random_pose(rng)
    signs = rng.choice([-1.0, 1.0], 6)
    links, axes = [np.eye(4)], []
    for i in range(6):
        z, origin = (T_base_0 @ frames[i])[:3, 2], (T_base_0 @ frames[i])[:3, 3]
        link = random_pose(rng)
        link[:3, 3] = origin + rng.uniform(-0.2, 0.2) * z  # anywhere on the axis
        links.append(link)
        axes.append(signs[i] * link[:3, :3].T @ z)
    links.append(T_base_0 @ frames[6] @ random_pose(rng, 0.1))
    names = ["base", *(f"link_{k}" for k in range(1, 7)), "tool0"]
    text = ['<robot name="drawn">', *(f'<link name="{name}"/>' for name in names)]

    def written(numbers):
        return " ".join(repr(round(float(number), digits)) for number in numbers)

    for i in range(7):
        T = np.linalg.inv(links[i]) @ links[i + 1]
        rpy = Rotation.from_matrix(T[:3, :3]).as_euler("xyz")
        text += [
            f'<joint name="joint_{i + 1}" type="{"revolute" if i < 6 else "fixed"}">',
            f'<parent link="{names[i]}"/><child link="{names[i + 1]}"/>',
            f'<origin xyz="{written(T[:3, 3])}" rpy="{written(rpy)}"/>',
            f'<axis xyz="{written([*axes, (0, 0, 1)][i])}"/>',
            '<limit lower="-3.1" upper="3.1" effort="0" velocity="0"/></joint>',
        ]
    return "\n".join([*text, "</robot>"])


def drawn_arm(rng, folder, offset=False, digits=17):
    """Return a random arm of the family as loaded from its URDF in a folder."""
    path = folder / "drawn.urdf"
    path.write_text(urdf_text(rng, random_table(rng, offset), digits), encoding="utf-8")
    return twin.load(path)


def solutions_and_errors(robot, q):
    """Return the largest pose error of all solutions, and how far the nearest is from each generating q."""
    T = twin.forward_kinematics(robot, q)
    rows = twin.inverse_kinematics(robot, T, limits=False)
    there = np.isfinite(rows[..., 0])
    reached = twin.forward_kinematics(robot, rows[there])
    error = np.max(np.abs(reached - np.repeat(T[:, None], 8, axis=1)[there]))
    apart = np.abs((rows - q[:, None] + np.pi) % (2 * np.pi) - np.pi).max(axis=-1)
    return error, np.nanmin(np.where(there, apart, np.nan), axis=1)
