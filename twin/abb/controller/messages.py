"""Messages between tasks, and between a task and a client, through queues (RAPID Message Queue)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.expressions import Cell, Part
from twin.abb.rapid.instructions import watch
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.values import NUM, STRING, Record, copied

if TYPE_CHECKING:
    from twin.abb.controller.live_recorder import LiveRecorder

MOST_MESSAGES = 5
"""Messages that a queue holds, the default of the system parameter RMQ Max No Of Messages."""


class Message(NamedTuple):
    """Message: name of the sender's queue, type and dimensions of the data, the data, and a number."""

    sender: str
    type: str
    dimensions: int
    value: Any
    user: float = -1.0


Queue = deque[Message]


def queue_of(task: str) -> str:
    """Return the name of the queue of a task."""
    return f"RMQ_{task}"


def _kind(cell: Cell | Part) -> str:
    return f"{cell.type}{{{cell.dimensions}}}"


def _find(recorder: LiveRecorder, given: Arguments) -> None:
    name = given.value(1, STRING)
    if name.lower() not in recorder.controller.queues:
        known = ", ".join(recorder.controller.queues)
        given.interpreter.raise_error("err_rmq_name", f"there is no queue {name}, known are {known}")
    given.cell(0).value = name


def _send(recorder: LiveRecorder, given: Arguments) -> None:
    name, cell = given.opaque(0, str, ""), given.cell(1)
    if not name:
        given.interpreter.raise_error("err_rmq_invalid", f"{given.name_of(0)} has no queue: RMQFindSlot")
    sender = queue_of(recorder.task.settings.name)
    user = given.optional("userdef", NUM, -1.0)
    message = Message(sender, cell.type, cell.dimensions, copied(cell.value), user)
    if not recorder.controller.send(name, message):
        given.interpreter.raise_error("err_rmq_full", f"the queue {name} has {MOST_MESSAGES} messages")


def _queue(recorder: LiveRecorder) -> Queue:
    return recorder.controller.queues[queue_of(recorder.task.settings.name).lower()]


def _await(recorder: LiveRecorder, given: Arguments) -> Message:
    queue, end = _queue(recorder), recorder.now() + given.optional("timeout", NUM, float("inf"))
    recorder.task.wait(lambda: bool(queue) or recorder.now() >= end - 1e-9)
    if not queue:
        given.interpreter.raise_error("err_rmq_timeout", f"{given.name} has waited for its time")
    return queue.popleft()


def _send_and_wait(recorder: LiveRecorder, given: Arguments) -> None:
    _send(recorder, given)
    given.cell(2).value = message = _await(recorder, given)
    given.give("receiveuserdef", message.user)


def _read_and_wait(recorder: LiveRecorder, given: Arguments) -> None:
    given.cell(0).value = _await(recorder, given)


def _get(recorder: LiveRecorder, given: Arguments) -> None:
    if not (queue := _queue(recorder)):
        given.interpreter.raise_error("err_rmq_nomsg", "the queue is empty")
    given.cell(0).value = queue.popleft()


def _message(given: Arguments) -> Message:
    message = given.opaque(0, Message, None)
    if message is None:
        given.interpreter.raise_error("err_rmq_invmsg", f"{given.name_of(0)} has no message")
    return message


def _data(recorder: LiveRecorder, given: Arguments) -> None:
    message, cell = _message(given), given.cell(1)
    if (message.type, message.dimensions) != (cell.type, cell.dimensions):
        given.interpreter.raise_error(
            "err_rmq_value", f"the message has {message.type} of {message.dimensions} dimensions"
        )
    cell.value = copied(message.value)


def _header(recorder: LiveRecorder, given: Arguments) -> None:
    message = _message(given)
    sizes, value = [0.0, 0.0, 0.0], message.value
    for k in range(message.dimensions):
        sizes[k], value = float(len(value)), value[0] if value else []
    given.give("header", Record("rmqheader", [message.type, float(message.dimensions), *sizes]))
    given.give("senderid", message.sender)
    given.give("userdef", message.user)


def _empty(recorder: LiveRecorder, given: Arguments) -> None:
    _queue(recorder).clear()


def _order(recorder: LiveRecorder, given: Arguments) -> None:
    watch(given, 1, _kind(given.cell(0)), "message", lambda before, after: True)


def slot_name(recorder: LiveRecorder, given: Arguments) -> str:
    """Return the name of the queue of a slot (RMQGetSlotName)."""
    return given.opaque(0, str, "")


INSTRUCTIONS: dict[str, Instruction] = {
    name: Instruction(tuple(arguments.split()), run)  # type: ignore[arg-type]
    for name, arguments, run in (
        ("RMQFindSlot", "Slot Name", _find), ("RMQSendMessage", "Slot Message", _send),
        ("RMQSendWait", "Slot SendMsg Message ReceiveDataType", _send_and_wait),
        ("RMQReadWait", "Message", _read_and_wait), ("RMQGetMessage", "Message", _get),
        ("RMQGetMsgData", "Message Data", _data), ("RMQGetMsgHeader", "Message", _header),
        ("RMQEmptyQueue", "", _empty), ("IRMQMessage", "InterruptDataType Interrupt", _order),
    )
}  # fmt: skip
"""Instructions by their names."""
