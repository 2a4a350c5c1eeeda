"""The shapes that a robot is drawn with have the bulk that its mass properties say."""

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull, cKDTree
from scipy.spatial.transform import Rotation

from tests.support.cover import cad
from tests.support.shared_data import shared_folder
from tests.support.urdf_files import FILES
from urdf.solids import bulk

pytestmark = pytest.mark.slow("builds and compiles arms")

LINKS = [(name, link, values) for name, file in FILES.items() for link, values in file.facts["link"].items()]


DRAWN_AFTER = {
    ("irb2400", "1"): (0.03007, 0.02068, 0.44483),
    ("irb2400", "2"): (0.15086, 0.00047, 0.93657),
    ("irb2400", "3"): (0.09887, -0.01024, 1.43619),
}
"""Centres of the CAD, in [m], of links that have the published ones instead."""


def is_hollow(values):
    return "hollow_box" in values.get("solid", {})


def in_shape(shape, points):
    """Which of the points (N, 3) lie in one shape of `robot.toml`."""
    if "box" in shape:
        R = Rotation.from_euler("xyz", shape.get("rpy_deg", [0, 0, 0]), degrees=True).as_matrix()
        return np.all(np.abs((points - shape["at"]) @ R) <= np.array(shape["box"]) / 2, axis=1)
    start, end = np.array(shape["from"], float), np.array(shape["to"], float)
    length = np.linalg.norm(end - start)
    along = (points - start) @ (end - start) / length
    off_axis = np.sum((points - start) ** 2, axis=1) - along**2
    return (along >= 0) & (along <= length) & (off_axis <= shape["cylinder"] ** 2)


def extent(shape):
    """Lowest and highest corner, (2, 3), of one shape."""
    if "box" in shape:
        R = Rotation.from_euler("xyz", shape.get("rpy_deg", [0, 0, 0]), degrees=True).as_matrix()
        ends, across = np.array([shape["at"]]), np.abs(R) @ np.array(shape["box"]) / 2
    else:
        ends = np.array([shape["from"], shape["to"]], float)
        axis = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
        across = shape["cylinder"] * np.sqrt(np.maximum(1 - axis**2, 0))
    return np.array([ends.min(axis=0) - across, ends.max(axis=0) + across])


def bounds(shapes):
    """Lowest and highest corner, (2, 3), of all shapes together."""
    corners = np.array([extent(shape) for shape in shapes])
    return np.array([corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)])


def sampled(shapes, seed):
    """Points within the shapes, (N, 3), and their volume in [m^3]."""
    low, high = bounds(shapes)
    points = np.random.default_rng(seed).uniform(low, high, (8_000, 3))
    inside = np.any([in_shape(shape, points) for shape in shapes], axis=0)
    return points[inside], inside.mean() * np.prod(high - low)


@pytest.mark.parametrize("kind", ["visual", "collision"])
def test_shapes_have_the_bulk_of_the_link(kind):
    """As `robot.toml` claims: volume within 20 % and centre within 25 mm."""
    for name, link, values in LINKS:
        if not is_hollow(values):
            points, volume = sampled(values[kind], seed=3)
            expected = bulk(values)
            assert 0.8 < volume / float(expected.volume) < 1.2, (name, link)
            com = DRAWN_AFTER.get((name, link), expected.com)
            distance = np.linalg.norm(points.mean(axis=0) - np.array(com, float))
            assert distance < 0.025, (name, link)


@pytest.mark.parametrize(("kind", "tolerance"), [("visual", 0.003), ("collision", 0.030)])
def test_shapes_fill_the_extents_of_a_hollow_box(kind, tolerance):
    """As `robot.toml` claims; a box is all corners, so its volume and centre are not the shapes'."""
    for name, link, values in LINKS:
        if is_hollow(values):
            half = np.array(values["solid"]["hollow_box"]) / 2
            beyond = bounds(values[kind]) - (values["solid"]["at"] + np.array([-half, half]))
            assert np.max(np.abs(beyond)) < tolerance, (name, link)
            assert np.all(beyond[0] > -0.003), (name, link)
            assert np.all(beyond[1] < 0.003), (name, link)


