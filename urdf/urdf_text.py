"""The text of an arm's URDF, as it follows from the facts in its `robot.toml`.

Frames: every link frame sits at its joint and is parallel to the base frame at the zero pose, so that axes
are exactly +-x, +-y or +-z; `tool0` is the last Denavit-Hartenberg frame. Joint origins and axes come from
the DH table: frame i - 1 of that table lies on the axis of joint i, its z axis along it. A joint that has a
table of its own in `robot.toml` takes them from there. The joints of the chain to `tool0` come first.

A link's mass is its own, or its share of the robot's by volume (Aliaga 2019, eq. (3.5)), and the inertia
tensors are scaled to it. Inertials are given in principal axes, because an engine that diagonalises
a tensor itself (Bullet) does so to 1e-8 only; the base link, which never moves, keeps the base frame's axes.

The same facts give the same bytes on every machine: all arithmetic is decimal (`urdf.decimal_math`), and a
number is written as the shortest text that reads back as the nearest double.
"""

import math
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import quoteattr

from urdf import decimal_math
from urdf.facts import Joint, digest, tree
from urdf.schema import UNITS, FactsError
from urdf.solids import Bulk, bulk, masses

QUARTER_TURNS = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}  # angle in [deg] -> cosine, sine


def text(*numbers: Decimal | float) -> str:
    """Numbers as they stand in a URDF attribute: the shortest texts that read back as the nearest doubles."""
    return " ".join(repr(float(number) + 0.0).removesuffix(".0") for number in numbers)  # + 0.0: no "-0"


def dh_frames(dh: dict[str, Any]) -> list[tuple[decimal_math.Matrix, decimal_math.Vector]]:
    """Rotation and origin of the DH frames 0..n in the base frame, at the zero pose.

    Each is `A = Rz(theta) Tz(d) Tx(a) Rx(alpha)` after the one before (Aliaga 2019, eqs. (2.1)-(2.3)).
    """
    R = [[Decimal(int(i == j)) for j in range(3)] for i in range(3)]
    p = [Decimal(0)] * 3
    frames = [(R, p)]
    for joint, (theta, d, a, alpha) in enumerate(
        zip(dh["theta0_deg"], dh["d"], dh["a"], dh["alpha_deg"], strict=True), start=1
    ):
        if theta % 90 or alpha % 90:
            raise FactsError(
                f"row {joint} of [dh] has theta0 = {theta} and alpha = {alpha} degrees: "
                "this builder needs multiples of 90, so that axes are exact; "
                "a dh.toml takes any angles, and so does a URDF of your own"
            )
        (ct, st), (ca, sa) = QUARTER_TURNS[int(theta) % 360], QUARTER_TURNS[int(alpha) % 360]
        move = decimal_math.rotate(R, [Decimal(a * ct), Decimal(a * st), Decimal(d)])
        p = [p[k] + move[k] for k in range(3)]
        turn = [[ct, -st * ca, st * sa], [st, ct * ca, -ct * sa], [0, sa, ca]]
        R = decimal_math.matmul(R, [[Decimal(x) for x in row] for row in turn])
        frames.append((R, p))
    return frames


def inertial(link: str, bulk: Bulk, mass: Decimal, origin: decimal_math.Vector) -> list[str]:
    """The `<inertial>` of one link whose frame has its origin at `origin`, (3,) in the base frame, in [m]."""
    com = [bulk.com[k] - origin[k] for k in range(3)]
    tensor = [[mass * x for x in row] for row in bulk.inertia]
    moments, R = decimal_math.principal_axes(tensor)
    if not min(moments) > 0 or not 2 * max(moments) <= sum(moments, Decimal(0)):
        raise FactsError(
            f"link.{link}: no body has the principal moments {text(*moments)} kg m^2: expected all above 0 "
            "and none larger than the sum of the other two"
        )
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = tensor
    rpy = [Decimal(0)] * 3 if link == "base" else decimal_math.roll_pitch_yaw(R)
    six = [xx, xy, xz, yy, yz, zz] if link == "base" else [moments[0], 0, 0, moments[1], 0, moments[2]]
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    return [
        "    <inertial>",
        f'      <origin xyz="{text(*com)}" rpy="{text(*rpy)}"/>',
        f'      <mass value="{text(mass)}"/>',
        "      <inertia " + " ".join(f'{n}="{text(x)}"' for n, x in zip(names, six, strict=True)) + "/>",
        "    </inertial>",
    ]


