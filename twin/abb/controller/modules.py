"""Modules that are loaded and removed while the execution is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twin.abb.rapid import syntax_tree as st
from twin.base.errors import RapidError

if TYPE_CHECKING:
    from twin.abb.controller.controller import VirtualController
    from twin.abb.controller.tasks import Task


def load(controller: VirtualController, task: Task, module: st.Module, replaces: bool) -> None:
    """Load a module into a task; the program pointer moves to the entry if one of this name was there.

    Raises:
        RapidError: the execution runs, the module is there already, or declares a name of another one.
    """
    _check_stopped(controller)
    before = task.module(module.name)
    if before is not None:
        if not replaces:
            raise RapidError(f"the module {module.name} is loaded already", "refusal")
        unload(controller, task, before)
    try:
        task.interpreter.add_module(module)
        task.modules.append(module)
        task.changes += 1
    except RapidError:
        if before is not None:
            task.interpreter.add_module(before)
            task.modules.append(before)
        raise
    finally:
        controller.share_persistents()


def unload(controller: VirtualController, task: Task, module: st.Module) -> None:
    """Remove a module of a task, whose program pointer moves to the entry.

    Raises:
        RapidError: the execution runs.
    """
    _check_stopped(controller)
    controller.clear_path()
    task.changes += 1
    task.to_entry()
    k = task.modules.index(module)
    task.interpreter.remove_module(module, k)
    del task.modules[k]


def _check_stopped(controller: VirtualController) -> None:
    if controller.executing or not controller.rests:
        raise RapidError("modules change while the execution is stopped and the arm rests", "refusal")
