"""Tables of the page "Arms", made from the files of the arms, so that a further arm joins by itself."""

import xml.etree.ElementTree as ET

from urdf import build
from urdf.facts import read

MARK = "<!-- the tables of docs/arms.py -->"
"""Line of the page in whose place the build writes the tables."""

ORIGINS = {
    "ranges, speeds": ("joints", "source"),
    "torques": ("joints", "effort_source"),
    "gears": ("drives", "source", "ratio"),
    "coupling of the motors": ("drives", "source", "coupling"),
    "rotors": ("drives", "source", "rotor_inertia"),
    "Coulomb friction": ("drives", "source", "coulomb"),
    "viscous friction": ("drives", "source", "viscous"),
    "stiffness": ("drives", "source", "stiffness"),
}
"""Columns of the table of origins, with the keys of the text in a `robot.toml` that says so."""


def arms():
    """Return the facts of the built-in arms, by reach."""
    facts = [read(build.HERE / name / "robot.toml") for name in build.robots()]
    return sorted(facts, key=lambda arm: arm["rating"]["reach"])


def masses(arm):
    """Return the masses of the links in [kg], by the names of the URDF, in its order."""
    root = ET.parse(build.HERE / arm["name"] / f"{arm['name']}.urdf").getroot()
    found = {link.attrib["name"]: link.find("inertial/mass") for link in root.findall("link")}
    return {
        name: float(mass.attrib["value"])
        for name, mass in found.items()
        if mass is not None and name != "tool0"
    }


def origin(arm, keys):
    """Return whether numbers are published, estimated, or both, by the words of the text that says so."""
    text = arm
    for key in keys:
        text = text.get(key, {})
    if not text:
        return "none"
    text = " ".join(text.split())  # lines of a file end anywhere
    if "our estimate" not in text:
        return "published"
    return "estimate" if text.startswith("our estimate") else "in part"


def kinematics(arm):
    """Return a row: title, payload in [kg], reach in [m], lengths in [mm], kind."""
    d, a = arm["dh"]["d"], arm["dh"]["a"]
    lengths = [d[0], a[0], abs(a[1]), a[2], d[3], d[5]]
    coupled = "parallelogram" if "loop" in arm else "open chain"
    rating = (f"{arm['rating'][key]:g}" for key in ("payload", "reach"))
    return [arm["title"].removeprefix("ABB "), *rating, *(f"{1e3 * length:g}" for length in lengths), coupled]


def limits(arm):
    """Return a row: range in [deg] and speed in [deg/s] of each axis."""
    columns = (arm["joints"][key] for key in ("q_min_deg", "q_max_deg", "qd_max_deg_s"))
    return [f"{low:g} to {high:g}; {speed:g}" for low, high, speed in zip(*columns, strict=True)]


def weights(arm):
    """Return a row: masses in [kg] of the arm, of its links, of further links, and their origin."""
    found = list(masses(arm).values())
    further = sum(found[7:])
    links = arm["link"].values()
    by = "publication" if any("mass" in link for link in links) else "our solids"
    by = "CAD volume" if "mass" in arm and any("volume_mm3" in link for link in links) else by
    parts = [f"{mass:.3g}" for mass in found[:7]]
    total = f"{arm.get('mass', sum(found)):g}"
    return [total, *parts, f"{further:.3g}" if further else "", by]


def origins(arm):
    """Return a row: what is published, and what is an estimate."""
    return [origin(arm, keys) for keys in ORIGINS.values()]


def table(title, heads, row):
    """Return a title and a table of Markdown with a row for each arm."""
    rows = [[f"`{arm['name']}`", *row(arm)] for arm in arms()]
    lines = [["name", *heads], ["---"] * (len(heads) + 1), *rows]
    return f"## {title}\n\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def tables():
    """Return the tables of all arms as Markdown."""
    lengths = ["arm", "payload, kg", "reach, m", "d1, mm", "a1", "a2", "a3", "d4", "d6", "kind"]
    links = ["mass, kg", "base", *(f"link {i}" for i in range(1, 7)), "lever, rod", "links by"]
    return "\n".join(
        (
            table("Kinematics", lengths, kinematics),
            table(
                "Ranges in degrees, speeds in degrees per second", [f"axis {i}" for i in range(1, 7)], limits
            ),
            table("Masses", links, weights),
            table("Published or estimated", list(ORIGINS), origins),
        )
    )
