"""Tables of a `robot.toml` beside a URDF that somebody else has written, `urdf = "arm.urdf"`.

The URDF has the links, joints, shapes, frames and limits, and the file what a URDF cannot say: drives,
friction, springs, poses, the rating, and where the numbers come from. SI units unless a key's name ends in
another; numbers of a prismatic joint are in m, m/s and N. Arrays have an element per joint of `joints.names`,
which are those of the URDF that move and follow no other joint, in the URDF's order.

    tool_frame      link of the URDF whose frame is the flange
    unphysical      why some link may be a body that cannot exist
    [joints]        limits replace those of the URDF, for what it lacks or has wrong
    [joints.locked] joints that do not move, as fingers, and their positions in rad or m
    [dh]            Denavit-Hartenberg table with the flange of the URDF; else it is fitted to the axes
    [poses.<name>]  a pose, as q in rad or m, or as q_deg
"""

from typing import Any

from urdf.schema import (
    AXIS_TORQUES,
    N_OR_INF,
    NAME,
    FactsError,
    N,
    check_axis_torques,
    check_drives,
    check_keys,
    check_table,
    check_values,
)

TABLES: dict[str, dict[str, Any]] = {
    "": {
        "name": "text",
        "title": "text",
        "urdf": "text",
        "tool_frame?": "text",
        "unphysical?": "text",
        "source": "text",
    },
    "joints": {
        "names": "texts",
        "locked?": "table",
        "q_min?": N,
        "q_max?": N,
        "qd_max?": N_OR_INF,
        "effort?": N_OR_INF,
        "source": "text",
    },
    "dh?": {"theta0_deg": N, "d": N, "a": N, "alpha_deg": N, "coupling?": (N, N), "source": "text"},
    "rating?": {"payload": "number", "reach": "number", "source": "text"},
    "poses.*?": {"q?": N, "q_deg?": N, "flange?": 7, "flange_tolerance?": "number", "source?": "text"},
    "tour?": {"poses": "texts", "source?": "text"},
    "drives?": {"*": "table"},
    **AXIS_TORQUES,
}
KEYS = {key.rstrip("?") for key in TABLES[""]}


def check(facts: dict[str, Any]) -> None:
    """Raise `FactsError` unless every table has its keys, and every value its kind."""
    groups = {pattern.rstrip("?").removesuffix(".*") + "?": "table" for pattern in TABLES if pattern}
    check_keys("", facts, {**TABLES[""], **groups, "joints": "table"})
    check_values("", {key: facts[key] for key in facts if key in KEYS}, TABLES[""], 0)
    for name in (facts["name"], *facts.get("poses", {})):
        if not NAME.fullmatch(name):
            raise FactsError(f"expected a name of letters, digits and _, got {name!r}")
    joints = len(check_keys("joints", facts["joints"], TABLES["joints"])["names"])
    check_table("joints.locked", facts["joints"].get("locked", {}), {"*": "signed"}, joints)
    for group in ("joints", "dh", "rating", "tour"):
        if group in facts:
            check_table(group, facts[group], TABLES[group if group in TABLES else f"{group}?"], joints)
    for name, pose in check_keys("poses", facts.get("poses", {}), {"*": "table"}).items():
        check_table(f"poses.{name}", pose, TABLES["poses.*?"], joints)
        if ("q" in pose) == ("q_deg" in pose):
            raise FactsError(f"poses.{name}: expected one of q, in rad or m, and q_deg")
    if "drives" in facts:
        check_drives(facts["drives"], joints)
    check_axis_torques(facts, joints)
