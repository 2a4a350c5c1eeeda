"""Mass, volume, centre of mass and inertia of a link, from CAD or of a homogeneous solid."""

from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from urdf import decimal_math, stl


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
    volume, com, inertia = stl.solid(Path(solid["folder"], solid["mesh"]), solid["unit"])
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
