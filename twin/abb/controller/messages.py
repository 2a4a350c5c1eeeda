"""Instructions for messages through queues (RAPID Message Queue) and for events (IError, ErrWrite)."""

from __future__ import annotations

from twin.abb.controller import events
from twin.abb.controller.events import ERROR, STATE, USER, WARNING, Event, Message, Queue, queue_of
from twin.abb.controller.tasks import LiveRecorder
from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.expressions import Cell, Part
from twin.abb.rapid.instructions import watch
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.values import NUM, STRING, Record, copied


def _kind(cell: Cell | Part) -> str:
    return f"{cell.type}{{{cell.dimensions}}}"


def _find(recorder: LiveRecorder, given: Arguments) -> None:
    name = given.value(1, STRING)
    if name.lower() not in recorder.execution.queues:
        known = ", ".join(recorder.execution.queues)
        given.interpreter.raise_error("err_rmq_name", f"there is no queue {name}, known are {known}")
    given.cell(0).value = name


def _send(recorder: LiveRecorder, given: Arguments) -> None:
    name, cell = given.opaque(0, str, ""), given.cell(1)
    if not name:
        given.interpreter.raise_error("err_rmq_invalid", f"{given.name_of(0)} has no queue: RMQFindSlot")
    sender = queue_of(recorder.name)
    user = given.optional("userdef", NUM, -1.0)
    message = Message(sender, cell.type, cell.dimensions, copied(cell.value), user)
    if not recorder.execution.send(name, message):
        given.interpreter.raise_error("err_rmq_full", f"the queue {name} has {events.MOST_MESSAGES} messages")


def _queue(recorder: LiveRecorder) -> Queue:
    return recorder.execution.queues[queue_of(recorder.name).lower()]


def _await(recorder: LiveRecorder, given: Arguments) -> Message:
    queue = _queue(recorder)
    recorder.wait_until(lambda: bool(queue), given.optional("timeout", NUM, float("inf")))
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


# ---------------------------------------------------------------------------------------------- events


def _write_event(recorder: LiveRecorder, given: Arguments) -> None:
    title, name = given.value(0, STRING), recorder.name
    texts = [given.value(1, STRING)] if len(given) > 1 else []
    texts += [given.value(one, STRING) for one in ("rl2", "rl3", "rl4") if one in given]
    number, type_ = (2, WARNING) if "w" in given else (3, STATE) if "i" in given else (1, ERROR)
    recorder.report(f"{given.name}: {': '.join([title, ' '.join(texts)])}")
    recorder.execution.enter(Event(recorder.now(), name, USER, number, type_, title, tuple(texts)))


def _order_event(recorder: LiveRecorder, given: Arguments) -> None:
    domain, type_ = given.value(0, NUM), given.value(1, NUM)
    number = given.optional("errorid", NUM, None)

    def fires(before: object, event: Event) -> bool:
        wanted = ((domain, event.domain), (type_, event.type), (number or 0, event.number))
        return all(one in (0.0, found) for one, found in wanted)

    watch(given, 2, "", "event", fires)


def _get_event(recorder: LiveRecorder, given: Arguments) -> None:
    given.cell(0).value = given.interpreter.interrupts.present


def _read_event(recorder: LiveRecorder, given: Arguments) -> None:
    event = given.opaque(0, Event, None)
    if event is None:
        given.interpreter.raise_error("err_tr_data", f"{given.name_of(0)} has no data of an event")
    for which, value in enumerate((event.domain, event.number, event.type), start=1):
        given.cell(which).value = float(value)
    given.give("title", event.title[:80])
    for k in range(1, 6):
        given.give(f"str{k}", event.texts[k - 1][:80] if k <= len(event.texts) else "")


INSTRUCTIONS: dict[str, Instruction] = {
    name: Instruction(tuple(arguments.split()), run)  # type: ignore[arg-type]
    for name, arguments, run in (
        ("RMQFindSlot", "Slot Name", _find), ("RMQSendMessage", "Slot Message", _send),
        ("RMQSendWait", "Slot SendMsg Message ReceiveDataType", _send_and_wait),
        ("RMQReadWait", "Message", _read_and_wait), ("RMQGetMessage", "Message", _get),
        ("RMQGetMsgData", "Message Data", _data), ("RMQGetMsgHeader", "Message", _header),
        ("RMQEmptyQueue", "", _empty), ("IRMQMessage", "InterruptDataType Interrupt", _order),
        ("ErrWrite", "Header Reason", _write_event),
        ("IError", "ErrorDomain ErrorType Interrupt", _order_event),
        ("GetTrapData", "TrapEvent", _get_event),
        ("ReadErrData", "TrapEvent ErrorDomain ErrorId ErrorType", _read_event),
    )
}  # fmt: skip
"""Instructions by their names."""
