"""Check the upper bounds of docs/agreement.md on a few states; `tests.support.agreement` uses all of them."""

import numpy as np
import pytest

import twin
from tests.support import agreement

COUNT = 12
BOUNDS = agreement.bounds(agreement.PAGE.read_text(encoding="utf-8"))


def quick(name):
    """Yield the comparisons that need neither newly compiled kernels nor a long motion."""
    robot = twin.load(name)
    q, qd, qdd, tau = agreement.states(robot, COUNT)
    yield from agreement.against_libraries(robot, q, qd, qdd, tau)
    if robot.loops:
        yield from agreement.against_loop_solvers(robot, q, qd, tau)
    if name == "irb140":
        yield from agreement.against_engine(robot, q, qd, qdd, tau, payloads=(None,))
    yield from agreement.inverse_kinematics(robot, 100)


@pytest.mark.parametrize("name", agreement.ROBOTS.values())
def test_no_error_exceeds_its_bound(name):
    rows = list(quick(name))
    assert len(rows) > 10
    for what, peer, error in rows:
        assert error <= BOUNDS[name, what, peer], (what, peer)


def test_relative_gravity_error_of_1e_12_exceeds_the_bounds(monkeypatch, capsys):
    exact = twin.gravity_torque
    monkeypatch.setattr(twin, "gravity_torque", lambda robot, q: exact(robot, q) * (1 + 1e-12))
    robot = twin.load("irb140")
    parts = agreement.against_libraries(robot, *agreement.states(robot, COUNT))
    rows = {(what, peer): error for what, peer, error in parts}
    exceeded = [what for (what, peer), error in rows.items() if error > BOUNDS["irb140", what, peer]]
    assert set(exceeded) == {"gravity torque", "C qd + g"}


def test_command_returns_1_if_an_error_exceeds_its_bound_or_has_no_bound(monkeypatch, capsys):
    for rows, status in (
        ([("mass matrix", "Pinocchio", 1e-16)], 0),
        ([("mass matrix", "Pinocchio", 1e-14)], 1),
        ([("mass matrix", "Pinocchio", np.nan)], 1),
        ([("a quantity", "Pinocchio", 0.0)], 1),
    ):
        monkeypatch.setattr(agreement, "measured", lambda name, rows=rows: iter(rows))
        assert agreement.main() == status
    assert "| irb1600 | a quantity | Pinocchio | 0.0e+00 | None |" in capsys.readouterr().out
