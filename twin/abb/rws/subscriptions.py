"""Subscriptions: resources that are watched, the events of their changes, and the websocket that sends them.

A thread looks at all watched resources between the turns of the tasks, once in each 4 ms.  Events wait in a
queue of their subscription, which a thread of its websocket empties, so that a slow client delays nobody.
"""

from __future__ import annotations

import itertools
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from queue import Empty, Full, Queue
from typing import Any

from websockets.datastructures import Headers
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Upgrade
from websockets.protocol import State
from websockets.server import ServerProtocol

from twin.abb.rapid.values import copied, text_of
from twin.abb.rws import panel
from twin.abb.rws.cabinet import Cabinet
from twin.abb.rws.exchange import Condition, Item, Refused, item_xml, page_xml, segments
from twin.abb.rws.motion import signal_name, signal_text
from twin.abb.rws.rapid import fields_of, queue_at, symbol
from twin.base.errors import TwinError

LOOK = 4e-3
"""Time between two looks at the watched resources, in [s]."""

LOOKING = 5e-4
"""Longest time of one look, in [s]; the next one goes on from there."""

MOST_EVENTS, MOST_SUBSCRIPTIONS, MOST_RESOURCES = 1000, 200, 1000
"""Largest numbers: events that wait for a client, subscriptions, and resources of one (ours)."""