def geometry(kind: str, shape: dict[str, Any], origin: decimal_math.Vector) -> list[str]:
    """Return the `<visual>` or `<collision>` (`kind`) of a shape, moved from the base frame to the link's."""
    center, rpy = [Decimal(0)] * 3, [Decimal(0)] * 3
    if "mesh" in shape:
        scale = Decimal(repr(UNITS[shape["unit"]]))
        body = f'<mesh filename={quoteattr(shape["mesh"])} scale="{text(scale, scale, scale)}"/>'
    elif (
        "cylinder" in shape
    ):  # a URDF cylinder lies along z about its centre: pitch and yaw turn z into place
        start, end = shape["from"], shape["to"]
        center = [(Decimal(start[k]) + Decimal(end[k])) / 2 for k in range(3)]
        x, y, z = (Decimal(end[k]) - Decimal(start[k]) for k in range(3))
        rpy = [
            Decimal(0),
            decimal_math.arc_tangent((x * x + y * y).sqrt(), z),
            decimal_math.arc_tangent(y, x),
        ]
        length = (x * x + y * y + z * z).sqrt()
        body = f'<cylinder radius="{text(shape["cylinder"])}" length="{text(length)}"/>'
    else:
        center = [Decimal(x) for x in shape["at"]]
        rpy = [decimal_math.radians(Decimal(angle)) for angle in shape.get("rpy_deg", [0, 0, 0])]
        if "sphere" in shape:
            body = f'<sphere radius="{text(shape["sphere"])}"/>'
        else:
            body = f'<box size="{text(*shape["box"])}"/>'
    xyz = [center[k] - origin[k] for k in range(3)]
    lines = [f'      <origin xyz="{text(*xyz)}" rpy="{text(*rpy)}"/>', f"      <geometry>{body}</geometry>"]
    if kind == "visual":
        lines.append(f'      <material name="{shape["color"]}"/>')
    return [f"    <{kind}>", *lines, f"    </{kind}>"]


def limits(name: str, facts: dict[str, Any]) -> dict[str, Decimal | int]:
    """Return the attributes of a joint's `<limit>`.

    The speed limit of a passive joint follows from those of the driven joints; it has no effort.
    """
    joints = facts["joints"]
    if name in joints["names"]:
        i = joints["names"].index(name)
        low, high, speed = (joints[key][i] for key in ("q_min_deg", "q_max_deg", "qd_max_deg_s"))
        effort = joints["effort"][i]
    else:
        passive = facts["joint"][name]
        low, high = passive["range_deg"]
        speed = sum(abs(c) * top for c, top in zip(passive["q"], joints["qd_max_deg_s"], strict=True))
        effort = 0
    effort = effort if effort < math.inf else 0  # 0 means no limit in a URDF
    angles = {"lower": low, "upper": high, "velocity": speed}
    return {**{key: decimal_math.radians(Decimal(angle)) for key, angle in angles.items()}, "effort": effort}


def joint(
    moved: Joint, facts: dict[str, Any], offset: decimal_math.Vector, axis: decimal_math.Vector
) -> list[str]:
    """Return a `<joint>`; `offset` from the parent's frame and `axis` are (3,) in base axes."""
    limit = limits(moved.name, facts)
    return [
        f'  <joint name="{moved.name}" type="revolute">',
        f'    <parent link="{link_name(moved.parent)}"/>',
        f'    <child link="{link_name(moved.child)}"/>',
        f'    <origin xyz="{text(*offset)}" rpy="0 0 0"/>',
        f'    <axis xyz="{text(*axis)}"/>',
        "    <limit " + " ".join(f'{name}="{text(x)}"' for name, x in limit.items()) + "/>",
        "  </joint>",
    ]


