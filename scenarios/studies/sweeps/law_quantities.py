"""Settings of a controller that can vary in a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import controllers
from twin.base.errors import VariationError
from twin.physics.robot.quantities import Quantity, unknown

if TYPE_CHECKING:
    from scenarios.running.registry import Task
    from scenarios.setup import Setup


def law_quantities(setup: Setup, law: Any) -> list[Quantity]:
    """Return the settings of a controller that can vary, with the prefix `law.`."""
    found = []
    for name, value in law_numbers(setup, law).items():
        if isinstance(value, float):
            found.append(Quantity(f"law.{name}", value, "", f"setting of {setup.controller}"))
        else:
            meaning = f"factor on a setting of {setup.controller}, for all joints"
            found.append(Quantity(f"law.{name}", 1.0, "", meaning))
    return found


def law_numbers(setup: Setup, law: Any) -> dict[str, float | np.ndarray]:
    """Return the numeric settings of a controller by name: a number, or one number per joint."""
    values = {name: _setting(setup, law, name) for name in _offered(setup.controller)}
    return {name: value for name, value in values.items() if value is not None}


def nominal_setting(setup: Setup, law: Any, name: str) -> float:
    """Return the value of a setting; 1 for a vector, which is varied by a factor.

    Raises:
        UnknownNameError: the controller has no such setting.
        VariationError: the setting is not numeric.
    """
    value = _required_numbers(setup, law, name)
    return value if isinstance(value, float) else 1.0


def with_law_settings(task: Task, chosen: Mapping[str, float], law_of: Callable[[Task], Any]) -> Task:
    """Return the task with some settings of the controller replaced.

    Args:
        task: the task before.
        chosen: values or factors, by the settings' names.
        law_of: function that makes the controller of a task, whose gains the factors multiply.

    Raises:
        UnknownNameError: the controller has no such setting.
        VariationError: a setting is not numeric.
    """
    for name in sorted(chosen, key=lambda name: name != "bandwidth"):  # other settings are derived from it
        now = _required_numbers(task.setup, law_of(task), name)
        settings = dict(task.setup.law_settings) | {name: varied(now, chosen[name])}
        task = task.with_setup(law_settings=tuple(settings.items()))
    return task


def varied(nominal: float | np.ndarray, value: float) -> float | tuple[float, ...]:
    """Return a varied setting of a controller: a new value, or a vector multiplied by a factor."""
    return tuple((value * nominal).tolist()) if isinstance(nominal, np.ndarray) else float(value)


def _offered(controller: str) -> list[str]:
    """Return the settings of a controller, without the period, which is that of the run."""
    return [name for name in controllers.settings(controller) if name != "period"]


def _required_numbers(setup: Setup, law: Any, name: str) -> Any:
    """Return the value of a setting that can vary: a number, or an array."""
    offered = _offered(setup.controller)
    if name not in offered:
        raise unknown(f"law.{name}", f"controller {setup.controller!r}", [f"law.{one}" for one in offered])
    value = _setting(setup, law, name)
    if value is None:
        raise VariationError(f"law.{name} cannot vary: it is not a numeric setting of {setup.controller!r}")
    return value


def _setting(setup: Setup, law: Any, name: str) -> Any:
    """Return a setting (chosen, default, or derived): a number, or an array; `None` if it is not numeric."""
    known = controllers.defaults(setup.controller) | {"bandwidth": setup.bandwidth}
    value = (known | dict(setup.law_settings)).get(name)
    if value is None:
        value = getattr(getattr(law, "gains", law), name, None)
    if isinstance(value, bool) or not isinstance(value, (int, float, tuple, list, np.ndarray)):
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        return None
    return float(array) if array.ndim == 0 else array.astype(np.float64)
