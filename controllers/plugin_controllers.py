"""Controllers of users: their names, and how they are found, made and called.

A user's controller is named `./my.py:Law` or `package.module:Law`, or by an entry point of the group
`irb_twin.controllers` of an installed package.  The name refers to

- a class or a factory `(robot, *, bandwidth, period, ...)`.  It gets those of the keywords that it has, and
the
  settings that the user chose.  It returns a `twin.ControlLaw`, or any callable `(state, reference)`;
- or a plain function `(state, reference) -> tau`, which may have settings as keywords, too.

A function is a factory if its first argument is named `robot`, or if it has at most one required argument.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twin.base.errors import PluginError, UnknownNameError, describe_error_with_location, is_interrupt, near
from twin.base.plugins import attribute_of, load_file, load_module, plugin_entries, plugin_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.data.logs.log import Log
    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.sampling import Reference, Samples, State

GROUP = "irb_twin.controllers"
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parts(name: str) -> tuple[str, str]:
    """Split `./my.py:Law` into `./my.py` and `Law`; the second part is "" if it is missing."""
    where, _, inner = name.rpartition(":")
    if not where or os.sep in inner:  # the drive letter of `C:\laws.py` also ends with a colon
        return name, ""
    return where, inner


def is_user_controller(name: str) -> bool:
    """Return whether a name refers to a controller in a user's file or module."""
    return name.endswith(".py") or bool(parts(name)[1])


def require_known(name: str, ours: tuple[str, ...]) -> None:
    """Check the name of a controller without loading it.

    Args:
        name: name of a controller, built-in or not.
        ours: names of the built-in controllers.

    Raises:
        UnknownNameError: there is no such name or file; the message states what is valid.
    """
    if name in ours or name in plugin_entries(GROUP):
        return
    if not is_user_controller(name):
        known = *ours, *plugin_entries(GROUP)
        raise UnknownNameError(
            f"unknown controller {name!r}{near(name, known)}: known are {', '.join(known)}, "
            "or that of a file or a module, ./my.py:Law or package.module:Law"
        )
    where, inner = parts(name)
    if where.endswith(".py") and not Path(where).is_file():
        raise UnknownNameError(f"no such controller file: {where!r}")
    if not inner:
        raise UnknownNameError(f"controller {name!r}: add the class or function of the file, as {name}:Law")


def found(name: str) -> Callable[..., Any]:
    """Return the class, factory or function of a name that `require_known` accepts.

    Raises:
        PluginError: it does not load, or is not callable.
    """
    entry = plugin_entries(GROUP).get(name)
    if entry is not None and not is_user_controller(name):
        thing = entry.load()
    else:
        where, inner = parts(name)
        what = f"controller {name!r}"
        module = load_file(where, what) if where.endswith(".py") else load_module(where, what)
        thing = attribute_of(module, inner, what)
    if not callable(thing):
        raise PluginError(f"controller {name!r} is {thing!r}, expected a class, a factory or a function")
    return thing


def label(name: str) -> str:
    """Return a short name for tables and files: `./my.py:Law` -> `Law`."""
    where, inner = parts(name)
    return inner or Path(where).name.removesuffix(".py")


def settings(thing: Callable[..., Any]) -> tuple[str, ...]:
    """Return the settings of a controller: the keywords of its class, factory or function."""
    parameters = _parameters(thing)
    first = 2 if _is_plain(thing) else int(_takes_robot(thing))
    return tuple(item.name for item in parameters[first:] if item.kind in NAMED)


def defaults(thing: Callable[..., Any]) -> dict[str, Any]:
    """Return the defaults of the settings that have one."""
    parameters = {item.name: item.default for item in _parameters(thing)}
    return {
        name: parameters[name] for name in settings(thing) if parameters[name] is not inspect.Parameter.empty
    }


def make(
    thing: Callable[..., Any],
    name: str,
    robot: Robot,
    usual: Mapping[str, Any],
    chosen: Mapping[str, Any],
) -> Any:
    """Return the controller of a class, a factory or a function.

    Args:
        thing: the class, factory or function.
        name: name of the controller.
        robot: the controller's model of the robot.
        usual: `bandwidth`, `period`, `T_flange_tool`, `surface`, for controllers with these keywords.
        chosen: settings that the user chose.

    Raises:
        PluginError: it has no such setting, fails, or returns something else than a controller.
        ValueError: it rejects a value.
    """
    from twin.physics.control.control_law import ControlLaw

    offered = settings(thing)
    anything = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in _parameters(thing))
    unknown = [key for key in chosen if key not in offered]
    if unknown and not anything:
        known = f"it has {', '.join(offered)}" if offered else "it has none"
        raise PluginError(f"controller {name!r} has no setting {unknown[0]!r}: {known}")
    if _is_plain(thing):
        return MyController(label(name), lambda: partial(thing, **chosen) if chosen else thing)
    keywords = {key: value for key, value in usual.items() if anything or key in offered} | dict(chosen)
    made = partial(_made, name, thing, (robot,) if _takes_robot(thing) else (), keywords)
    law = made()
    if isinstance(law, ControlLaw):
        law.name = label(name)  # replaces a name inherited from a built-in controller
        return law
    return MyController(label(name), made, law)


