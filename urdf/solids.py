"""Mass, volume, centre of mass and inertia of a link, from CAD, of a homogeneous solid or of a mesh.

Of a mesh, sums are exact (`math.fsum`) and products are those of IEEE doubles, so that results are the same
on every machine.  `twin.physics.robot.link_shapes` does the same with NumPy, for other formats, and says more
about a mesh that is broken.
"""

import struct
from collections import Counter
from decimal import Decimal
from functools import lru_cache
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

from urdf import decimal_math
from urdf.schema import UNITS, FactsError

Point = tuple[float, float, float]


class Bulk(NamedTuple):
    """Distribution of a link's mass, independent of the mass itself.

    volume: volume, in [m^3]; 0 if unknown, for a link with a separate mass.
    com: (3,) centre of mass, in [m], in the base frame at the zero pose, in [m].
    inertia: (3, 3) inertia about the com for each kg of mass, in base axes, in [m^2].
    """

    volume: Decimal
    com: decimal_math.Vector
    inertia: decimal_math.Matrix


def masses(facts: dict[str, Any], bulks: dict[str, Bulk]) -> dict[str, Decimal]:
    """Return each link's mass, in [kg], or its share of the robot's by volume, Aliaga 2019, eq. (3.5)."""
    if "mass" not in facts:
        return {link: _mass(facts["link"][link], bulk.volume) for link, bulk in bulks.items()}
    total = sum((bulk.volume for bulk in bulks.values()), Decimal(0))
    return {link: Decimal(facts["mass"]) * bulk.volume / total for link, bulk in bulks.items()}


def _mass(values: dict[str, Any], volume: Decimal) -> Decimal:
    """Return the mass of a link, which is stated or follows from the density of its mesh."""
    return Decimal(values["mass"]) if "mass" in values else Decimal(values["solid"]["density"]) * volume


def bulk(values: dict[str, Any]) -> Bulk:
    """Return the mass distribution that a table `[link.*]` describes."""
    if "solid" not in values:
        return cad(values)
    solid = values["solid"]
    kinds = {"box": box, "hollow_box": hollow_box, "cylinder": cylinder, "mesh": mesh}
    return next(kinds[key] for key in kinds if key in solid)(solid)


