"""Control laws that are not ours: how they are named, found, made and called.

A law of your own is named as `./my.py:Law`, as `package.module:Law`, or as an installed package announces it
by an entry point of the group `irb_twin.controllers`.  What is found there may be

- a class or a factory `(robot, *, bandwidth, period, ...)`, which gets those keywords that it has, and the
  settings that the user chose; it makes a `twin.ControlLaw`, or anything to call with (state, reference),
- a plain function `(state, reference) -> tau`, which may have settings as keywords, too.

A function is a factory if its first argument is called `robot` or if it needs one argument at most.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twin.errors import PluginError, UnknownNameError, describe_error_with_location, is_interrupt
from twin.plugins import attribute_of, load_file, load_module, plugin_entries, plugin_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Reference, State

GROUP = "irb_twin.controllers"
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parts(name: str) -> tuple[str, str]:
    """`./my.py:Law` -> `./my.py`, `Law`; the name is "" where there is none."""
    where, _, inner = name.rpartition(":")
    if not where or os.sep in inner:  # `C:\laws.py` has a colon, too
        return name, ""
    return where, inner


def is_own(name: str) -> bool:
    """Whether the name is written as that of a law in somebody's file or module."""
    return name.endswith(".py") or bool(parts(name)[1])


def require_known(name: str, ours: tuple[str, ...]) -> None:
    """Check the name of a law without loading it.

    Args:
        name: of a law, in whatever way it is named.
        ours: the names of the laws that need no loading.

    Raises:
        UnknownNameError: there is no such name or file; the message says what would do.
    """
    if name in ours or name in plugin_entries(GROUP):
        return
    if not is_own(name):
        known = ", ".join((*ours, *plugin_entries(GROUP)))
        raise UnknownNameError(
            f"unknown controller {name!r}: known are {known}, or one of your own as ./my.py:Law or "
            "package.module:Law"
        )
    where, inner = parts(name)
    if where.endswith(".py") and not Path(where).is_file():
        raise UnknownNameError(f"there is no controller file {where!r}")
    if not inner:
        raise UnknownNameError(f"controller {name!r}: say which class or function of the file, as {name}:Law")


def found(name: str) -> Callable[..., Any]:
    """The class, factory or function of a name that `require_known` lets pass.

    Raises:
        PluginError: it does not load, or is nothing that can be called.
    """
    entry = plugin_entries(GROUP).get(name)
    if entry is not None and not is_own(name):
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
    """A short name for tables and files: `./my.py:Law` -> `Law`."""
    where, inner = parts(name)
    return inner or Path(where).name.removesuffix(".py")


def settings(thing: Callable[..., Any]) -> tuple[str, ...]:
    """The settings of a law: the keywords of its class, factory or function, but for its first arguments."""
    parameters = _parameters(thing)
    first = 2 if _is_plain(thing) else int(_takes_robot(thing))
    return tuple(item.name for item in parameters[first:] if item.kind in NAMED)


def defaults(thing: Callable[..., Any]) -> dict[str, Any]:
    """The defaults of those settings that have one."""
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
    """The law that a class, a factory or a function stands for.

    Args:
        thing: it.
        name: under which it was found.
        robot: the controller's own model of the robot.
        usual: `bandwidth` in [rad/s] and `period` in [s], for laws that ask for them.
        chosen: settings that the user chose.

    Raises:
        PluginError: it has no such setting, fails, or makes something else than a law.
        ValueError: it refuses a value.
    """
    from twin.control.control_law import ControlLaw

    offered = settings(thing)
    anything = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in _parameters(thing))
    unknown = [key for key in chosen if key not in offered]
    if unknown and not anything:
        told = f"it has {', '.join(offered)}" if offered else "it has none"
        raise PluginError(f"controller {name!r} has no setting {unknown[0]!r}: {told}")
    if _is_plain(thing):
        return MyController(label(name), lambda: partial(thing, **chosen) if chosen else thing)
    keywords = {key: value for key, value in usual.items() if anything or key in offered} | dict(chosen)
    made = partial(_made, name, thing, (robot,) if _takes_robot(thing) else (), keywords)
    law = made()
    if isinstance(law, ControlLaw):
        law.name = label(name)  # not one of ours that it may have inherited
        return law
    return MyController(label(name), made, law)


class MyController:
    """A law of somebody's, called as ours are; forgetting the past is its own `reset`, or making it anew."""

    def __init__(self, name: str, make: Callable[[], Any], law: Any = None) -> None:
        self.name = name
        self._make = make
        self._law = make() if law is None else law

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Demanded torques (n,) in [N m]; see `controllers.Controller`.

        Raises:
            PluginError: the law fails.
        """
        try:
            return self._law(state, reference)
        except Exception as error:
            file = str(getattr(sys.modules.get(type(self._law).__module__), "__file__", ""))
            place = describe_error_with_location(error, file, *plugin_files())
            raise PluginError(f"controller {self.name!r} failed at t = {state.t:.6g} s: {place}") from error

    def reset(self) -> None:
        """Forget the past."""
        if callable(reset := getattr(self._law, "reset", None)):
            try:
                reset()
            except Exception as error:
                file = str(getattr(sys.modules.get(type(self._law).__module__), "__file__", ""))
                place = describe_error_with_location(error, file, *plugin_files())
                raise PluginError(f"controller {self.name!r} failed in its reset: {place}") from error
        else:
            self._law = self._make()


def _made(name: str, thing: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What a class or a factory makes, if it can be called with a state and a reference."""
    missing = [
        item.name
        for item in _parameters(thing)[len(arguments) :]
        if item.default is item.empty and item.kind in NAMED and item.name not in keywords
    ]
    if missing:
        raise PluginError(
            f"controller {name!r} needs a value of {missing[0]!r}: give it with --set {missing[0]}=..., or "
            "have it default to something"
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
        raise PluginError(
            f"controller {name!r} made {law!r}, expected something to call with (state, reference)"
        )
    return law


def _is_plain(thing: Callable[..., Any]) -> bool:
    """Whether it is a law itself, no class and no factory of laws.

    Raises:
        PluginError: it can be none of them.
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
    """Whether the first argument of a class or factory is the robot: it needs it, or calls it so."""
    first = next(iter(_parameters(thing)), None)
    if first is None or first.kind not in (*POSITIONAL, inspect.Parameter.VAR_POSITIONAL):
        return False
    return first.name == "robot" or first.default is first.empty


def _parameters(thing: Callable[..., Any]) -> list[inspect.Parameter]:
    """The arguments of a function or of a class."""
    try:
        return list(
            (_signature if isinstance(thing, Hashable) else inspect.signature)(thing).parameters.values()
        )
    except (TypeError, ValueError):
        raise PluginError(f"cannot tell which arguments {thing!r} has") from None


_signature = lru_cache(inspect.signature)  # as much time as the rest of making a law
