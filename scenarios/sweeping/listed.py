"""What can vary, as rows of a list: what is there for every axis in one row, and so for plant and model."""

from __future__ import annotations

from collections.abc import Iterable

from twin.short_texts import figure
from twin.sweeps.robot_quantities import Quantity

MODEL = "model."


def rows_of(quantities: Iterable[Quantity]) -> list[tuple[str, str, str, str]]:
    """Name, nominal value, unit and meaning of each, headings first.

    Args:
        quantities: of all laws; those of one name are told once.
    """
    known = {one.name: one for one in quantities}
    rows = {"name": ("nominal", "unit", "")}
    of_model = []
    for name, one in known.items():
        if name.startswith(MODEL) and name.removeprefix(MODEL) in known:
            of_model.append(name.removeprefix(MODEL).partition(".")[0])
            continue
        of, _, axis = name.rpartition(".")
        if not axis.isdigit():
            rows[name] = figure(one.nominal), one.unit, one.meaning
        elif f"{of}.N" not in rows:
            rows[f"{of}.N"] = figure(one.nominal), one.unit, "of axis N alone, from 1"
        else:
            rows[f"{of}.N"] = f"{rows[f'{of}.N'][0]}, {figure(one.nominal)}", *rows[f"{of}.N"][1:]
    if of_model:
        names = ", ".join(dict.fromkeys(of_model))
        rows[f"{MODEL}NAME"] = "", "", f"what begins with {names}, of the controller's model alone"
    return [(name, *row) for name, row in rows.items()]