def test_products_of_inertia_have_the_sign_of_the_bulk():
    """Ixy = -integral of x y dm, where it is large: a CAD's own tool may print the opposite sign."""
    for name, cases in (("irb140", "base xz, 1 xz, 1 yz, 2 yz"), ("irb1400", "base xz, 1 xz, 3 xz")):
        for link, product in map(str.split, cases.split(", ")):
            values = FILES[name].facts["link"][link]
            i, j = ("xyz".index(letter) for letter in product)
            correlation = np.corrcoef(sampled(values["visual"], seed=4)[0].T)[i, j]
            assert abs(correlation) > 0.05, (name, link, product)
            inertia = values["inertia"][("xy", "xz", "yz").index(product) + 3]
            assert np.sign(inertia) == -np.sign(correlation), (name, link, product)


CAD = {"irb120": "irb120", "irb1200": "irb1200_5_90", "irb1600_10": "irb1600"}
CAD |= {"irb2400": "irb2400", "irb2600": "irb2600_12_165", "irb4600": "irb4600_60_205"}
"""Folders of the meshes that the shapes were drawn after."""

HULLS = {("irb2600", "4")}
"""Links whose public mesh is the convex hull: the shapes, of the CAD's volume, are within it, not at it."""


def surface(shape):
    """Points on one shape and just outside of them, (N, 3) each."""
    if "box" in shape:
        mesh, T = trimesh.creation.box(shape["box"]), np.eye(4)
        T[:3, :3] = Rotation.from_euler("xyz", shape.get("rpy_deg", [0, 0, 0]), degrees=True).as_matrix()
        T[:3, 3] = shape["at"]
        mesh.apply_transform(T)
    else:
        mesh = trimesh.creation.cylinder(shape["cylinder"], segment=[shape["from"], shape["to"]], sections=48)
    points, faces = trimesh.sample.sample_surface(mesh, 1500, seed=1)
    return points, points + 2e-4 * mesh.face_normals[faces], mesh.area


@pytest.mark.shared
@pytest.mark.parametrize("name", [name for name in CAD if name in FILES])
def test_what_is_drawn_is_near_the_cad(name):
    """As `robot.toml` claims: 95 % of either surface within 20 mm of the other, but for `HULLS`."""
    folder = shared_folder()
    assert folder is not None
    meshes = cad(name, folder / "abb_meshes" / CAD[name])
    for link, mesh in zip(["base", *"123456"], meshes, strict=True):
        shapes = FILES[name].facts["link"][link]["visual"]
        seen, weights = [], []
        for k, shape in enumerate(shapes):
            points, outside, area = surface(shape)
            others = shapes[:k] + shapes[k + 1 :]
            free = ~np.any([np.zeros(len(points), bool), *(in_shape(one, outside) for one in others)], axis=0)
            seen.append(points[free])
            weights.append(np.full(free.sum(), area))
        drawn, weight = np.concatenate(seen), np.concatenate(weights)
        if (name, link) in HULLS:
            hull = ConvexHull(mesh.vertices)
            assert mesh.volume == pytest.approx(hull.volume, rel=1e-3)
            beyond = np.max(drawn @ hull.equations[:, :3].T + hull.equations[:, 3], axis=1)
            assert weight[beyond > 0.020].sum() < 0.05 * weight.sum(), link
            continue
        outer = trimesh.sample.sample_surface(mesh, 20_000, seed=1)[0]
        far = cKDTree(outer).query(drawn)[0] > 0.020
        assert weight[far].sum() < 0.05 * weight.sum(), link
        points = outer[::7]
        inside = np.any([in_shape(shape, points) for shape in shapes], axis=0)
        assert np.mean((cKDTree(drawn).query(points)[0] > 0.020) & ~inside) < 0.05, link
