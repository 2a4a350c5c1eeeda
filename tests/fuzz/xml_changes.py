"""Changes to a URDF that know its form, so that many files are still accepted."""

import xml.etree.ElementTree as ET

import numpy as np

from tests.fuzz import odd
from tests.support.random_trees import random_inertial

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical", "Revolute", "")
OF_LINKS = (
    '<contact><inertia_scaling value="3"/><lateral_friction value="9"/></contact>',
    '<contact><inertia_scaling value="0.5"/></contact>',
    '<inertial><mass value="1"/></inertial>',
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
    "lying.stl": bytes(80) + b"\xff\xff\xff\x7f" + bytes(50),
    "empty.obj": b"",
}
CHAINS = (5, 40, 119, 129, 400, 1_000)


def changed(rng: np.random.Generator, root: ET.Element) -> None:
    """Make one random change."""
    odd.one_of(rng, CHANGES)(rng, root)


def number(rng, root):
    """Another number in the place of one."""
    element, name = _attribute(rng, root, lambda value: value[:1] in "-+.0123456789" and value != "")
    if element is not None:
        words = element.get(name).split()
        at = rng.integers(len(words))
        words[at] = odd.number(rng, words[at])
        element.set(name, " ".join(words))


def text(rng, root):
    """An odd text as an attribute."""
    element, name = _attribute(rng, root, lambda value: True)
    if element is not None:
        element.set(name, odd.text(rng).replace("\0", ""))


def clash(rng, root):
    """A name or a reference that is another's: two of a name, circles, second parents."""
    element, name = _attribute(rng, root, lambda value: True, names=("name", "link", "joint"))
    other, theirs = _attribute(rng, root, lambda value: True, names=("name", "link"))
    if element is not None and other is not None:
        element.set(name, other.get(theirs))


def kind(rng, root):
    """Another kind of joint."""
    joints = root.findall("joint")
    if joints:
        odd.one_of(rng, joints).set("type", odd.one_of(rng, KINDS))


def remove_attribute(rng, root):
    """An attribute left out."""
    element, name = _attribute(rng, root, lambda value: True)
    if element is not None:
        del element.attrib[name]


def remove(rng, root):
    """An element left out."""
    parent, child = _edge(rng, root)
    if child is not None:
        parent.remove(child)


def double(rng, root):
    """An element twice, or inside another one."""
    _, child = _edge(rng, root)
    if child is not None:
        copy = ET.fromstring(ET.tostring(child))
        odd.one_of(rng, [*root.iter()]).append(copy)


def reorder(rng, root):
    """The children of an element in another order."""
    element = odd.one_of(rng, [root, *root])
    children = list(element)
    rng.shuffle(children)  # type: ignore[arg-type]
    element[:] = children


def special(rng, root):
    """An element that only some programs heed, or that is not quite right, before the others or after."""
    tag, known = odd.one_of(rng, (("link", OF_LINKS), ("joint", OF_JOINTS), ("*", OF_ANY)))
    owner = odd.one_of(rng, [*root.iterfind(tag)] or [root])
    owner.insert(len(owner) * int(rng.integers(2)), ET.fromstring(odd.one_of(rng, known)))


def body(rng, root):
    """Another body, its tensor turned."""
    links = root.findall("link")
    if links:
        link = odd.one_of(rng, links)
        link[:] = [ET.fromstring(random_inertial(rng)), *(child for child in link if child.tag != "inertial")]


def mesh(rng, root):
    """A shape from a file that is not there, is broken, or is whole."""
    name = odd.one_of(rng, [*MESHES, "nowhere.stl", "package://a/b.dae", odd.text(rng).replace("\0", "")])
    shape = ET.Element(odd.one_of(rng, ("visual", "collision")))
    ET.SubElement(ET.SubElement(shape, "geometry"), "mesh", filename=name)
    odd.one_of(rng, [*root.iterfind("link"), root]).append(shape)


def chain(rng, root):
    """Many more joints, one after the other; most of them fixed, or most of them not."""
    links = [link.get("name") for link in root.iterfind("link")]
    before = links[-1] if links else "base"
    share = odd.one_of(rng, (0.0, 0.1, 1.0))
    for i in range(odd.one_of(rng, CHAINS)):
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
    """An attribute whose value fits: its element and its name, or nothing."""
    found = [
        (element, name)
        for element in root.iter()
        for name, value in element.attrib.items()
        if fits(value) and (not names or name in names)
    ]
    return odd.one_of(rng, found) if found else (None, "")


def _edge(rng, root):
    """An element and the one that it is in, or nothing."""
    found = [(parent, child) for parent in root.iter() for child in parent]
    return odd.one_of(rng, found) if found else (root, None)


OFTEN = (number, number, number, number, body, special, special, special, kind, reorder, mesh)
SELDOM = (text, clash, remove_attribute, remove, double)
CHANGES = (*OFTEN, *OFTEN, *SELDOM, *SELDOM, chain)
