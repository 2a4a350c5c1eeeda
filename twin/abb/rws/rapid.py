"""Tasks, modules and data of RAPID, and queues of messages.

Data of a message is a text `type;value`, such as `num;5` or `string;"go"` (general knowledge); another text
is a string.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from twin.abb.controller.events import Message, Queue
from twin.abb.controller.tasks import Task
from twin.abb.rapid import syntax_tree as st
from twin.abb.rapid.expressions import LONGEST_STRING, Cell
from twin.abb.rapid.language import parse, read_source
from twin.abb.rapid.values import STRING, text_of
from twin.abb.rws.cabinet import NONE, Cabinet, Fields, Route, listed, shown
from twin.abb.rws.exchange import DONE, Answer, Condition, Item, Refused, Request
from twin.abb.rws.system import place, store
from twin.base.errors import RapidError

KINDS = {"NORMAL": "norm", "STATIC": "stat", "SEMISTATIC": "semistat"}
SYMBOLS = {"per": "PERS", "var": "VAR", "con": "CONST"}

AT_ONCE = 50
"""Number of data objects that are described in one cycle."""

# ---------------------------------------------------------------------------------------------- tasks


def _state(cabinet: Cabinet, task: Task) -> str:
    """Return the execution state of a task: ready, started, stopped, or without a program."""
    if not task.has_program:
        return "unin"
    runs = task.is_background or cabinet.controller.execution.running
    if task.state == "running":
        return "star" if runs else "stop"
    return "stop" if task.state == "faulty" else "read"


def _task(cabinet: Cabinet, task: Task) -> Fields:
    return {
        "name": task.settings.name, "type": KINDS[task.settings.kind],
        "taskstate": "link" if task.has_program else "load",
        "excstate": _state(cabinet, task), "active": "On" if task.is_active else "Off",
        "motiontask": "TRUE" if task.settings.moves else "FALSE",
    }  # fmt: skip


def _pointers(cabinet: Cabinet, request: Request) -> Answer:
    """Return the program pointer of a task, and its motion pointer: the line of the move that began last."""
    task, line = _task_of(cabinet, request), cabinet.controller.unit.line
    if task.pointer is None:
        raise Refused(Condition.NO_POINTER, f"the task {task.settings.name} has no {task.settings.entry}")
    places = {"progpointer": task.pointer}
    if task.settings.moves and line is not None:
        places["motionpointer"] = line
    return Answer([one for title, place in places.items() for one in _pointer(task, title, *place)])


def _pointer(task: Task, title: str, file: str, line: int) -> Iterator[Item]:
    """Yield a pointer at a line of a file, unless its module is gone."""
    parts = [(one, module) for module in task.modules if module.file == file for one in module.items]
    routines = [pair for pair in parts if isinstance(pair[0], st.Routine) and pair[0].line <= line]
    for routine, module in sorted(routines, key=lambda pair: pair[0].line)[-1:]:
        text = "".join(module.text.splitlines()[line - 1 : line])
        fields = {
            "beginposition": f"{line},{len(text) - len(text.lstrip()) + 1}",
            "endposition": f"{line},{len(text.rstrip())}", "modulemame": module.name,  # as theirs
            "routinename": routine.name, "changecount": "0", "executiontype": "normal",
        }  # fmt: skip
        yield Item("pcp-info", title, fields)


def _program(cabinet: Cabinet, request: Request) -> Answer:
    """Return the program of a task: the module and the name of its entry."""
    task = _task_of(cabinet, request)
    if task.beginning is None:
        return DONE
    name = next(one.name for one in task.modules if one.file == task.beginning[0])
    return Answer([Item("rap-program", name, {"name": name, "entrypoint": task.settings.entry})])


def _task_motion(cabinet: Cabinet, request: Request) -> Answer:
    _task_of(cabinet, request)
    return Answer([Item(f"rapid-{one}-li", one) for one in ("robtarget", "jointtarget", "mechunit")], page=9)


def _activate(on: bool) -> Any:
    def run(cabinet: Cabinet, request: Request) -> Answer:
        cabinet.check_master(request)
        task = cabinet.task(request.part.get("task") or request.given("task"))
        _check_stopped(cabinet)
        task.is_active = on
        return DONE

    return run


def _check_stopped(cabinet: Cabinet) -> None:
    if cabinet.controller.execution.executing:
        raise Refused(Condition.EXECUTION, "the execution runs")


# -------------------------------------------------------------------------------------------- modules


def _task_of(cabinet: Cabinet, request: Request) -> Task:
    return cabinet.task(request.part.get("task") or request.query.get("task", "T_ROB1"))


def _modules(cabinet: Cabinet, request: Request) -> dict[str, Fields]:
    return {
        one.name: {"name": one.name, "type": "SysMod" if "SYSMODULE" in one.attributes else "ProgMod"}
        for one in _task_of(cabinet, request).modules
    }


def _load(cabinet: Cabinet, request: Request) -> Answer:
    """Load the modules of a file in the home folder; it is read and parsed beside the cycles."""
    cabinet.check_master(request)
    task, replaces = _task_of(cabinet, request), request.given("replace", "false").lower() == "true"
    path = place(cabinet, request.given("modulepath"))
    try:
        source = read_source(path)
    except OSError:
        raise Refused(Condition.NO_FILE_TO_LOAD, f"there is no file {request.given('modulepath')}") from None
    except RapidError as error:
        raise Refused(Condition.SYNTAX, _without_folder(cabinet, str(error))) from None

    def load() -> None:
        _check_stopped(cabinet)
        for module in source.modules:
            cabinet.controller.load(task, module, replaces)

    cabinet.call(load)
    return DONE


def _without_folder(cabinet: Cabinet, text: str) -> str:
    return text.replace(f"{cabinet.home.resolve()}/", "HOME:/")


def _unload(cabinet: Cabinet, request: Request) -> Answer:
    cabinet.check_master(request)
    _check_stopped(cabinet)
    task = _task_of(cabinet, request)
    module = _module_of(task, request.given("module"), Condition.NO_MODULE_TO_UNLOAD)
    cabinet.controller.unload(task, module)
    return DONE


def _module_of(task: Task, name: str, otherwise: Condition = Condition.NO_MODULE) -> st.Module:
    """Return the module of a task.

    Raises:
        Refused: there is none.
    """
    module = task.module(name)
    if module is None:
        known = ", ".join(one.name for one in task.modules) or "none"
        raise Refused(otherwise, f"the task {task.settings.name} has no module {name}, it has {known}")
    return module


def _module(cabinet: Cabinet, request: Request) -> Answer:
    """Return name, file and attribute of a module, or its text, for which version 1.0 asks in the query."""
    task = _task_of(cabinet, request)
    module = _module_of(task, request.part["module"])
    if request.query.get("resource") == "module-text":
        return _module_text(cabinet, request)
    attribute = "sysmod" if "SYSMODULE" in module.attributes else "none"
    fields = {"modname": module.name, "filename": Path(module.file).name, "attribute": attribute}
    return Answer([Item("rap-module", f"{task.settings.name}/{module.name}", fields)])


def _module_text(cabinet: Cabinet, request: Request) -> Answer:
    task = _task_of(cabinet, request)
    text = _module_of(task, request.part["module"]).text
    fields = {"change-count": str(task.changes), "module-length": str(len(text))}
    fields["module-text"] = quote(text) if cabinet.version == 1 else text
    return Answer([Item("rap-module-text", "moduletext", fields)])


def _module_changes(cabinet: Cabinet, request: Request) -> Fields:
    task = _task_of(cabinet, request)
    _module_of(task, request.part["module"])
    return {"count": str(task.changes)}


def _save_module(cabinet: Cabinet, request: Request) -> Answer:
    """Write the text of a module, as it was loaded, into the home folder."""
    module = cabinet.call(lambda: _module_of(_task_of(cabinet, request), request.part["module"]))
    kind = "sys" if "SYSMODULE" in module.attributes else "mod"
    name = f"{request.given('path')}/{request.given('name')}.{kind}{'x' if cabinet.version == 2 else ''}"
    store(place(cabinet, name), f"{module.text}\n".encode("latin-1", "replace"), name)
    return DONE


# ------------------------------------------------------------------------------------------------ data


class Symbol(NamedTuple):
    """Data object of a module: its task, module, declaration and value."""

    task: Task
    module: st.Module
    declaration: st.Data
    cell: Cell

    @property
    def path(self) -> str:
        """Path of the object, RAPID/TASK/module/name."""
        return f"RAPID/{self.task.settings.name}/{self.module.name}/{self.declaration.name}"

    @property
    def text(self) -> str:
        """Value as RAPID writes it."""
        return text_of(self.task.interpreter.read(self.cell))


def symbols_of(task: Task) -> Iterator[Symbol]:
    """Iterate over the data objects of a task."""
    for module, scope in zip(task.modules, task.interpreter.scopes, strict=True):
        for item in module.items:
            if isinstance(item, st.Data) and isinstance(cell := scope.find(item.name.lower()), Cell):
                yield Symbol(task, module, item, cell)


def symbol(cabinet: Cabinet, path: str) -> Symbol:
    """Return the data object of a path TASK/[module/]name.

    Raises:
        Refused: there is none; local data needs its module.
    """
    names = path.split("/")
    if len(names) not in (2, 3):
        raise Refused(Condition.NO_SYMBOL, f"expected TASK/module/name or TASK/name, got {path}")
    task = cabinet.task(names[0], Condition.NO_SYMBOL)
    module, name = names[1].lower() if len(names) == 3 else "", names[-1].lower()
    for one in symbols_of(task):
        is_there = one.module.name.lower() == module if module else one.declaration.scope != "LOCAL"
        if is_there and one.declaration.name.lower() == name:
            return one
    sentence = f"there is no data {'/'.join(names[1:])} in the task {task.settings.name}"
    raise Refused(Condition.NO_SYMBOL, sentence)


def _data(cabinet: Cabinet, request: Request) -> Answer:
    found = symbol(cabinet, request.part["symbol"])
    return Answer([Item("rap-data", found.path, {"value": found.text})])


def _set_data(cabinet: Cabinet, request: Request) -> Answer:
    cabinet.check_master(request)
    value = literal(request.given("value"))

    def write() -> None:
        found = symbol(cabinet, request.part["symbol"])
        cell, interpreter = found.cell, found.task.interpreter
        if cell.kind == "CONST":
            raise Refused(Condition.ARGUMENT, f"{found.declaration.name} is constant", 403)
        try:
            new = interpreter.types.converted(value, cell.type, cell.dimensions)
        except RapidError as error:
            raise Refused(Condition.ARGUMENT, f"{found.declaration.name}: {error}") from None
        shape = _shape(interpreter.read(cell), cell.dimensions)
        if _shape(new, cell.dimensions) != shape:
            sizes = "x".join(map(str, shape))
            raise Refused(Condition.ARGUMENT, f"{found.declaration.name} is an array of {sizes}")
        if cell.type == STRING and not cell.dimensions and len(new) > LONGEST_STRING:
            raise Refused(Condition.ARGUMENT, f"a string has at most {LONGEST_STRING} characters")
        interpreter.write(cell, found.declaration.name, new)

    cabinet.call(write)
    return DONE


def _shape(value: Any, dimensions: int) -> tuple[int, ...]:
    """Return the sizes of an array; -1 where its rows differ."""
    if not dimensions:
        return ()
    rows = {_shape(one, dimensions - 1) for one in value}
    return (len(value), *(rows.pop() if len(rows) == 1 else (-1,)))


def literal(text: str) -> Any:
    """Return a value that RAPID writes: numbers, strings, TRUE, FALSE, and aggregates of them as lists.

    Raises:
        Refused: the text is something else.
    """
    try:
        modules = parse(f"MODULE M\nVAR num x := {text};\nENDMODULE").modules
        if len(modules) != 1 or len(modules[0].items) != 1:
            raise ValueError("more than a value")
        return _literal(modules[0].items[0].initial)
    except (RapidError, ValueError, AttributeError, RecursionError):
        raise Refused(Condition.SYNTAX, f"expected a value as RAPID writes it, got {text[:80]!r}") from None


def _literal(node: Any) -> Any:
    if isinstance(node, st.Literal):
        return node.value
    if isinstance(node, st.Numbers):
        return node.items
    if isinstance(node, st.Aggregate):
        return [_literal(one) for one in node.items]
    if isinstance(node, st.Unary) and node.operator in "+-" and isinstance(node.operand, st.Literal):
        number = float(node.operand.value)
        return -number if node.operator == "-" else number
    if isinstance(node, st.Variable) and not node.path and node.name.upper() in ("TRUE", "FALSE"):
        return node.name.upper() == "TRUE"
    raise ValueError("no literal")


def _properties(cabinet: Cabinet, request: Request) -> Answer:
    return Answer([_described(symbol(cabinet, request.part["symbol"]))])


def _described(found: Symbol) -> Item:
    item, cell = found.declaration, found.cell
    value = found.task.interpreter.read(cell)
    sizes = " ".join(map(str, _shape(value, cell.dimensions)))
    fields = {
        "symburl": found.path, "name": item.name, "symtyp": {v: k for k, v in SYMBOLS.items()}[cell.kind],
        "named": "true", "dattyp": item.type if item.type.lower() == cell.type else cell.type,
        "ndim": str(cell.dimensions), "dim": sizes, "local": _truth(item.scope == "LOCAL"),
        "rdonly": _truth(cell.kind == "CONST"), "taskvar": _truth(item.scope == "TASK"),
    }  # fmt: skip
    return Item("rap-sympropvar", found.path, fields)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _search(cabinet: Cabinet, request: Request) -> Answer:
    """Search data by kind, block, type and a part of the name; the class of items is that of a list."""
    block = [one for one in request.given("blockurl", "RAPID").split("/") if one][1:]
    kind, type_ = request.given("symtyp", "any"), request.given("dattyp", "").lower()
    part = request.given("regexp", "").lower().strip("^$.*")
    if kind not in (*SYMBOLS, "any", "udef"):
        raise Refused(Condition.ARGUMENT, f"symtyp: expected per, var, con or any, got {kind!r}")
    tasks = [cabinet.task(block[0])] if block else list(cabinet.controller.tasks.values())

    def matching() -> list[Symbol]:
        return [
            one
            for task in tasks
            for one in symbols_of(task)
            if kind not in SYMBOLS or one.declaration.kind == SYMBOLS[kind]
            if len(block) < 2 or one.module.name.lower() == block[1].lower()
            if type_ in ("", one.cell.type) and part in one.declaration.name.lower()
        ]

    found, items = cabinet.call(matching), []
    for k in range(0, len(found), AT_ONCE):
        items += cabinet.call(lambda some=found[k : k + AT_ONCE]: [_described(one) for one in some])
    return Answer([one._replace(kind="rap-sympropvar-li") for one in items], page=100)


MODULE = "rw/rapid/tasks/{task}/modules/{module}"
DATA, DATA_2 = "rw/rapid/symbol/data/RAPID/{symbol...}", "rw/rapid/symbol/RAPID/{symbol...}/data"
PROPERTIES = "rw/rapid/symbol/properties/RAPID/{symbol...}"


MOST_QUEUES = 100
LONGEST_WAIT = 30.0
"""Longest time in [s] that a client waits for a message in one request (ours)."""

TYPED = re.compile(r"([A-Za-z]\w*);(.*)", re.S)


def fields_of(message: Message) -> dict[str, str]:
    """Return a message as the texts that clients read."""
    return {
        "dipc-data": f"{message.type};{text_of(message.value)}", "dipc-userdef": f"{message.user:.0f}",
        "dipc-msgtype": "1", "dipc-cmd": "111",
    }  # fmt: skip


def queue_at(cabinet: Cabinet, name: str) -> Queue:
    """Return the queue of a name.

    Raises:
        Refused: there is none.
    """
    found = cabinet.controller.execution.queues.get(name.lower())
    if found is None:
        raise Refused(Condition.NO_ADDRESS, f"there is no queue {name}")
    return found


def _create_queue(cabinet: Cabinet, request: Request) -> Answer:
    name, queues = request.given("dipc-queue-name"), cabinet.controller.execution.queues
    if name.lower() in queues:
        raise Refused(Condition.ARGUMENT, f"the queue {name} exists")
    if len(queues) >= MOST_QUEUES:
        raise Refused(Condition.HELD, f"there are {MOST_QUEUES} queues already")
    queues[name.lower()] = Queue()
    headers = {"Location": f"{request.address}/rw/dipc/{name}"} if name.isalnum() else {}
    return Answer(status=201, headers=headers)


def _send_message(cabinet: Cabinet, request: Request) -> Answer:
    """Send a message; a task gets data of its type."""
    text, name = request.given("dipc-data"), request.part["queue"]
    typed = TYPED.fullmatch(text)
    type_, value = (typed[1].lower(), literal(typed[2])) if typed else (STRING, text)
    user = request.given("dipc-userdef", "0")

    def send() -> None:
        queue_at(cabinet, name)
        types = next(iter(cabinet.controller.tasks.values())).interpreter.types
        try:
            data = types.converted(value, types.resolved(type_))
            message = Message(request.given("dipc-src-queue-name"), type_, 0, data, float(user))
        except (RapidError, ValueError) as error:
            raise Refused(Condition.ARGUMENT, str(error)) from None
        if not cabinet.controller.execution.send(name, message):
            raise Refused(Condition.HELD, f"the queue {name} is full")

    cabinet.call(send)
    return DONE


def _take_messages(cabinet: Cabinet, request: Request) -> Answer:
    """Take all messages of a queue, and wait for the first one as long as the client wants."""
    text = request.query.get("timeout", "0")
    wait = min(float(text), LONGEST_WAIT) if re.fullmatch(r"\d+(\.\d*)?", text) else 0.0
    end, name = time.monotonic() + wait, request.part["queue"]

    def take() -> list[Message]:
        queue = queue_at(cabinet, name)
        return [queue.popleft() for _ in range(len(queue))]

    while not (found := cabinet.call(take)) and time.monotonic() < end:
        time.sleep(4e-3)
    return Answer([Item("dipc-read-li", name, fields_of(one) | {"queue-name": one.sender}) for one in found])


ROUTES = (
    listed("rw/rapid/tasks", "rap-task-li",
           lambda c, r: {one.settings.name: _task(c, one) for one in c.controller.tasks.values()}),
    shown("rw/rapid/tasks/{task}", "rap-task", lambda c, r: _task(c, _task_of(c, r))),
    Route("GET", "rw/rapid/tasks/{task}/pcp", _pointers),
    Route("GET", "rw/rapid/tasks/{task}/program", _program),
    Route("GET", "rw/rapid/tasks/{task}/motion", _task_motion),
    shown(NONE, "rap-task-struc-change-count",
          lambda c, r: dict.fromkeys(("change-count", "struc-change-count"), str(_task_of(c, r).changes)),
          path_2="rw/rapid/tasks/{task}/structural-changecount"),
    Route("POST", "rw/rapid/tasks/{task}", _activate(True), "activate", "rw/rapid/tasks/activate"),
    Route("POST", "rw/rapid/tasks/{task}", _activate(False), "deactivate", "rw/rapid/tasks/deactivate"),
    listed("rw/rapid/modules", "rap-module-info-li", _modules, "rw/rapid/tasks/{task}/modules"),
    *(Route("GET", path, _module) for path in ("rw/rapid/modules/{module}", MODULE)),
    Route("GET", f"{MODULE}/text", _module_text),
    shown(f"{MODULE}/changecount", "rap-module-changecount", _module_changes),
    Route("POST", "rw/rapid/modules/{module}", _save_module, "save", f"{MODULE}/save", waits=True),
    Route("POST", "rw/rapid/tasks/{task}", _load, "loadmod", waits=True),
    Route("POST", "rw/rapid/tasks/{task}", _unload, "unloadmod"),
    Route("GET", DATA, _data, path_2=DATA_2),
    Route("POST", DATA, _set_data, "set", DATA_2, waits=True),
    Route("GET", PROPERTIES, _properties, path_2="rw/rapid/symbol/RAPID/{symbol...}/properties"),
    *(Route("POST", "rw/rapid/symbols", _search, action, "rw/rapid/symbols/search", waits=True)
      for action in ("search-symbols", "search-symbol")),
    Route("POST", "rw/dipc", _create_queue, "dipc-create", "rw/dipc"),
    Route("POST", "rw/dipc/{queue}", _send_message, "dipc-send", "rw/dipc/{queue}/send", waits=True),
    Route("GET", "rw/dipc/{queue}", _take_messages, waits=True),
)  # fmt: skip
