"""Server of Robot Web Services: HTTP/1.1 with a thread for each connection, and the table of all routes.

A thread of a connection reads a request, lets the controller answer it between the turns of its tasks, and
writes the answer: no data of the controller is touched elsewhere, and a slow client waits alone.
"""

from __future__ import annotations

import re
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from twin.abb.rws import motion, panel, rapid, system
from twin.abb.rws.authentication import Session, Sessions
from twin.abb.rws.cabinet import Cabinet, Route
from twin.abb.rws.exchange import (
    Answer,
    Condition,
    Refused,
    Request,
    answer_json,
    answer_xml,
    page_xml,
    pairs,
    refusal,
    segments,
)  # fmt: skip
from twin.abb.rws.subscriptions import Subscriptions, serve_events
from twin.base.errors import TwinError

ROUTES: tuple[Route, ...] = tuple(
    route for service in (panel, rapid, motion, system) for route in service.ROUTES
)

SERVICES = re.compile(
    "(ctrl|uas|users)/.+|rw/(cfg|controlstation|devices|dipc|elog|iosystem|mastership|motionsystem|panel|"
    "rapid|retcode|safety|system|vision)(/.*)?"
)
"""Paths of the services that a controller has."""


@lru_cache
def _table(version: int) -> tuple[tuple[re.Pattern[str], Route], ...]:
    """Return the routes of a version with the patterns of their paths."""
    found = []
    for route in ROUTES:
        path = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path_of(version))
        path = re.sub(r"\{(\w+)\.\.\.\}", r"(?P<\1>.+?)", path)
        found.append((re.compile(path, re.IGNORECASE if "cfg" in path else 0), route))
    return tuple(found)


def _matching(version: int, path: str) -> Iterator[tuple[Route, dict[str, str]]]:
    for pattern, route in _table(version):
        if found := pattern.fullmatch(path):
            yield route, found.groupdict()


def serve(cabinet: Cabinet, request: Request) -> Answer:
    """Return the answer of the service that a request is for.

    Raises:
        Refused: there is no such resource or action, or the service refuses it.
    """
    version, path = cabinet.version, "/".join(request.path)
    known = list(_matching(version, path))
    if not known and SERVICES.fullmatch(path) and not any(_matching(3 - version, path)):
        cabinet.say_once(f"{request.method} /{path} is not simulated: status 501")
        raise Refused(Condition.NOT_SIMULATED, f"/{path} is not simulated")
    if not known:
        raise Refused(Condition.NO_RESOURCE, f"there is no resource /{path}")
    routes = [one for one in known if one[0].method == request.method]
    if not routes:
        methods = ", ".join(sorted({route.method for route, _ in known}))
        raise Refused(Condition.ARGUMENT, f"/{path} takes {methods}", 405)
    action = request.query.get("action", "")
    if version == 1 and request.method == "POST":
        given = [one for one in routes if one[0].action == action]
        if not given:
            actions = ", ".join(route.action for route, _ in routes if route.action) or "none"
            raise Refused(Condition.ARGUMENT, f"/{path}: expected the action {actions}, got {action!r}")
        routes = given
    route, request.part = routes[0]
    try:
        if route.waits:
            return route.run(cabinet, request)
        return cabinet.call(lambda: route.run(cabinet, request))
    except TwinError as error:  # no cycle began
        raise Refused(Condition.NO_ADDRESS, str(error), 503) from None


MOST_BODY = 64 * 2**20
"""Largest body of a request, in [byte]."""

MOST_CONNECTIONS = 256
SILENCE = 60.0
"""Time in [s] after which a connection without a request, or within one, is closed."""

DRAINING = 5.0
"""Longest time in [s] in which a body that is too large is read, so that its client then reads why."""

JSON = {1: "application/json", 2: "application/hal+json;v=2.0"}
XML = {1: "application/xhtml+xml", 2: "application/xhtml+xml;v=2.0"}
METHODS = "GET", "POST", "PUT", "DELETE"
HOST = re.compile(r"[\w.\[\]:-]{1,255}", re.ASCII)
FORM = "application/x-www-form-urlencoded;v=2.0"
CONTENT = "text/plain;v=2.0", "application/octet-stream;v=2.0"


