"""Measured data of other projects, which may exist beside a checkout."""

from pathlib import Path


def shared_folder():
    """Return the folder `shared/data` beside this checkout or one of its parents, or None."""
    places = (parent / "shared" / "data" for parent in Path(__file__).resolve().parents[2].parents)
    return next((place for place in places if (place / "tx40_motor_torque.csv.gz").is_file()), None)
