"""Panel and execution: motors, mode, speed, start and stop; mastership and users."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection

from twin.abb.rws.cabinet import DOMAINS, Cabinet, Fields, Route, shown
from twin.abb.rws.exchange import DONE, Answer, Condition, Item, Refused, Request

TURNING_ON = 1.0
"""Time in [s] in which the motors of a controller are on (general knowledge), with `--strict`."""

STOPPING = 0.5
"""Longest time in [s] that a move of the program pointer waits for an arm that stops."""

MOTORS = "motoron", "motoroff"
MODES = {"AUTO": "AUTO", "MANR": "MANR", "MANF": "MANF", "auto": "AUTO", "man": "MANR", "manf": "MANF",
         "manfs": "MANF"}  # fmt: skip
"""Modes by the names that clients give them."""

CYCLES = "once", "forever", "asis"


def ctrlstate(cabinet: Cabinet) -> str:
    """Return the state of the controller."""
    return "motoron" if cabinet.controller.execution.motors else "motoroff"


def opmode(cabinet: Cabinet) -> str:
    """Return the operation mode."""
    return cabinet.controller.execution.mode


def speedratio(cabinet: Cabinet) -> str:
    """Return the share of the speed, in [%]."""
    return f"{100.0 * cabinet.controller.execution.override:.0f}"


def ctrlexecstate(cabinet: Cabinet) -> str:
    """Return the state of the execution."""
    return "running" if cabinet.controller.execution.executing else "stopped"


STATES = {"ctrlstate": ctrlstate, "opmode": opmode, "speedratio": speedratio, "coldetstate": lambda _: "INIT"}
"""Functions of states of the panel by their names."""


def _set_ctrlstate(cabinet: Cabinet, request: Request) -> Answer:
    state = checked(request, "ctrl-state", MOTORS)
    if cabinet.turning_on is not None:
        cabinet.turning_on.cancel()
    if state == "motoron" and cabinet.strict and not cabinet.controller.execution.motors:
        switch = lambda: cabinet.controller.call(lambda: cabinet.controller.execution.set_motors(True))  # noqa: E731
        cabinet.turning_on = threading.Timer(TURNING_ON, switch)
        cabinet.turning_on.daemon = True
        cabinet.turning_on.start()
    else:
        cabinet.controller.execution.set_motors(state == "motoron")
    return DONE


def checked(request: Request, name: str, known: Collection[str], default: str | None = None) -> str:
    """Return a value of the body.

    Raises:
        Refused: it is none of the known ones.
    """
    value = request.given(name, default)
    if value not in known:
        raise Refused(Condition.ARGUMENT, f"{name}: expected one of {', '.join(known)}, got {value!r}")
    return value


def _set_opmode(cabinet: Cabinet, request: Request) -> Answer:
    """Change the mode, which only a virtual controller lets a client do (public notes)."""
    cabinet.controller.set_mode(MODES[checked(request, "opmode", MODES)])
    return DONE


def _set_speedratio(cabinet: Cabinet, request: Request) -> Answer:
    cabinet.check_master(request)
    try:
        ratio = float(request.given("speed-ratio"))
    except ValueError:
        ratio = -1.0
    if not 0.0 <= ratio <= 100.0:
        raise Refused(Condition.ARGUMENT, "speed-ratio: expected a number from 0 to 100")
    cabinet.controller.execution.override = ratio / 100.0
    cabinet.controller.execution.note(10140, f"{ratio:.0f}")
    return DONE


def _execution(cabinet: Cabinet, request: Request) -> Fields:
    cycle = "forever" if cabinet.controller.execution.forever else "once"
    return {"ctrlexecstate": ctrlexecstate(cabinet), "cycle": cycle}


def _start(cabinet: Cabinet, request: Request) -> Answer:
    controller = cabinet.controller
    cabinet.check_automatic()
    cycle = checked(request, "cycle", CYCLES, "asis")
    if controller.execution.executing:
        raise Refused(Condition.EXECUTION, "the execution runs already")
    before = controller.execution.forever
    controller.execution.forever = before if cycle == "asis" else cycle == "forever"
    try:
        controller.start()
    except BaseException:
        controller.execution.forever = before
        raise
    return DONE


def _stop(cabinet: Cabinet, request: Request) -> Answer:
    cabinet.controller.stop()
    return DONE


def _cycle(cabinet: Cabinet, request: Request) -> Answer:
    cycle = checked(request, "cycle", CYCLES)
    if cycle != "asis":
        cabinet.controller.execution.forever = cycle == "forever"
    return DONE


def _to_main(cabinet: Cabinet, request: Request) -> Answer:
    controller, end = cabinet.controller, time.monotonic() + STOPPING
    cabinet.check_master(request)
    while not cabinet.call(lambda: controller.execution.executing or controller.rests):
        if time.monotonic() > end:  # the arm stops in cycles that do not come
            break
        time.sleep(2e-3)
    cabinet.call(controller.to_main)
    return DONE


# ----------------------------------------------------------------------------------- mastership, users


def _domains(cabinet: Cabinet, request: Request) -> tuple[str, ...]:
    domain = request.part.get("domain")
    if domain is not None and domain not in DOMAINS:
        expected = f"expected one of {', '.join(DOMAINS)}"
        raise Refused(Condition.ARGUMENT, f"mastership: {expected}, got {domain!r}", 404)
    return DOMAINS if domain is None else (domain,)


def _request_mastership(cabinet: Cabinet, request: Request) -> Answer:
    domains = _domains(cabinet, request)
    for domain in domains:
        if cabinet.master(domain) not in (None, request.session):
            raise Refused(Condition.HELD, f"another session has the mastership of {domain}")
    cabinet.masters.update(dict.fromkeys(domains, request.session))
    return DONE


def _release_mastership(cabinet: Cabinet, request: Request) -> Answer:
    for domain in _domains(cabinet, request):
        if cabinet.masters.get(domain) == request.session:
            del cabinet.masters[domain]
    return DONE


def _user(cabinet: Cabinet, request: Request) -> Answer:
    locale = checked(request, "ulocale", ("local", "remote"), "remote")
    item = Item("user-lcl" if locale == "local" else "user-rmt", request.given("username", ""))
    return Answer([item], status=201, headers={"Location": f"{request.address}/users/1"})


def _asked(cabinet: Cabinet, request: Request) -> Answer:
    return Answer(status=202, headers={"Location": f"{request.address}/users/rmmp/poll"})


ROUTES = (
    shown("rw/panel/ctrlstate", "pnl-ctrlstate", lambda c, r: {"ctrlstate": ctrlstate(c)},
          path_2="rw/panel/ctrl-state"),
    Route("POST", "rw/panel/ctrlstate", _set_ctrlstate, "setctrlstate", "rw/panel/ctrl-state"),
    shown("rw/panel/opmode", "pnl-opmode", lambda c, r: {"opmode": opmode(c)}),
    Route("POST", "rw/panel/opmode", _set_opmode),
    Route("POST", "rw/panel/opmode", _set_opmode, "setopmode", "rw/panel/opmode"),
    shown("rw/panel/speedratio", "pnl-speedratio", lambda c, r: {"speedratio": speedratio(c)}),
    Route("POST", "rw/panel/speedratio", _set_speedratio, "setspeedratio", "rw/panel/speedratio"),
    shown("rw/panel/coldetstate", "pnl-coldetstate", lambda c, r: {"coldetstate": "INIT"}),
    shown("rw/rapid/execution", "rap-execution", _execution),
    Route("POST", "rw/rapid/execution", _start, "start"),
    Route("POST", "rw/rapid/execution", _stop, "stop"),
    Route("POST", "rw/rapid/execution", _to_main, "resetpp", waits=True),
    Route("POST", "rw/rapid/execution", _cycle, "setcycle", "rw/rapid/execution/cycle"),
    Route("POST", "rw/mastership", _request_mastership),
    *(Route("POST", f"rw/mastership{end}", run, action) for end in ("", "/{domain}")
      for run, action in ((_request_mastership, "request"), (_release_mastership, "release"))),
    Route("POST", "users", _user),
    Route("POST", "users/rmmp", _asked),
    Route("POST", "users/rmmp", lambda c, r: DONE, "cancel"),
    # the poll for a grant, which an operator gives here at once
    shown("users/rmmp/poll", "user-rmmp-poll", lambda c, r: {"userid": "1", "alias": "", "location": "",
          "application": "", "privilege": "modify", "status": "GRANTED"}),
)  # fmt: skip
