"""Cylinders that look round: PyBullet draws a URDF's own as hulls of few points with smeared shading.

Only what is seen changes; collision shapes and the committed URDF keep their cylinders.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path

SIDES = 48
MESH = "cylinder.obj"


def with_round_cylinders(urdf: str, folder: Path) -> str:
    """Draw a URDF's visual cylinders as a fine mesh.

    Args:
        urdf: the text of the URDF.
        folder: where the URDF will be stored; the mesh is written there.

    Returns:
        The text that names the mesh in place of every visual cylinder.
    """
    root = ET.fromstring(urdf)
    (folder / MESH).write_text(unit_cylinder(), encoding="utf-8")
    for geometry in root.iterfind("./link/visual/geometry"):
        cylinder = geometry.find("cylinder")
        if cylinder is not None:
            radius, length = cylinder.get("radius"), cylinder.get("length")
            geometry.remove(cylinder)
            ET.SubElement(geometry, "mesh", filename=MESH, scale=f"{radius} {radius} {length}")
    return ET.tostring(root, encoding="unicode")


def unit_cylinder() -> str:
    """A cylinder of radius 1 and length 1 about z, as a Wavefront OBJ with flat caps."""
    angles = [2 * math.pi * k / SIDES for k in range(SIDES)]
    lines = []
    for z in (-0.5, 0.5):  # vertices: 1..SIDES below, SIDES+1..2*SIDES above, then the centres of the caps
        lines += [f"v {math.cos(a):.6f} {math.sin(a):.6f} {z}" for a in angles]
    lines += ["v 0 0 -0.5", "v 0 0 0.5"]
    lines += [f"vn {math.cos(a):.6f} {math.sin(a):.6f} 0" for a in angles]
    lines += ["vn 0 0 -1", "vn 0 0 1"]
    down, up = SIDES + 1, SIDES + 2  # normals of the caps
    below, above = 2 * SIDES + 1, 2 * SIDES + 2
    for k in range(SIDES):
        a, b = k + 1, (k + 1) % SIDES + 1
        lines.append(f"f {a}//{a} {b}//{b} {b + SIDES}//{b}")
        lines.append(f"f {a}//{a} {b + SIDES}//{b} {a + SIDES}//{a}")
        lines.append(f"f {b}//{down} {a}//{down} {below}//{down}")
        lines.append(f"f {a + SIDES}//{up} {b + SIDES}//{up} {above}//{up}")
    return "\n".join(lines) + "\n"
