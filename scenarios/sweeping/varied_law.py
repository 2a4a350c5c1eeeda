"""Own settings of a control law that vary: vectors by a factor, numbers as they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import controllers
from scenarios.base import Config
from twin.errors import VariationError
from twin.sweeps.robot_quantities import Quantity, unknown


def quantities(config: Config, law: Any) -> list[Quantity]:
    """The settings of a law that can vary, with `law.` before their names."""
    found = []
    for name, value in numbers(config, law).items():
        if isinstance(value, float):
            found.append(Quantity(f"law.{name}", value, "", f"setting of {config.controller}"))
        else:
            told = f"factor on a setting of {config.controller}, of all joints"
            found.append(Quantity(f"law.{name}", 1.0, "", told))
    return found


def numbers(config: Config, law: Any) -> dict[str, float | np.ndarray]:
    """The settings of a law that are numbers, or one a joint, by their names."""
    values = {name: _value(config, law, name) for name in _offered(config.controller)}
    return {name: value for name, value in values.items() if value is not None}


def nominal(config: Config, law: Any, name: str) -> float:
    """The value of a setting, 1 of a vector, which is varied by a factor.

    Raises:
        UnknownNameError: the law has no such setting.
        VariationError: it is no number.
    """
    value = _numbers(config, law, name)
    return value if isinstance(value, float) else 1.0


def with_settings(config: Config, chosen: Mapping[str, float], law_of: Callable[[Config], Any]) -> Config:
    """The settings with some of the law's own.

    Args:
        config: without them.
        chosen: by name.
        law_of: the law of settings, whose derived gains the factors are of.

    Raises:
        UnknownNameError: the law has no such setting.
        VariationError: it is no number.
    """
    for name in sorted(chosen, key=lambda name: name != "bandwidth"):  # of which others are derived
        now = _numbers(config, law_of(config), name)
        value = chosen[name] if isinstance(now, float) else tuple((chosen[name] * now).tolist())
        settings = dict(config.law_settings) | {name: value}
        config = dataclasses.replace(config, law_settings=tuple(settings.items()))
    return config


def _offered(controller: str) -> list[str]:
    """The settings of a law, but for the period, which is the run's."""
    return [name for name in controllers.settings(controller) if name != "period"]


def _numbers(config: Config, law: Any, name: str) -> Any:
    """The value of a setting that can vary: a number, or an array of them."""
    offered = _offered(config.controller)
    if name not in offered:
        raise unknown(f"law.{name}", f"controller {config.controller!r}", [f"law.{one}" for one in offered])
    value = _value(config, law, name)
    if value is None:
        raise VariationError(
            f"law.{name} cannot vary: of {config.controller!r} it is neither number nor numbers"
        )
    return value


def _value(config: Config, law: Any, name: str) -> Any:
    """A setting, chosen, its default, or derived by the law: a number, or an array; `None` of others."""
    known = controllers.defaults(config.controller) | {"bandwidth": config.bandwidth}
    value = (known | dict(config.law_settings)).get(name)
    if value is None:
        value = getattr(getattr(law, "gains", law), name, None)
    if isinstance(value, bool) or not isinstance(value, (int, float, tuple, list, np.ndarray)):
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fiu":
        return None
    return float(array) if array.ndim == 0 else array.astype(np.float64)