def cad(values: dict[str, Any]) -> Bulk:
    """Return the distribution of CAD values; `inertia` is at 1000 kg/m^3, or without a volume for `mass`."""
    volume = Decimal(values.get("volume_mm3", 0)) * Decimal("1e-9")
    mass = Decimal(values.get("mass_1000", 1000 * volume) if volume else values["mass"])
    xx, yy, zz, xy, xz, yz = (Decimal(x) / mass for x in values["inertia"])
    return Bulk(volume, [Decimal(x) for x in values["com"]], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def box(solid: dict[str, Any]) -> Bulk:
    """Return the distribution of a box along the base axes."""
    size = [Decimal(side) for side in solid["box"]]
    return Bulk(size[0] * size[1] * size[2], [Decimal(p) for p in solid["at"]], box_inertia(size))


def box_inertia(size: decimal_math.Vector) -> decimal_math.Matrix:
    """Return the inertia (3, 3) of a box per kg: Ixx = m (ly^2 + lz^2) / 12 etc.; `size` (3,) in [m]."""
    x, y, z = (side * side for side in size)
    moments, zero = [(y + z) / 12, (x + z) / 12, (x + y) / 12], Decimal(0)
    return [[moments[i] if i == j else zero for j in range(3)] for i in range(3)]


def hollow_box(solid: dict[str, Any]) -> Bulk:
    """Return the distribution of a closed box with walls of equal thickness: outer box less inner box.

    Norrlöf's lecture 3, "Uniform rectangular solid": inertias in the same frame can be subtracted.
    """
    outer = [Decimal(side) for side in solid["hollow_box"]]
    inner = [side - 2 * Decimal(solid["wall"]) for side in outer]
    all_of_it, void = (size[0] * size[1] * size[2] for size in (outer, inner))
    volume = all_of_it - void
    inertia = [
        [(all_of_it * a - void * b) / volume for a, b in zip(*rows, strict=True)]
        for rows in zip(box_inertia(outer), box_inertia(inner), strict=True)
    ]
    return Bulk(volume, [Decimal(p) for p in solid["at"]], inertia)


def mesh(solid: dict[str, Any]) -> Bulk:
    """Return the distribution of the solid in a mesh, which is drawn in the base frame at the zero pose."""
    volume, com, inertia = solid_of_mesh(Path(solid["folder"], solid["mesh"]), solid["unit"])
    xx, yy, zz, xy, xz, yz = map(Decimal, inertia)
    return Bulk(Decimal(volume), [*map(Decimal, com)], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def cylinder(solid: dict[str, Any]) -> Bulk:
    """Return the distribution of a cylinder: m r^2 / 2 about its axis u, m (r^2 / 4 + l^2 / 12) across it."""
    start, end = ([Decimal(x) for x in solid[key]] for key in ("from", "to"))
    radius = Decimal(solid["cylinder"])
    length = sum(((b - a) ** 2 for a, b in zip(start, end, strict=True)), Decimal(0)).sqrt()
    u = [(b - a) / length for a, b in zip(start, end, strict=True)]
    along, across = radius**2 / 2, radius**2 / 4 + length**2 / 12
    inertia = [[across * int(i == j) + (along - across) * u[i] * u[j] for j in range(3)] for i in range(3)]
    com = [(a + b) / 2 for a, b in zip(start, end, strict=True)]
    return Bulk(decimal_math.PI * radius**2 * length, com, inertia)


def triangles(path: Path) -> list[tuple[Point, Point, Point]]:
    """Return the triangles of a binary or ASCII STL file, in its unit of length.

    Raises:
        FactsError: the file is missing or is no STL file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FactsError(f"cannot read the mesh {path}: {error.strerror or error}") from error
    numbers: list[float] = []
    if len(content) >= 84 and len(content) == 84 + 50 * struct.unpack_from("<I", content, 80)[0]:
        for row in struct.iter_unpack("<12fH", content[84:]):
            numbers += row[3:12]
    else:
        words = content.decode("ascii", "replace").split()
        try:
            numbers = [
                float(x) for k, word in enumerate(words) if word == "vertex" for x in words[k + 1 : k + 4]
            ]
        except ValueError:
            numbers = []
    if not numbers or len(numbers) % 9:
        raise FactsError(f"the mesh {path} is no STL file with triangles")
    points = list(zip(*[iter(numbers)] * 3, strict=True))
    return list(zip(*[iter(points)] * 3, strict=True))


@lru_cache(maxsize=64)
def solid_of_mesh(path: Path, unit: str) -> tuple[float, Point, tuple[float, ...]]:
    """Return volume, centre of mass, and inertia about it for each kg (xx, yy, zz, xy, xz, yz) of a mesh.

    Raises:
        FactsError: the mesh is not closed, or has no volume.
    """
    faces, scale = triangles(path), UNITS[unit]
    edges = Counter((a, b) for face in faces for a, b in zip(face, (*face[1:], face[0]), strict=True))
    single = sum(abs(count - edges[b, a]) for (a, b), count in edges.items()) // 2
    if single:
        raise FactsError(f"the mesh {path} is not closed: {single} edges belong to one triangle only")
    x0, y0, z0 = faces[0][0]  # a near point loses no digits
    volumes: list[float] = []
    first: list[list[float]] = [[], [], []]
    second: dict[tuple[int, int], list[float]] = {(i, j): [] for i in range(3) for j in range(i, 3)}
    for face in faces:
        a, b, c = ((x - x0, y - y0, z - z0) for x, y, z in face)
        v = (
            a[0] * (b[1] * c[2] - b[2] * c[1])
            + a[1] * (b[2] * c[0] - b[0] * c[2])
            + a[2] * (b[0] * c[1] - b[1] * c[0])
        ) / 6.0
        total = [a[k] + b[k] + c[k] for k in range(3)]
        volumes.append(v)
        for k in range(3):
            first[k].append(v * total[k] / 4.0)
        for (i, j), terms in second.items():
            terms.append(v * (a[i] * a[j] + b[i] * b[j] + c[i] * c[j] + total[i] * total[j]) / 20.0)
    volume = fsum(volumes)  # of a mesh that is inside out all integrals are negative, and their ratios right
    if not abs(volume) > 0.0:
        raise FactsError(f"the mesh {path} encloses no volume")
    com = [fsum(terms) / volume for terms in first]
    square = {place: fsum(terms) / volume - com[place[0]] * com[place[1]] for place, terms in second.items()}
    xx, yy, zz = (square[k, k] * scale * scale for k in range(3))
    off = tuple(-square[place] * scale * scale for place in ((0, 1), (0, 2), (1, 2)))
    where = (scale * (com[0] + x0), scale * (com[1] + y0), scale * (com[2] + z0))
    return abs(volume) * scale**3, where, (yy + zz, xx + zz, xx + yy, *off)
