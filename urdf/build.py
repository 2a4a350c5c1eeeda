"""Writes `urdf/<robot>/<robot>.urdf` from the facts in `urdf/<robot>/robot.toml`.

    python -m urdf.build [robot ...]        every robot when none is named

Frames: every link frame sits at its joint and is parallel to the base frame at the zero pose, so that axes
are exactly +-x, +-y or +-z; `tool0` is the last Denavit-Hartenberg frame. Joint origins and axes come from
the DH table: frame i - 1 of that table lies on the axis of joint i, its z axis along it.

Masses share the robot's mass in proportion to the links' volumes (Aliaga 2019, eq. (3.5)); the CAD's
inertia tensors are scaled to them. Inertials are given in principal axes, because an engine that diagonalises
a tensor itself (Bullet) does so to 1e-8 only; the base link, which never moves, keeps the base frame's axes.

The same facts give the same bytes on every machine: all arithmetic is decimal (`urdf.exact`), and a number
is written as the shortest text that reads back as the nearest double.
"""

import sys
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from urdf import exact
from urdf.facts import FactsError, read

HERE = Path(__file__).parent
QUARTER_TURNS = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}  # angle in [deg] -> cosine, sine


def text(*numbers: Decimal | int) -> str:
    """Numbers as they stand in a URDF attribute: the shortest texts that read back as the nearest doubles."""
    return " ".join(repr(float(number) + 0.0).removesuffix(".0") for number in numbers)  # + 0.0: no "-0"


def dh_frames(dh: dict[str, Any]) -> list[tuple[exact.Matrix, exact.Vector]]:
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
                "this builder needs multiples of 90, so that axes are exact"
            )
        (ct, st), (ca, sa) = QUARTER_TURNS[int(theta) % 360], QUARTER_TURNS[int(alpha) % 360]
        step = exact.rotate(R, [Decimal(a * ct), Decimal(a * st), Decimal(d)])
        p = [p[k] + step[k] for k in range(3)]
        turn = [[ct, -st * ca, st * sa], [st, ct * ca, -ct * sa], [0, sa, ca]]
        R = exact.matmul(R, [[Decimal(x) for x in row] for row in turn])
        frames.append((R, p))
    return frames


def masses(facts: dict[str, Any]) -> dict[str, Decimal]:
    """Each link's share of the robot's mass, by volume, in [kg]: Aliaga 2019, eq. (3.5)."""
    volumes = {link: Decimal(values["volume_mm3"]) for link, values in facts["link"].items()}
    total = sum(volumes.values(), Decimal(0))
    return {link: Decimal(facts["mass"]) * volume / total for link, volume in volumes.items()}


def inertial(link: str, values: dict[str, Any], mass: Decimal, origin: exact.Vector) -> list[str]:
    """The `<inertial>` of one link whose frame has its origin at `origin`, (3,) in the base frame, in [m]."""
    com = [Decimal(values["com"][k]) - origin[k] for k in range(3)]
    xx, yy, zz, xy, xz, yz = (Decimal(x) * mass / Decimal(values["mass_1000"]) for x in values["inertia"])
    tensor = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    moments, R = exact.principal_axes(tensor)
    if not min(moments) > 0 or not 2 * max(moments) <= sum(moments, Decimal(0)):
        raise FactsError(
            f"link.{link}: no body has the principal moments {text(*moments)} kg m^2: expected all above 0 "
            "and none larger than the sum of the other two"
        )
    rpy = [Decimal(0)] * 3 if link == "base" else exact.roll_pitch_yaw(R)
    six = [xx, xy, xz, yy, yz, zz] if link == "base" else [moments[0], 0, 0, moments[1], 0, moments[2]]
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    return [
        "    <inertial>",
        f'      <origin xyz="{text(*com)}" rpy="{text(*rpy)}"/>',
        f'      <mass value="{text(mass)}"/>',
        "      <inertia " + " ".join(f'{n}="{text(x)}"' for n, x in zip(names, six, strict=True)) + "/>",
        "    </inertial>",
    ]


def geometry(kind: str, shape: dict[str, Any], origin: exact.Vector) -> list[str]:
    """The `<visual>` or `<collision>` (`kind`) of one shape, moved from the base frame to the link's."""
    if "cylinder" in shape:  # a URDF cylinder lies along z about its centre: pitch and yaw turn z into place
        start, end = shape["from"], shape["to"]
        center = [(Decimal(start[k]) + Decimal(end[k])) / 2 for k in range(3)]
        x, y, z = (Decimal(end[k]) - Decimal(start[k]) for k in range(3))
        rpy = [Decimal(0), exact.arc_tangent((x * x + y * y).sqrt(), z), exact.arc_tangent(y, x)]
        length = (x * x + y * y + z * z).sqrt()
        body = f'<cylinder radius="{text(shape["cylinder"])}" length="{text(length)}"/>'
    else:
        center = [Decimal(x) for x in shape["at"]]
        rpy = [exact.radians(Decimal(angle)) for angle in shape.get("rpy_deg", [0, 0, 0])]
        if "sphere" in shape:
            body = f'<sphere radius="{text(shape["sphere"])}"/>'
        else:
            body = f'<box size="{text(*shape["box"])}"/>'
    xyz = [center[k] - origin[k] for k in range(3)]
    lines = [f'      <origin xyz="{text(*xyz)}" rpy="{text(*rpy)}"/>', f"      <geometry>{body}</geometry>"]
    if kind == "visual":
        lines.append(f'      <material name="{shape["color"]}"/>')
    return [f"    <{kind}>", *lines, f"    </{kind}>"]


