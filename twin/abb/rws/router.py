"""From a request to its service: the table of all routes, in both versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from twin.abb.rws import files, motion, panel, queues, rapid, signals, system
from twin.abb.rws.cabinet import Cabinet, Route
from twin.abb.rws.exchange import Answer, Condition, Refused, Request
from twin.base.errors import TwinError

ROUTES: tuple[Route, ...] = tuple(
    route for service in (panel, rapid, motion, signals, files, system, queues) for route in service.ROUTES
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
        cabinet.report_missing(request.method, path)
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
