"""Queues of messages between clients, and to and from the tasks."""

from __future__ import annotations

from twin.abb.rws.cabinet import Route

ROUTES: tuple[Route, ...] = ()
