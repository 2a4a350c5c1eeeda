"""Queues of messages of clients, and messages to and from the queues of the tasks.

Data is a text `type;value`, such as `num;5` or `string;"go"` (general knowledge); another text is a string.
"""

from __future__ import annotations

import re
import time

from twin.abb.controller.events import Message, Queue
from twin.abb.rapid.values import STRING, text_of
from twin.abb.rws.cabinet import Cabinet, Route
from twin.abb.rws.exchange import DONE, Answer, Condition, Item, Refused, Request
from twin.abb.rws.rapid import literal
from twin.base.errors import RapidError

MOST_QUEUES = 100
LONGEST_WAIT = 30.0
"""Longest time in [s] that a client waits for a message in one request (ours)."""

DATA = re.compile(r"([A-Za-z]\w*);(.*)", re.S)


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


def _create(cabinet: Cabinet, request: Request) -> Answer:
    name, queues = request.given("dipc-queue-name"), cabinet.controller.execution.queues
    if name.lower() in queues:
        raise Refused(Condition.ARGUMENT, f"the queue {name} exists")
    if len(queues) >= MOST_QUEUES:
        raise Refused(Condition.HELD, f"there are {MOST_QUEUES} queues already")
    queues[name.lower()] = Queue()
    return Answer(
        status=201, headers={"Location": f"{request.address}/rw/dipc/{name}"} if name.isalnum() else {}
    )


def _send(cabinet: Cabinet, request: Request) -> Answer:
    """Send a message; a task gets data of its type."""
    text, name = request.given("dipc-data"), request.part["queue"]
    typed = DATA.fullmatch(text)
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


def _read(cabinet: Cabinet, request: Request) -> Answer:
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
    Route("POST", "rw/dipc", _create, "dipc-create", "rw/dipc"),
    Route("POST", "rw/dipc/{queue}", _send, "dipc-send", "rw/dipc/{queue}/send", waits=True),
    Route("GET", "rw/dipc/{queue}", _read, waits=True),
)