def joint(i: int, facts: dict[str, Any], offset: exact.Vector, axis: exact.Vector) -> list[str]:
    """The `<joint>` number i + 1, `offset` and `axis` (3,) in base axes, the former from the joint before."""
    joints = facts["joints"]
    angles = {"lower": "q_min_deg", "upper": "q_max_deg", "velocity": "qd_max_deg_s"}
    limit = {name: exact.radians(Decimal(joints[key][i])) for name, key in angles.items()}
    limit["effort"] = joints["effort"][i]
    return [
        f'  <joint name="{joints["names"][i]}" type="revolute">',
        f'    <parent link="{link_name(i)}"/>',
        f'    <child link="{link_name(i + 1)}"/>',
        f'    <origin xyz="{text(*offset)}" rpy="0 0 0"/>',
        f'    <axis xyz="{text(*axis)}"/>',
        "    <limit " + " ".join(f'{name}="{text(x)}"' for name, x in limit.items()) + "/>",
        "  </joint>",
    ]


def tool(n: int, offset: exact.Vector, R: exact.Matrix) -> list[str]:
    """The frame `tool0` of an arm with n joints, massless: a link without `<inertial>` would weigh 1 kg."""
    return [
        '  <link name="tool0">',
        "    <inertial>",
        '      <origin xyz="0 0 0" rpy="0 0 0"/>',
        '      <mass value="0"/>',
        '      <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>',
        "    </inertial>",
        "  </link>",
        '  <joint name="joint_tool" type="fixed">',
        f'    <parent link="{link_name(n)}"/>',
        '    <child link="tool0"/>',
        f'    <origin xyz="{text(*offset)}" rpy="{text(*exact.roll_pitch_yaw(R))}"/>',
        "  </joint>",
    ]


def urdf(facts: dict[str, Any]) -> str:
    """The whole URDF of a serial arm as text; `facts` read with `parse_float=Decimal`."""
    with exact.precisely():
        frames, mass, n = dh_frames(facts["dh"]), masses(facts), len(facts["joints"]["names"])
        origins = [frames[0][1], *(p for _, p in frames[:-1])]  # of the links' frames: base, 1 .. n
        steps = [[b[k] - a[k] for k in range(3)] for a, b in pairwise([*origins, frames[n][1]])]
        lines = [
            '<?xml version="1.0" encoding="utf-8"?>',
            f"<!-- Written by `python -m urdf.build {facts['name']}` from robot.toml: change that file. -->",
            f'<robot name="{facts["name"]}">',
        ]
        for color, rgba in facts["colors"].items():
            lines.append(f'  <material name="{color}"><color rgba="{text(*rgba)}"/></material>')
        for i, origin in enumerate(origins):
            link = str(i or "base")
            values = facts["link"][link]
            lines.append(f'  <link name="{link_name(i)}">')
            lines += inertial(link, values, mass[link], origin)
            for kind in ("visual", "collision"):
                for shape in values[kind]:
                    lines += geometry(kind, shape, origin)
            lines.append("  </link>")
        for i in range(n):
            lines += joint(i, facts, steps[i], [row[2] for row in frames[i][0]])
        return "\n".join([*lines, *tool(n, steps[n], frames[n][0]), "</robot>"]) + "\n"


def link_name(i: int) -> str:
    """The URDF's name of link i, 0 being the base."""
    return f"link_{i}" if i else "base_link"


def main(argv: list[str] | None = None) -> int:
    """Write the named robots' URDFs, all of them by default; 0, or 2 with one sentence on standard error."""
    known = sorted(path.parent.name for path in HERE.glob("*/robot.toml"))
    names = (sys.argv[1:] if argv is None else argv) or known
    try:
        for name in names:
            if name not in known:
                raise FactsError(f"unknown robot {name!r}: known are {', '.join(known)}")
            folder = HERE / name
            facts = read(folder / "robot.toml", parse_float=Decimal)
            if facts["name"] != name:
                raise FactsError(f"{folder / 'robot.toml'}: expected name = {name!r}, got {facts['name']!r}")
            written = urdf(facts)
            (folder / f"{name}.urdf").write_text(written, encoding="utf-8", newline="\n")
    except FactsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