class RobotWebServices:
    """Robot Web Services of a virtual controller, from its creation until it is closed.

    Attributes:
        cabinet: the controller and what its services share.
        port: local port.

    Args:
        cabinet: the controller; its version chooses that of the services.
        address: local address and port; port 0 is a free one.
        tls: context for TLS, which version 2.0 needs; None without it.

    Raises:
        OSError: the address cannot be used.
    """

    def __init__(self, cabinet: Cabinet, address: tuple[str, int], tls: ssl.SSLContext | None = None) -> None:
        self.cabinet = cabinet
        self.sessions = Sessions(cabinet.version, cabinet.strict)
        cabinet.lives = self.sessions.lives
        self.subscriptions = Subscriptions(cabinet, self.sessions.lives)
        self.tls, self.connections = tls, set[socket.socket]()
        self.lock = threading.Lock()
        try:
            self._server = _Server(address, self)
        except BaseException:
            self.subscriptions.close()
            raise
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="rws", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Address for clients on this machine."""
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Close all connections, and end."""
        self._server.shutdown()
        self._server.server_close()
        self.subscriptions.close()
        if self.cabinet.turning_on is not None:
            self.cabinet.turning_on.cancel()
        with self.lock:
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> RobotWebServices:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = sys.platform != "win32"  # there it would share the port
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], services: RobotWebServices) -> None:
        self.services = services
        super().__init__(address, _Handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return len(self.services.connections) < MOST_CONNECTIONS

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Forget connections that broke; other mistakes are ours, and printed."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Requests of one connection, one after the other."""

    protocol_version = "HTTP/1.1"
    timeout = SILENCE
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        self.services = self.server.services
        if self.services.tls is not None:  # here, so that a slow client delays nobody
            self.request.settimeout(SILENCE)
            self.request = self.services.tls.wrap_socket(self.request, server_side=True)
        with self.services.lock:
            self.services.connections.add(self.request)
        super().setup()

    def finish(self) -> None:
        with self.services.lock:
            self.services.connections.discard(self.request)
        with suppress(OSError):
            super().finish()
            self.request.close()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: the lines of a session are those of its programs."""

    def do_GET(self) -> None:
        """Answer a request of any method."""
        self.cabinet, self.cookies, self.unread = self.services.cabinet, [], 0
        scheme = "http" if self.services.tls is None else "https"
        host = self.headers.get("Host", "")
        known = host if HOST.fullmatch(host) else f"127.0.0.1:{self.services.port}"
        self.address = f"{scheme}://{known}"
        target = urlsplit(self.path)
        self.query = dict(pairs(target.query))
        version = self.cabinet.version
        accepted = self.headers.get("Accept", "*/*").replace(" ", "")
        self.as_json = self.query.get("json") == "1" if version == 1 else JSON[2] in accepted
        try:
            self.unread = self._size()
            self._check_origin()
            path, session, body = segments(target.path), self._session(), self._body()
            if version == 2:
                self._check_media(path, accepted)
            self._serve(path, session, body)
        except Refused as refused:
            self._drain()
            content = refusal(refused, self.address, self.as_json, version)
            self._send(refused.status(version), content, self._media())

    do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_GET

    # ------------------------------------------------------------------------------------------- request

    def _size(self) -> int:
        """Return the size of the body.

        Raises:
            Refused: it is unknown.
        """
        text = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not (text.isascii() and text.isdigit()):
            self.close_connection = True
            raise Refused(Condition.ARGUMENT, "expected a Content-Length", 411)
        return int(text)

    def _check_origin(self) -> None:
        """Raise `Refused` for other methods, and for changes that a page of another host asks for."""
        if self.command not in METHODS:
            raise Refused(Condition.ARGUMENT, f"expected {', '.join(METHODS)}, got {self.command}", 405)
        origin = self.headers.get("Origin")
        if self.command != "GET" and origin and urlsplit(origin).netloc != self.headers.get("Host"):
            raise Refused(Condition.REJECTED, f"a page of {origin} cannot change this controller")

    def _body(self) -> bytes:
        """Return the body, whose size is checked before it is read."""
        if self.unread > MOST_BODY:
            raise Refused(Condition.ARGUMENT, f"a body of {self.unread} bytes, the limit is {MOST_BODY}", 413)
        body = self.rfile.read(self.unread)
        if len(body) < self.unread:
            raise ConnectionError("the client is gone")
        self.unread = 0
        return body

    def _drain(self) -> None:
        """Read a body without keeping it, or the next request would begin with it; for a time at most."""
        end = time.monotonic() + DRAINING
        self.close_connection |= self.unread > MOST_BODY
        while self.unread > 0 and (part := self.rfile.read(min(self.unread, 2**16))):
            self.unread -= len(part)
            if time.monotonic() > end:
                self.close_connection = True
                return

    def _session(self) -> Session:
        """Return the session of the request: that of its cookies, or a new one for the right password.

        Raises:
            Refused: the password is wrong or missing, or there are too many sessions.
        """
        sessions = self.services.sessions
        session = sessions.of_cookies(self.headers.get("Cookie", ""))
        if session is None:
            if not sessions.is_right(self.headers.get("Authorization", ""), self.command):
                self.challenge = sessions.challenge()
                raise Refused(Condition.REJECTED, "expected the name and the password of a user", 401)
            session = sessions.begin()
            named = {"-http-session-": session.name, "ABBCX": session.number}
            self.cookies = [f"{name}={value}; path=/; httponly" for name, value in named.items()]
        return session

    def _check_media(self, path: tuple[str, ...], accepted: str) -> None:
        """Raise `Refused` for types of version 2.0 that are not those of a controller (public notes)."""
        if path[:1] not in (("fileservice",), ("poll",)) and not (JSON[2] in accepted or XML[2] in accepted):
            raise Refused(Condition.ARGUMENT, f"Accept: expected {JSON[2]} or {XML[2]}", 406)
        given = self.headers.get("Content-Type", "").replace(" ", "")
        is_file = self.command == "PUT" and path[:1] == ("fileservice",)
        expected = {"POST": (FORM,), "PUT": CONTENT if is_file else (FORM,)}.get(self.command)
        if expected and given not in expected:
            raise Refused(Condition.ARGUMENT, f"Content-Type: expected {' or '.join(expected)}", 415)

    # -------------------------------------------------------------------------------------------- answer

    def _serve(self, path: tuple[str, ...], session: Session, body: bytes) -> None:
        has_form = self.command == "POST" or path[:1] == ("subscription",)
        form = pairs(body.decode("utf-8", "replace")) if has_form else ()
        request = Request(self.command, path, self.query, form, body, session.name, self.address)
        if path[:1] == ("poll",) and len(path) == 2:
            self._serve_events(path[1], session)
        elif path == ("logout",):
            self.services.sessions.end(session)
            self.services.subscriptions.remove_of(lambda one: one == session.name)
            self._answer(Answer())
        elif path[:1] == ("subscription",):
            self._subscription(request)
        else:
            self._answer(serve(self.cabinet, request))

    def _subscription(self, request: Request) -> None:
        subscriptions = self.services.subscriptions
        if request.method == "POST" and len(request.path) == 1:
            new = subscriptions.add(request.session, request.form)
            link = f"{self.address.replace('http', 'ws', 1)}/poll/{new.number}"
            # one client looks for the address in XML even where it asks for JSON
            links = {"self": link, "group": f"subscription/{new.number}"}
            xml = page_xml("<ul></ul>", "state", self.address, **links)
            self._send(201, xml, XML[self.cabinet.version], {"Location": link})
        elif request.method in ("DELETE", "PUT") and len(request.path) == 2:
            one = subscriptions.find(request.path[1], request.session)
            if request.method == "PUT":
                subscriptions.extend(one, request.form)
            else:
                subscriptions.remove(one)
            self._answer(Answer())
        else:
            raise Refused(Condition.ARGUMENT, "expected POST, or PUT or DELETE /subscription/NUMBER", 405)

    def _serve_events(self, number: str, session: Session) -> None:
        subscription = self.services.subscriptions.find(number, session.name)
        self.close_connection = True
        session.sockets += 1
        subscription.is_open = True
        try:
            serve_events(self.request, self.path, self.headers.items(), subscription, self.cabinet.version)
        finally:
            session.sockets -= 1
            subscription.is_open = False

    def _media(self) -> str:
        return (JSON if self.as_json else XML)[self.cabinet.version]

    def _answer(self, answer: Answer) -> None:
        version = self.cabinet.version
        if answer.content is not None or answer.status == 204:
            self._send(answer.status, answer.content or b"", "application/octet-stream", answer.headers)
            return
        if version == 2 and answer.page:
            answer = self._page(answer)
        write = answer_json if self.as_json else answer_xml
        self._send(answer.status, write(answer, self.address, version), self._media(), answer.headers)

    def _page(self, answer: Answer) -> Answer:
        """Return a page of a list, with the address of the next one."""
        start = self._number("start", 0)
        limit = min(max(self._number("limit", answer.page), 1), answer.page)
        items, rest = answer.items[start : start + limit], len(answer.items) > start + limit
        path = urlsplit(self.path).path.lstrip("/")
        following = f"{path.rpartition('/')[2]}?start={start + limit}&limit={limit}" if rest else ""
        return Answer(items, answer.status, None, answer.headers, page=limit, following=following)

    def _number(self, name: str, default: int) -> int:
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else default

    def _send(self, status: int, content: bytes, media: str, headers: Any = {}) -> None:  # noqa: B006
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Date: {self.date_time_string()}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"Set-Cookie: {cookie}" for cookie in self.cookies]
        if status == 401:
            lines.append(f"WWW-Authenticate: {self.challenge}")
        if status != 204:
            lines += [f"Content-Type: {media}", f"Content-Length: {len(content)}"]
        lines.append(f"Connection: {'close' if self.close_connection else 'keep-alive'}")
        body = b"" if self.command == "HEAD" else content
        self.wfile.write("\r\n".join((*lines, "", "")).encode("latin-1", "replace") + body)
