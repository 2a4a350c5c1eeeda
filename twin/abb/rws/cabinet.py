"""State that the services of one controller share: the controller, its settings, queues and mastership."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from twin.abb.rws.exchange import Answer, Condition, Item, Refused, Request
from twin.base.errors import RapidError

if TYPE_CHECKING:
    from twin.abb.controller.controller import VirtualController
    from twin.abb.controller.tasks import Task

T = TypeVar("T")

PATIENCE = 5.0
"""Time in [s] in which a cycle must answer; C++ clients give up after 0.4 s to 1 s, others wait."""

MOST_SAID = 1000
"""Largest number of sentences of the services in the session's lines."""

DOMAINS = "edit", "cfg", "motion", "rapid"
"""Domains of mastership: `edit` and `motion` in version 2.0, the others in version 1.0."""


@dataclass
class Cabinet:
    """Controller behind the services.

    Attributes:
        controller: the virtual controller.
        home: folder that stands for HOME:, RAMDISK: and TEMP:.
        version: 1 for RobotWare 6, 2 for OmniCore.
        strict: whether motors are on a second after they are asked for, as those of a controller.
        name: name of the system.
        masters: identities of the sessions that have mastership, by the domains.
        lives: function that returns whether a session lives, by its identity.
        turning_on: timer of motors that will be on soon.
        simulated: whether signals are simulated, by their names in lower case, as clients have set them.
        said: sentences of the services in the session's lines.
    """

    controller: VirtualController
    home: Path
    version: int = 1
    strict: bool = False
    name: str = "irb-twin"
    masters: dict[str, str] = field(default_factory=dict)
    lives: Callable[[str], bool] = lambda session: True
    turning_on: threading.Timer | None = None
    simulated: dict[str, bool] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)

    def say_once(self, sentence: str) -> None:
        """Report once what a client should know."""
        if sentence not in self.said and len(self.said) < MOST_SAID:
            self.said.add(sentence)
            self.controller.execution.report("rws", sentence)

    def call(self, function: Callable[[], T]) -> T:
        """Return the result of a function that is called between the turns of the tasks.

        Raises:
            Refused: the controller refuses it.
        """
        try:
            return self.controller.call(function, PATIENCE)
        except RapidError as error:
            raise Refused(Condition.EXECUTION, str(error)) from None

    def task(self, name: str, otherwise: Condition = Condition.NO_ADDRESS) -> Task:
        """Return the task of a name.

        Raises:
            Refused: there is none.
        """
        found = self.controller.tasks.get(name.lower())
        if found is None:
            known = ", ".join(one.settings.name for one in self.controller.tasks.values())
            raise Refused(otherwise, f"there is no task {name}, expected {known}")
        return found

    def master(self, domain: str) -> str | None:
        """Return the session that has the mastership of a domain, None if none has, or if it has ended."""
        found = self.masters.get(domain)
        return found if found is not None and self.lives(found) else None

    def check_master(self, request: Request, domain: str = "edit") -> None:
        """Raise `Refused` if a command needs mastership that the session lacks, or manual mode forbids it.

        Version 1.0 takes it implicitly where nobody else has it.
        """
        domain = domain if self.version == 2 else {"edit": "rapid"}.get(domain, domain)
        master = self.master(domain)
        if master is not None and master != request.session:
            raise Refused(Condition.HELD, f"another session has the mastership of {domain}")
        if self.version == 2 and master is None and request.query.get("mastership") != "implicit":
            raise Refused(Condition.MASTERSHIP_MISSING, f"the command needs the mastership of {domain}")

    def check_automatic(self) -> None:
        """Raise `Refused` in manual mode, where starting needs the pendant."""
        if self.controller.execution.mode != "AUTO":
            raise Refused(Condition.MODE_REJECTED, "the command needs automatic mode")


class Route(NamedTuple):
    """Way from a request to a function of a service.

    Attributes:
        method: HTTP method.
        path: path in version 1.0; `{name}` stands for a segment, `{name...}` for one or more.
        run: function of the service.
        action: action in the query of version 1.0.
        path_2: path in version 2.0; by default that of version 1.0 with the action at its end.
        waits: whether `run` asks for cycles itself; otherwise it is called between the turns of the tasks.
    """

    method: str
    path: str
    run: Callable[[Cabinet, Request], Answer]
    action: str = ""
    path_2: str = ""
    waits: bool = False

    def path_of(self, version: int) -> str:
        """Return the path in a version."""
        if version == 1:
            return self.path
        return self.path_2 or (f"{self.path}/{self.action}" if self.action else self.path)


NONE = "/"
"""Path of a resource in the version that lacks it: no request has it."""

Fields = Mapping[str, str]
Read = Callable[[Cabinet, Request], Fields]
ReadList = Callable[[Cabinet, Request], Mapping[str, Fields]]


def shown(path: str, kind: str, fields: Read, kind_2: str = "", path_2: str = "") -> Route:
    """Return the route of a resource that is one item, with its class in version 1.0 and in 2.0."""
    title = (path_2 if path == NONE else path).rpartition("/")[2]

    def run(cabinet: Cabinet, request: Request) -> Answer:
        return Answer([Item((kind, kind_2 or kind)[cabinet.version - 1], title, fields(cabinet, request))])

    return Route("GET", path, run, path_2=path_2)


def listed(path: str, kind: str, items: ReadList, path_2: str = "") -> Route:
    """Return the route of a list, whose items are given by their titles."""

    def run(cabinet: Cabinet, request: Request) -> Answer:
        return Answer([Item(kind, title, one) for title, one in items(cabinet, request).items()], page=100)

    return Route("GET", path, run, path_2=path_2)