def tool(parent: str, offset: decimal_math.Vector, R: decimal_math.Matrix) -> list[str]:
    """Return the frame `tool0` of an arm's last link, massless, as without `<inertial>` it would be 1 kg."""
    return [
        '  <link name="tool0">',
        "    <inertial>",
        '      <origin xyz="0 0 0" rpy="0 0 0"/>',
        '      <mass value="0"/>',
        '      <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>',
        "    </inertial>",
        "  </link>",
        '  <joint name="joint_tool" type="fixed">',
        f'    <parent link="{link_name(parent)}"/>',
        '    <child link="tool0"/>',
        f'    <origin xyz="{text(*offset)}" rpy="{text(*decimal_math.roll_pitch_yaw(R))}"/>',
        "  </joint>",
    ]


def placed(
    joints: list[Joint], facts: dict[str, Any]
) -> tuple[dict[str, decimal_math.Vector], dict[str, decimal_math.Vector]]:
    """Return the origin of every link's frame and the axis of every joint, (3,), base axes, zero pose."""
    frames, listed = dh_frames(facts["dh"]), facts.get("joint", {})
    origins, axes = {"base": frames[0][1]}, {}
    for i, moved in enumerate(joints):
        if moved.name in listed:
            origins[moved.child], axes[moved.name] = (
                [Decimal(x) for x in listed[moved.name][key]] for key in ("at", "axis")
            )
        else:
            R, origins[moved.child] = frames[i]
            axes[moved.name] = [sense(i, facts) * row[2] for row in R]
    return origins, axes


def sense(i: int, facts: dict[str, Any]) -> Decimal:
    """Return 1 if joint i turns like its DH angle, -1 if opposite, from row i of dh.coupling."""
    names = facts["joints"]["names"]
    row = facts["dh"].get("coupling", {i: [int(i == j) for j in range(len(names))]})[i]
    if abs(row[i]) != 1 or any(row[j] for j in range(len(names)) if j != i):
        raise FactsError(
            f"row {i + 1} of dh.coupling is {text(*row)}: expected 1 or -1 for {names[i]} and 0 for all "
            f"others, or a table [joint.{names[i]}] that says where it is"
        )
    return Decimal(row[i])


def body(
    link: str, values: dict[str, Any], spread: Bulk, mass: Decimal, origin: decimal_math.Vector
) -> list[str]:
    """Return the `<link>` whose frame has its origin at `origin`, (3,) in the base frame, in [m]."""
    lines = [f'  <link name="{link_name(link)}">', *inertial(link, spread, mass, origin)]
    for kind in ("visual", "collision"):
        for shape in values[kind]:
            lines += geometry(kind, shape, origin)
    return [*lines, "  </link>"]


def urdf(facts: dict[str, Any], source: str | None = None) -> str:
    """Return the URDF of an arm as text.

    Args:
        facts: contents of a `robot.toml`, read with `parse_float=Decimal`.
        source: argument of `python -m urdf.build` that writes it again; its name by default.
    """
    source = source or facts["name"]
    with decimal_math.precisely():
        chain, others = tree(facts)
        origins, axes = placed([*chain, *others], facts)
        bulks = {link: bulk(facts["link"][link]) for link in origins}
        mass = masses(facts, bulks)
        lines = [
            '<?xml version="1.0" encoding="utf-8"?>',
            f"<!-- Written by `python -m urdf.build {source}` from robot.toml: change that file. "
            f"Digest of its numbers: {digest(facts)} -->",
            f'<robot name="{facts["name"]}">',
        ]
        for color, rgba in facts["colors"].items():
            lines.append(f'  <material name="{color}"><color rgba="{text(*rgba)}"/></material>')
        for link, origin in origins.items():
            lines += body(link, facts["link"][link], bulks[link], mass[link], origin)
        for moved in chain:
            lines += joint(moved, facts, step(origins[moved.parent], origins[moved.child]), axes[moved.name])
        last, (R, flange) = chain[-1].child, dh_frames(facts["dh"])[-1]
        lines += tool(last, step(origins[last], flange), R)
        for moved in others:
            lines += joint(moved, facts, step(origins[moved.parent], origins[moved.child]), axes[moved.name])
        return "\n".join([*lines, "</robot>"]) + "\n"


def step(start: decimal_math.Vector, end: decimal_math.Vector) -> decimal_math.Vector:
    """Return the vector from one point to another, (3,)."""
    return [end[k] - start[k] for k in range(3)]


def link_name(link: str) -> str:
    """Return the name of a link in the URDF."""
    return "base_link" if link == "base" else f"link_{link}"
