"""Changes to a URDF that respect XML, so that many files are still accepted."""

import xml.etree.ElementTree as ET

import numpy as np

from tests.fuzz import unusual
from tests.support.random_trees import random_inertial

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical", "Revolute", "")
OF_LINKS = (
    '<contact><inertia_scaling value="3"/><lateral_friction value="9"/></contact>',
    '<inertial><inertia ixx="1" iyy="1" izz="3" ixy="0" ixz="0" iyz="0"/></inertial>',
    '<visual><geometry><capsule radius="0.1" length="0.2"/></geometry></visual>',
    '<collision><geometry><cylinder radius="-1" length="nan"/></geometry></collision>',
    '<collision><geometry><box size="9 9 9"/></geometry></collision>',
    '<visual><geometry><box size="0.1 0.1"/></geometry><material name="[/x]"/></visual>',
)
OF_JOINTS = (
    '<dynamics damping="0.7" friction="0.3"/>',
    '<mimic joint="joint0" multiplier="2" offset="0.1"/>',
    '<safety_controller soft_lower_limit="0" soft_upper_limit="0" k_position="9" k_velocity="9"/>',
    '<limit lower="-0.1" upper="0.1" effort="0" velocity="0"/>',
    '<origin xyz="0.1 0.2 0.3" rpy="0.1 -0.2 3.1"/>',
    '<axis xyz="0.6 0 0.8"/>',
)
OF_ANY = (
    '<gazebo reference="x"><kp>1e8</kp></gazebo>',
    '<transmission name="t"><type>none</type></transmission>',
    '<sensor_frame_stl filename=""/>',
)
MESHES = {
    "broken.obj": b"v 0 0 0\nv 1 0 0\nf 1 2 9999999\n",
    "negative.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf -1 -2 -77\n",
    "whole.obj": b"v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nf 1 2 3\n",
    "nan.obj": b"v nan inf 1e999\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
    "broken.dae": b"<COLLADA><library_geometries><geometry><mesh><source>",
    "short.stl": b"solid x" + bytes(80),
    "false_count.stl": bytes(80) + b"\xff\xff\xff\x7f" + bytes(50),
}
CHAINS = (5, 40, 119, 129, 400, 1_000)


def changed(rng: np.random.Generator, root: ET.Element) -> None:
    """Apply one random change."""
    unusual.one_of(rng, CHANGES)(rng, root)


def number(rng, root):
    """Replace a number of an attribute."""
    element, name = _attribute(rng, root, lambda value: value[:1] in "-+.0123456789" and value != "")
    if element is not None:
        numbers = element.get(name).split()
        at = rng.integers(len(numbers))
        numbers[at] = unusual.number(rng, numbers[at])
        element.set(name, " ".join(numbers))


def text(rng, root):
    """Replace an attribute by an unusual text."""
    element, name = _attribute(rng, root, lambda value: True)
    if element is not None:
        element.set(name, unusual.text(rng).replace("\0", ""))


def clash(rng, root):
    """Copy a name or reference to another attribute, which makes duplicates, cycles or second parents."""
    element, name = _attribute(rng, root, lambda value: True, names=("name", "link", "joint"))
    other, other_name = _attribute(rng, root, lambda value: True, names=("name", "link"))
    if element is not None and other is not None:
        element.set(name, other.get(other_name))


def kind(rng, root):
    """Change the type of a joint."""
    joints = root.findall("joint")
    if joints:
        unusual.one_of(rng, joints).set("type", unusual.one_of(rng, KINDS))


def remove_attribute(rng, root):
    """Remove an attribute."""
    element, name = _attribute(rng, root, lambda value: True)
    if element is not None:
        del element.attrib[name]


def remove(rng, root):
    """Remove an element."""
    parent, child = _edge(rng, root)
    if child is not None:
        parent.remove(child)


def double(rng, root):
    """Copy an element into a random element."""
    _, child = _edge(rng, root)
    if child is not None:
        copy = ET.fromstring(ET.tostring(child))
        unusual.one_of(rng, [*root.iter()]).append(copy)


def reorder(rng, root):
    """Shuffle the children of an element."""
    element = unusual.one_of(rng, [root, *root])
    children = list(element)
    rng.shuffle(children)  # type: ignore[arg-type]
    element[:] = children


def special(rng, root):
    """Insert an element that only some programs use, or an invalid one, before or after its siblings."""
    tag, known = unusual.one_of(rng, (("link", OF_LINKS), ("joint", OF_JOINTS), ("*", OF_ANY)))
    owner = unusual.one_of(rng, [*root.iterfind(tag)] or [root])
    owner.insert(len(owner) * int(rng.integers(2)), ET.fromstring(unusual.one_of(rng, known)))


def body(rng, root):
    """Replace the inertial of a link by a random one with a rotated tensor."""
    links = root.findall("link")
    if links:
        link = unusual.one_of(rng, links)
        link[:] = [ET.fromstring(random_inertial(rng)), *(child for child in link if child.tag != "inertial")]


def mesh(rng, root):
    """Add a shape whose mesh file is missing, broken or valid."""
    name = unusual.one_of(
        rng, [*MESHES, "nowhere.stl", "package://a/b.dae", unusual.text(rng).replace("\0", "")]
    )
    shape = ET.Element(unusual.one_of(rng, ("visual", "collision")))
    ET.SubElement(ET.SubElement(shape, "geometry"), "mesh", filename=name)
    unusual.one_of(rng, [*root.iterfind("link"), root]).append(shape)


def chain(rng, root):
    """Append a long chain of joints, of which none, a tenth or all can move."""
    links = [link.get("name") for link in root.iterfind("link")]
    before = links[-1] if links else "base"
    share = unusual.one_of(rng, (0.0, 0.1, 1.0))
    for i in range(unusual.one_of(rng, CHAINS)):
        moves = rng.random() < share
        link = ET.SubElement(root, "link", name=f"more{i}")
        if moves:
            link.append(ET.fromstring(random_inertial(rng)))
        joint = ET.SubElement(root, "joint", name=f"more{i}", type="revolute" if moves else "fixed")
        ET.SubElement(joint, "parent", link=before)
        ET.SubElement(joint, "child", link=f"more{i}")
        ET.SubElement(joint, "origin", xyz="0.01 0 0.02", rpy="0 0.1 0")
        before = f"more{i}"


def _attribute(rng, root, fits, names=()):
    """Draw an attribute whose value fits; return its element and name, or `(None, "")`."""
    found = [
        (element, name)
        for element in root.iter()
        for name, value in element.attrib.items()
        if fits(value) and (not names or name in names)
    ]
    return unusual.one_of(rng, found) if found else (None, "")


def _edge(rng, root):
    """Draw an element; return its parent and the element, or `(root, None)`."""
    found = [(parent, child) for parent in root.iter() for child in parent]
    return unusual.one_of(rng, found) if found else (root, None)


OFTEN = (number, number, number, number, body, special, special, special, kind, reorder, mesh)
SELDOM = (text, clash, remove_attribute, remove, double)
CHANGES = (*OFTEN, *OFTEN, *SELDOM, *SELDOM, chain)
