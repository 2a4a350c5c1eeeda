"""Requests and answers of Robot Web Services, in the representations of both versions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from typing import Any, NamedTuple
from urllib.parse import unquote


def _both(status: int, code: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (status, code), (status, code)


class Condition(Enum):
    """Reason to refuse a request: HTTP status and code in version 1.0, then in version 2.0.

    Those of the second group were recorded by the client abb-rws-client from virtual controllers of RobotWare
    6.16 and 7.21; those of the first are from public notes on controllers, with statuses of ABB's reference.
    Not recorded, and taken from the other version: MASTERSHIP_MISSING in 1.0; ARGUMENT, NO_RESOURCE,
    NO_FILE_TO_LOAD in 2.0, where NO_MODULE_TO_UNLOAD is that of a read.
    """

    MODE_REJECTED = _both(403, -1073445860)
    EXISTS = _both(409, -1073445836)
    NO_POINTER = _both(400, -1073442783)
    NOT_SIMULATED_INPUT = _both(400, -1073438206)
    FOLLOWS_ANOTHER = _both(400, -1073438205)
    SYNTAX = _both(400, -1073442803)
    NOT_SIMULATED = _both(501, -1073414146)

    MASTERSHIP_MISSING = _both(403, -1073445859)
    HELD = _both(403, -1073445862)
    REJECTED = _both(403, -1073445881)
    ARGUMENT = _both(400, -1073445879)
    EXECUTION = (400, -1073442809), (403, -1073445862)
    NO_ADDRESS = _both(404, -1073445866)
    NO_RESOURCE = _both(404, -1073414146)
    NO_SYMBOL = (400, -1073414146), (404, -1073442816)
    NO_MODULE = (404, -1073414146), (400, -1073442813)
    NO_MODULE_TO_UNLOAD = (400, -1073442816), (400, -1073442813)
    NO_FILE_TO_LOAD = _both(400, -1073438708)
    NO_FILE = (404, -1073414146), (404, -1073438713)
    NO_VOLUME = (404, -1073414146), (400, -1073438716)


CODES = {
    -1073414146: "FAIL", -1073438205: "IO_CROSS_RESULTANT", -1073438206: "IO_UNBLOCKED_INSIGNAL",
    -1073438708: "FILE_NOT_FOUND", -1073438713: "DIR_NOT_EXIST", -1073438716: "INVALID_PATH",
    -1073442783: "NO_PP", -1073442803: "RAPID_SYNTAX_ERROR", -1073442809: "EXEC_STATE",
    -1073442813: "MOD_AMBNAME", -1073442816: "NO_SUCH_SYMBOL", -1073445836: "ALREADY_EXISTS",
    -1073445859: "MASTER_REJECT", -1073445860: "MODE_REJECT", -1073445862: "RESOURCE_HELD",
    -1073445866: "UNRESOLVED_URL", -1073445879: "INVALIDARG", -1073445881: "REJECT",
}  # fmt: skip
"""Names of the codes of all conditions, without their beginning SYS_CTRL_E_ (ABB's reference)."""

NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML cannot have."""


class Refused(Exception):
    """Request that is refused.

    Args:
        condition: the reason.
        sentence: what was wrong.
        status: HTTP status, by default that of the reason.
    """

    def __init__(self, condition: Condition, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.condition, self._status = condition, status

    def status(self, version: int) -> int:
        """Return the HTTP status in a version."""
        return self._status or self.condition.value[version - 1][0]

    def code(self, version: int) -> int:
        """Return the code in a version."""
        return self.condition.value[version - 1][1]


@dataclass
class Request:
    """Request to a service.

    Attributes:
        method: HTTP method.
        path: segments of the path, decoded, without empty ones.
        query: values of the query by their names.
        form: pairs of the body in order; empty for the body of a file.
        body: the body.
        session: identity of the session, "" before there is one.
        address: address of the server, as the client names it.
        part: parts of the path by the names in the route.
    """

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str]
    form: Sequence[tuple[str, str]] = ()
    body: bytes = b""
    session: str = ""
    address: str = ""
    part: Mapping[str, str] = field(default_factory=dict)

    def given(self, name: str, default: str | None = None) -> str:
        """Return a value of the body.

        Raises:
            Refused: there is none, and no default.
        """
        found = dict(self.form).get(name, default)
        if found is None:
            raise Refused(Condition.ARGUMENT, f"the body lacks {name}")
        return found


class Item(NamedTuple):
    """Resource or part of a list: its class, its title, and texts or further items by their names.

    An item of JSON has no class where it is "".
    """

    kind: str
    title: str = ""
    fields: Mapping[str, str | Sequence[Item]] = {}


@dataclass
class Answer:
    """Answer of a service.

    Attributes:
        items: resources.
        status: HTTP status.
        content: bytes of a file in place of resources.
        headers: further headers.
        link: address of the resource itself.
        page: largest number of items of a page in version 2.0; 0 for one resource.
        following: address of the next page, "" on the last one.
    """

    items: Sequence[Item] = ()
    status: int = 200
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    link: str = ""
    page: int = 0
    following: str = ""


DONE = Answer(status=204)
"""Answer to a command."""


# -------------------------------------------------------------------------------------------- reading


def segments(path: str) -> tuple[str, ...]:
    """Return the segments of a path, decoded; what names a part of a resource behind `;` is cut off."""
    parts = [unquote(one) for one in path.split("/") if one]
    if parts and parts[0] in ("http:", "https:"):  # one client puts a whole address behind its own
        parts = parts[2:]
    if parts:
        parts[-1] = re.sub(
            r";(value|state|lvalue|ctrl(exec)?state|opmode|speedratio|coldetstate)$", "", parts[-1]
        )
    return tuple(parts)


def pairs(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a form.

    C++ clients do not encode a body, so that a plus of `9E+9` is one.  Python's encode all: there it is a
    blank, which shows by other characters that are encoded.
    """
    found = []
    for one in text.split("&"):
        name, sign, value = one.partition("=")
        if name or sign:
            value = value.replace("+", " ") if re.search("%[0-9A-Fa-f]{2}", value) else value
            found.append((unquote(name), unquote(value)))
    return found


# -------------------------------------------------------------------------------------------- writing


def _text(value: str) -> str:
    return escape(NO_TEXT.sub("?", value))


def item_xml(item: Item) -> str:
    """Return an item as an element `li`."""
    parts = [f'<li class="{_text(item.kind)}" title="{_text(item.title)}">']
    for name, value in item.fields.items():
        if isinstance(value, str):
            parts.append(f'<span class="{_text(name.lstrip("_"))}">{_text(value)}</span>')
        else:
            parts += [item_xml(one) for one in value if one.kind]
    return "".join((*parts, "</li>"))


def page_xml(body: str, kind: str, address: str, **links: str) -> bytes:
    """Return a page with a body in XML, in ASCII."""
    listed = "".join(f'<a href="{_text(href)}" rel="{rel}"></a>' for rel, href in links.items() if href)
    return (
        '<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head>'
        f'<title>rws</title><base href="{_text(address)}/"/></head>'
        f'<body><div class="{kind}">{listed}{body}</div></body></html>'
    ).encode("ascii", "xmlcharrefreplace")


def answer_xml(answer: Answer, address: str, version: int) -> bytes:
    """Return an answer in XML."""
    body = "".join(item_xml(one) for one in answer.items)
    return page_xml(f"<ul>{body}</ul>", "state", address, self=answer.link, next=answer.following)


def item_json(item: Item) -> dict[str, Any]:
    """Return an item as an object of JSON."""
    named = {"_type": item.kind, "_title": item.title} if item.kind else {}
    return named | {
        name: value if isinstance(value, str) else [item_json(one) for one in value]
        for name, value in item.fields.items()
    }


def answer_json(answer: Answer, address: str, version: int) -> bytes:
    """Return an answer in JSON."""
    states, links = [item_json(one) for one in answer.items], {"base": {"href": f"{address}/"}}
    if answer.link:
        links["self"] = {"href": answer.link}
    if version == 1:
        return json.dumps({"_links": links, "_embedded": {"_state": states}}).encode()
    whole: dict[str, Any] = {"_links": links}
    if answer.page:
        if answer.following:
            links["next"] = {"href": answer.following}
        whole["_embedded"] = {"resources": states}
    else:
        whole["state"] = states
    return json.dumps(whole).encode()


def refusal(refused: Refused, address: str, as_json: bool, version: int) -> bytes:
    """Return the body of a refusal."""
    code, sentence = refused.code(version), str(refused)
    if not as_json:
        spans = f'<span class="code">{code}</span><span class="msg">{_text(sentence)}</span>'
        return page_xml(spans, "status", address)
    status: dict[str, Any] = {"status": {"code": code, "msg": sentence}}
    return json.dumps(status if version == 2 else {"_embedded": status}).encode()