@dataclass
class Watched:
    """Resource that is watched.

    Attributes:
        path: path as the client wrote it.
        kind: class of its events.
        field: name of the value in its events.
        read: function that returns the present value, which compares with a former one.
        text: function that returns a value as a text.
        value: value at the last look.
    """

    path: str
    kind: str
    field: str
    read: Callable[[], Any]
    text: Callable[[Any], str] = str
    value: Any = None

    def begin(self) -> None:
        """Look for the first time, which tells of no change."""
        self.value = self.read()

    def changes(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the path and the texts of a change since the last look."""
        if (value := self.read()) != self.value:
            self.value = value
            yield self.path, {self.field: self.text(value)}


class WatchedLog(Watched):
    """Event log that is watched: each new event has a path of its own."""

    def changes(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the paths and numbers of the events since the last look."""
        last = self.read()
        for number in range(self.value + 1, last + 1):
            yield f"{self.path}/{number}", {self.field: str(number)}
        self.value = last


class WatchedQueue(Watched):
    """Queue of messages that is watched: a message is taken out of it by its event."""

    def begin(self) -> None:
        """Do nothing: messages that wait already are events, too."""

    def changes(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the path and the texts of each message."""
        for message in self.read():
            yield self.path, fields_of(message)


@dataclass
class Subscription:
    """Subscription of a client.

    Attributes:
        number: its number.
        session: identity of the client's session.
        watched: its resources.
        events: events that wait for the client; None ends it.
        is_open: whether a websocket takes its events.
    """

    number: int
    session: str
    watched: Sequence[Watched]
    events: Queue[bytes | None] = field(default_factory=lambda: Queue(MOST_EVENTS))
    is_open: bool = False

    def put(self, event: bytes | None) -> None:
        """Add an event; a client that is a thousand behind loses further ones."""
        with suppress(Full):
            self.events.put_nowait(event)

    def end(self) -> None:
        """End the subscription; its websocket closes."""
        if self.events.full():
            self.events.get()
        self.put(None)


class Subscriptions:
    """Subscriptions of all clients, and the thread that looks at what they watch.

    Args:
        cabinet: the controller.
        lives: function that returns whether a session lives; its subscriptions end with it.
    """

    def __init__(self, cabinet: Cabinet, lives: Callable[[str], bool]) -> None:
        self._cabinet, self._lives, self._numbers = cabinet, lives, itertools.count(1)
        self._subscriptions: dict[int, Subscription] = {}
        self._wake, self._closing = threading.Event(), False
        self._next = 0
        self._thread = threading.Thread(target=self._run, name="rws events", daemon=True)
        self._thread.start()

    def add(self, session: str, form: Sequence[tuple[str, str]]) -> Subscription:
        """Return a new subscription of the resources of a form.

        The oldest one without a websocket ends where there are too many: clients forget them.

        Raises:
            Refused: a resource is unknown, or there are too many.
        """
        watched = self._watched(form)
        closed = [one for one in self.all if not one.is_open]
        if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
            if not closed:
                raise Refused(Condition.HELD, f"there are {MOST_SUBSCRIPTIONS} subscriptions already", 503)
            self.remove(closed[0])
        new = Subscription(next(self._numbers), session, watched)
        self._subscriptions[new.number] = new
        self._wake.set()
        return new

    def extend(self, one: Subscription, form: Sequence[tuple[str, str]]) -> None:
        """Add the resources of a form to a subscription.

        Raises:
            Refused: a resource is unknown, or there are too many.
        """
        new = self._watched(form)
        paths = {each.path for each in new}
        one.watched = [*(each for each in one.watched if each.path not in paths), *new]

    def _watched(self, form: Sequence[tuple[str, str]]) -> list[Watched]:
        """Return the resources of a form, as they are now.

        Raises:
            Refused: a resource is unknown, or there are too many.
        """
        # `resources` is the number of each path, or in one client how many there are
        paths = [value for name, value in form if name != "resources" and not name.endswith("-p")]
        if "resources" not in dict(form) or not 0 < len(paths) <= MOST_RESOURCES:
            raise Refused(Condition.ARGUMENT, f"expected 1 to {MOST_RESOURCES} resources, got {len(paths)}")

        def watched() -> list[Watched]:
            found = [watch(self._cabinet, path) for path in paths]
            for one in found:
                one.begin()
            return found

        return self._cabinet.call(watched)

    @property
    def all(self) -> list[Subscription]:
        """Subscriptions of all sessions."""
        return list(self._subscriptions.values())

    def find(self, text: str, session: str) -> Subscription:
        """Return the subscription of a session by its number.

        Raises:
            Refused: there is none.
        """
        found = self._subscriptions.get(int(text)) if text.isascii() and text.isdigit() else None
        if found is None or found.session != session:
            raise Refused(Condition.NO_ADDRESS, f"there is no subscription {text} of this session")
        return found

    def remove(self, one: Subscription) -> None:
        """End a subscription."""
        self._subscriptions.pop(one.number, None)
        one.end()

    def remove_of(self, is_ended: Callable[[str], bool]) -> None:
        """End the subscriptions of sessions that have ended."""
        for one in self.all:
            if is_ended(one.session):
                self.remove(one)

    def _run(self) -> None:
        for k in itertools.count():
            if self._closing:
                return
            if k % 1000 == 0:
                self.remove_of(lambda session: not self._lives(session))
            if self._subscriptions:
                with suppress(TwinError):  # no cycle began: the session ends
                    self._cabinet.controller.call(self._look)
                time.sleep(LOOK)
            else:
                self._wake.wait(1.0)
                self._wake.clear()

    def _look(self) -> None:
        """Look at the watched resources, from where the last look ended, and put events into the queues."""
        watched = [(one, each) for one in self.all for each in one.watched]
        end = time.perf_counter() + LOOKING
        for _ in range(len(watched)):
            self._next = (self._next + 1) % len(watched)
            one, each = watched[self._next]
            for path, texts in each.changes():
                one.put(event(each.kind, path, texts))
            if time.perf_counter() > end:
                break

    def close(self) -> None:
        """End all subscriptions and the thread."""
        self._closing = True
        self._wake.set()
        self.remove_of(lambda session: True)
        self._thread.join(2.0)


def event(kind: str, path: str, texts: dict[str, str]) -> bytes:
    """Return an event in XML, on one line, the path before the value, as clients search for them."""
    item = item_xml(Item(kind, path, texts))
    head, _, rest = item.partition(">")
    link = f'<a href="{escape(path)}" rel="self"/>'
    return page_xml(f"<ul>{head}>{link}{rest}</ul>", "state", "")


def watch(cabinet: Cabinet, path: str) -> Watched:
    """Return the resource of a path; called between the turns of the tasks.

    Raises:
        Refused: there is none, or it cannot be watched.
    """
    parts, controller = segments(path), cabinet.controller
    if parts[:2] == ("rw", "panel") and (name := "".join(parts[2:]).replace("-", "")) in panel.STATES:
        return Watched(path, f"pnl-{name}-ev", name, lambda: panel.STATES[name](cabinet))
    if parts == ("rw", "rapid", "execution"):
        return Watched(path, "rap-ctrlexecstate-ev", "ctrlexecstate", lambda: panel.ctrlexecstate(cabinet))
    if parts[:3] == ("rw", "iosystem", "signals") and len(parts) > 3:
        name = signal_name(cabinet, "/".join(parts[3:]))
        values = controller.signals.values
        return Watched(path, "ios-signalstate-ev", "lvalue", lambda: values.get(name, 0.0), signal_text)
    if parts[:3] == ("rw", "rapid", "symbol") and "RAPID" in parts:
        names = parts[parts.index("RAPID") + 1 :]
        found = symbol(cabinet, "/".join(names if cabinet.version == 1 else names[:-1]))  # without "data"
        if found.cell.kind != "PERS":
            sentence = f"{found.declaration.name} is no persistent, only these are watched"
            raise Refused(Condition.ARGUMENT, sentence)
        kind = "rap-data" if cabinet.version == 1 else "rap-value-ev"
        read = found.task.interpreter.read
        return Watched(path, kind, "value", lambda: copied(read(found.cell)), text_of)
    if parts[:2] == ("rw", "elog"):
        return WatchedLog(
            "/rw/elog/0", "elog-message-ev", "seqnum", lambda: controller.execution.events.count
        )
    if parts[:2] == ("rw", "dipc") and len(parts) == 3:
        queue = queue_at(cabinet, parts[2])
        return WatchedQueue(
            path, "dipc-msg-ev", "dipc-data", lambda: [queue.popleft() for _ in range(len(queue))]
        )
    raise Refused(Condition.NO_ADDRESS, f"{path} cannot be watched")


PROTOCOLS = {1: "robapi2_subscription", 2: "rws_subscription"}
"""Names of the protocol by the version."""

PING = 10.0
"""Time in [s] after which a ping is sent; C++ clients give up after 40 s without a frame."""

LISTEN = 0.02
"""Time between two looks at what the client sends, in [s]; events go out at once."""


def serve_events(
    connection: socket.socket,
    path: str,
    headers: list[tuple[str, str]],
    subscription: Subscription,
    version: int,
) -> None:
    """Answer an upgrade, and send the events of a subscription until the client or the subscription ends.

    Args:
        connection: connection of the client; one thread reads and writes it, as TLS needs.
        path: path of its request.
        headers: headers of its request.
        subscription: the subscription.
        version: version of the services.
    """
    protocol = ServerProtocol(subprotocols=[PROTOCOLS[version]], max_size=2**16)  # type: ignore[list-item]
    protocol.receive_data(Upgrade(path, Headers(headers)).serialize())
    for request in protocol.events_received():
        assert isinstance(request, Upgrade)
        protocol.send_response(protocol.accept(request))
    connection.sendall(b"".join(protocol.data_to_send()))
    heard = sent = time.monotonic()
    with suppress(OSError):  # the client is gone, or takes nothing
        while protocol.state is State.OPEN and time.monotonic() - heard < 3 * PING:
            try:
                event = subscription.events.get(timeout=LISTEN)
                protocol.send_close(1000) if event is None else protocol.send_text(event)
            except Empty:
                if time.monotonic() - sent > PING:
                    protocol.send_ping(b"")
            if select.select([connection], [], [], 0)[0]:
                heard = time.monotonic()
                connection.settimeout(LISTEN)
                with suppress(TimeoutError):  # a part of TLS that has no data
                    _receive(protocol, connection.recv(2**16), version)
            if data := b"".join(protocol.data_to_send()):
                connection.settimeout(PING)
                connection.sendall(data)
                sent = time.monotonic()
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _receive(protocol: ServerProtocol, data: bytes, version: int) -> None:
    """Take what a client sent; version 2.0 answers the text PING."""
    if not data:
        raise ConnectionError("the client is gone")
    protocol.receive_data(data)
    for frame in protocol.events_received():
        is_ping = isinstance(frame, Frame) and frame.opcode is Opcode.TEXT and frame.data == b"PING"
        if is_ping and version == 2 and protocol.state is State.OPEN:
            protocol.send_text(b"PONG")