class MyController:
    """User's controller with the interface of a built-in one; without a `reset`, it is made again."""

    def __init__(self, name: str, make: Callable[[], Any], law: Any = None) -> None:
        self.name = name
        self._make = make
        self._law = make() if law is None else law

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Return the demanded torques (n,) in [N m]; see `controllers.Controller`.

        Raises:
            PluginError: the controller raises an exception.
        """
        try:
            return self._law(state, reference)
        except Exception as error:
            raise self._failure(f"at t = {state.t:.6g} s", error) from error

    def reset(self) -> None:
        """Reset the controller."""
        if callable(getattr(self._law, "reset", None)):
            self._call("reset")
        else:
            self._law = self._make()

    def prepare(self, reference: Samples) -> NDArray | None:
        """Return the table that the controller prepares for a motion; `None` without one."""
        return self._call("prepare", reference)

    def learn(self, log: Log) -> None:
        """Let the controller learn from a run."""
        self._call("learn", log)

    @property
    def signals(self) -> Mapping[str, NDArray]:
        """Signals of the controller by name."""
        signals = getattr(self._law, "signals", None)
        return signals if isinstance(signals, Mapping) else {}

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the controller, if it has it."""
        if not callable(function := getattr(self._law, method, None)):
            return None
        try:
            return function(*arguments)
        except Exception as error:
            raise self._failure(f"in its {method}", error) from error

    def _failure(self, where: str, error: Exception) -> PluginError:
        file = str(getattr(sys.modules.get(type(self._law).__module__), "__file__", ""))
        place = describe_error_with_location(error, file, *plugin_files())
        return PluginError(f"controller {self.name!r} failed {where}: {place}")


def _made(name: str, thing: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of a class or a factory, if it is a callable (state, reference)."""
    missing = [
        item.name
        for item in _parameters(thing)[len(arguments) :]
        if item.default is item.empty and item.kind in NAMED and item.name not in keywords
    ]
    if missing:
        raise PluginError(
            f"controller {name!r} needs a value of {missing[0]!r}: use --set {missing[0]}=..., or "
            "give it a default"
        )
    try:
        law = thing(*arguments, **keywords)
    except ValueError:
        raise
    except BaseException as error:
        if is_interrupt(error):
            raise
        file = str(getattr(sys.modules.get(thing.__module__), "__file__", ""))
        place = describe_error_with_location(error, file, *plugin_files())
        raise PluginError(f"controller {name!r} cannot be made: {place}") from error
    if not callable(law):
        raise PluginError(f"controller {name!r} made {law!r}, expected a callable (state, reference)")
    return law


def _is_plain(thing: Callable[..., Any]) -> bool:
    """Return whether an object is itself a control law, neither a class nor a factory.

    Raises:
        PluginError: it is none of them.
    """
    needed = [
        item.name for item in _parameters(thing) if item.kind in POSITIONAL and item.default is item.empty
    ]
    if isinstance(thing, type) or len(needed) < 2 or needed[0] == "robot":
        return False
    if len(needed) > 2:
        raise PluginError(
            "expected a law (state, reference) or a factory (robot, ...), got a function of "
            f"{', '.join(needed)}; for a law that rollouts compile, write a factory that returns "
            "twin.ControlLaw(robot, law, parameters)"
        )
    return True


def _takes_robot(thing: Callable[..., Any]) -> bool:
    """Return whether the first argument of a class or factory is the robot, by its name or as required."""
    first = next(iter(_parameters(thing)), None)
    if first is None or first.kind not in (*POSITIONAL, inspect.Parameter.VAR_POSITIONAL):
        return False
    return first.name == "robot" or first.default is first.empty


def _parameters(thing: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the arguments of a function or of a class."""
    try:
        return list(
            (_signature if isinstance(thing, Hashable) else inspect.signature)(thing).parameters.values()
        )
    except (TypeError, ValueError):
        raise PluginError(f"cannot determine the arguments of {thing!r}") from None


_signature = lru_cache(inspect.signature)  # it takes as long as the rest of making a controller
