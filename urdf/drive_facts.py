"""The table `[drives]` of a `robot.toml` or a `dh.toml`: the drive trains, a number for each joint.

What the motor has is told on its side of the gear, friction, stiffness and damping on the joint's; what every
key means is said in `twin/drives/drives.py`. `[drives.source]` says of each key where its numbers come from:
where they are published, or that they are our estimate and by what rule.
"""

from typing import Any

from urdf.schema import N_OR_INF, FactsError, N, check_keys, check_table

KINDS: dict[str, Any] = {
    "ratio": N,
    "rotor_inertia": N,
    "coupling?": (N, N),
    "motor_torque_max?": N_OR_INF,
    "motor_speed_rated?": N_OR_INF,
    "motor_speed_max?": N_OR_INF,
    "encoder_counts?": N,
    "coulomb?": N,
    "static?": N,
    "stribeck_speed?": N,
    "viscous?": N,
    "stiffness?": N_OR_INF,
    "damping?": N,
    "friction_at?": "texts",
    "source": "table",
}


def check_drives(drives: Any, joints: int) -> None:
    """Raise `FactsError` unless the table has its keys, each with as many numbers as joints, and a source."""
    check_keys("drives", drives, KINDS)
    check_table("drives", drives, KINDS, joints)
    told = check_keys("drives.source", drives["source"], {"*": "text"})
    check_table("drives.source", told, {"*": "text"}, joints)
    given = [key for key in drives if key != "source"]
    for key in given:
        if key not in told:
            raise FactsError(f"table [drives.source] lacks the key {key!r}: where is it from?")
    for key in told:
        if key not in given:
            raise FactsError(f"table [drives.source] has a key {key!r}, which table [drives] lacks")
