"""A payload whose mass or centre of mass varies, and the setting that says so."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from twin.errors import VariationError
from twin.robot.robot import Payload
from twin.sweeps.robot_quantities import Quantity

NAMES = {
    "payload": "what the flange carries",
    "model_payload": "what the controller believes that it carries",
}
PLACES = ("x", "y", "z")


def quantities(name: str, payload: Payload | None) -> list[Quantity]:
    """The mass and the centre of mass of a payload, those of no payload being 0."""
    what = NAMES[name]
    places = [
        Quantity(f"{name}.{axis}", nominal(payload, axis), "m", f"centre of mass of {what}, flange frame")
        for axis in PLACES
    ]
    return [
        Quantity(name, nominal(payload, ""), "kg", f"mass of {what}, with which its inertia goes"),
        *places,
    ]


def nominal(payload: Payload | None, part: str) -> float:
    """The mass, in [kg], or after the name of an axis the centre of mass along it, in [m]."""
    if payload is None:
        return 0.0
    return float(payload.com[PLACES.index(part)]) if part else float(payload.mass)


def text(name: str, payload: Payload | None, chosen: Mapping[str, float]) -> str:
    """The payload as `scenarios.base.Config` takes it.

    Args:
        name: of the setting.
        payload: the nominal one.
        chosen: mass and coordinates that differ from it, by `""`, `x`, `y`, `z`.

    Raises:
        VariationError: there is nothing whose centre of mass could be anywhere.
    """
    mass = chosen.get("", nominal(payload, ""))
    if payload is None and "" not in chosen:
        raise VariationError(
            f"{name}.{next(iter(chosen))} cannot vary: nothing is carried; give {name} its mass"
        )
    numbers = [mass, *(chosen.get(axis, nominal(payload, axis)) for axis in PLACES)]
    if payload is not None and payload.mass > 0:
        inertia = mass / payload.mass * np.asarray(payload.inertia)
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.tolist()
        if any((xx, yy, zz)):
            numbers += [xx, yy, zz, xy, xz, yz]
    return ",".join(map(repr, numbers))
