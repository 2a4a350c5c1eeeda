"""Small URDFs in the manner of makers and exporters."""

BALL = '<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="0" iyz="-0.002"/>'


def link(name, mass=1.0, inside=""):
    """Return a link; a mass of `None` is a frame."""
    body = "" if mass is None else (
        f'<inertial><origin xyz="0.05 -0.02 0.1" rpy="0.1 0.2 0.3"/><mass value="{mass}"/>{BALL}</inertial>'
    )  # fmt: skip
    return f'<link name="{name}">{body}{inside}</link>\n'


def joint(name, parent, child, kind="revolute", axis="0 0 1", xyz="0 0 0.2", rpy="0 0 0", inside=None):
    """Return a joint, with limits unless `inside` is given."""
    inside = '<limit lower="-2" upper="2" velocity="3" effort="50"/>' if inside is None else inside
    origin = f'<origin xyz="{xyz}" rpy="{rpy}"/><parent link="{parent}"/><child link="{child}"/>'
    axis = "" if kind == "fixed" else f'<axis xyz="{axis}"/>{inside}'
    return f'<joint name="{name}" type="{kind}">{origin}{axis}</joint>\n'


def mimic(leader, multiplier=1.0, offset=0.0):
    """Return the inside of a joint that follows another one."""
    return (
        f'<limit lower="0" upper="1" velocity="3" effort="0"/>'
        f'<mimic joint="{leader}" multiplier="{multiplier}" offset="{offset}"/>'
    )


def chain(joints, masses=True):
    """Return links `link_0` to `link_n` and the joints between them, whose axes turn about z, y, z, y."""
    text = link("link_0")
    for k in range(1, joints + 1):
        text += link(f"link_{k}", 3.0 / k if masses else None)
        axis, xyz = ("0 0 1", "0.1 0.02 0.2") if k % 2 else ("0 1 0", "0.05 0 0.3")
        text += joint(f"joint_{k}", f"link_{k - 1}", f"link_{k}", axis=axis, xyz=xyz)
    return text


def frame(name, parent, xyz="0 0.1 0.1", rpy="0 0 0.4"):
    """Return a link without mass that is fixed to another one."""
    return link(name, None) + joint(f"{name}_joint", parent, name, "fixed", xyz=xyz, rpy=rpy)


def fingers(parent, first="left_finger", second="right_finger", follows=True):
    """Return two fingers that slide on a link; the second one follows the first."""
    inside = mimic(f"{first}_joint", -1.0) if follows else None
    return (
        link(first, 0.1)
        + joint(f"{first}_joint", parent, first, "prismatic", "0 1 0")
        + link(second, 0.1)
        + joint(f"{second}_joint", parent, second, "prismatic", "0 1 0", inside=inside)
    )


def robot(*parts):
    """Return the text of a URDF."""
    return f'<robot name="arm">\n{"".join(parts)}</robot>'
