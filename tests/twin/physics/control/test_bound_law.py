"""Compiled laws in a closed loop: equal to Python laws, with copies of all but the memory."""

import copy

import numpy as np
import pytest

import controllers
import twin
from twin.base.errors import ControllerError
from twin.physics.control.closed_loop import run_closed_loop
from twin.physics.control.control_law import ControlLaw, bound, compiled_law
from twin.physics.control.plant import AnalyticPlant
from twin.physics.robot.drives.sensors import Sensors


@compiled_law
def longer(state, reference, parameters, memory, model):
    return np.zeros(len(state.q) + 1)


def spring(state, reference, parameters, memory, model):
    return 2.0 * (reference.q - state.q) - 0.5 * state.qd + 0.1 * state.tau + state.table[0]


@compiled_law
def writing(state, reference, parameters, memory, model):
    tau = 2.0 * (reference.q - state.q) - 0.5 * state.qd + 0.1 * state.tau + state.table[0]
    state.q[:], state.qd[:], state.tau[:], state.table[:] = 1.0, 2.0, 3.0, 4.0
    reference.q[:], parameters[:] = 5.0, 6.0
    return tau


class Prepared(ControlLaw):
    """Law with a table that differs at each sample."""

    def prepare(self, reference):
        return 0.01 * np.sin(np.arange(reference.q.size)).reshape(len(reference.t), 1, -1)


class InPython(ControlLaw):
    """Law whose call is its class's."""

    def __call__(self, state, reference):
        return super().__call__(state, reference)


@pytest.fixture(scope="module")
def reference(irb140):
    return twin.sample(twin.quintic(irb140.poses["zero"], irb140.poses["zero"] + 0.2, 0.1), 1e-3)


def python_twin(law):
    """Return a copy of a controller that the closed loop calls from Python."""
    other = copy.copy(law)
    other.__dict__["bound"] = None
    return other


@pytest.mark.parametrize("name", ["pd_gravity", "pid", "computed_torque", "cascade", "adaptive", "dob"])
@pytest.mark.parametrize("sensors", [None, Sensors(noise=1e-5, delay=1)], ids=["exact", "sensors"])
def test_logs_are_those_of_the_python_law_to_the_bit(irb140, reference, name, sensors):
    robot = irb140.with_drives("rigid")
    law = controllers.make(name, robot)
    assert law.bound is not None
    logs = [
        run_closed_loop(AnalyticPlant(robot), one, reference, sensors=sensors)
        for one in (law, python_twin(law))
    ]
    for signal in ("q", "qd", "tau", "tau_demand"):
        np.testing.assert_array_equal(*(getattr(log, signal) for log in logs), err_msg=signal)
    for one in logs[0].law_signals:
        np.testing.assert_array_equal(*(log.law_signals[one] for log in logs), err_msg=one)


def test_a_law_that_writes_to_its_arguments_changes_neither_robot_nor_log(irb140, reference):
    robot = irb140.with_drives("rigid")
    laws = [Prepared(robot, law, [7.0]) for law in (writing, spring)]
    assert laws[0].bound is not laws[1].bound is None
    logs = [run_closed_loop(AnalyticPlant(robot), law, reference) for law in laws]
    np.testing.assert_array_equal(logs[0].tau, logs[1].tau)
    np.testing.assert_array_equal(logs[0].q_ref, reference.q)
    np.testing.assert_array_equal(laws[0].parameters, 7.0)


def test_a_law_of_another_length_is_an_error(irb140, reference):
    with pytest.raises(ControllerError, match="controller 'longer' did not return 6 numbers"):
        run_closed_loop(AnalyticPlant(irb140), ControlLaw(irb140, longer), reference)


def test_what_is_not_marked_or_overrides_the_call_runs_in_python(irb140):
    law = controllers.make("pid", irb140)
    assert law.bound is law.bound is not None
    assert bound(ControlLaw(irb140, lambda state, reference, parameters, memory, model: state.q)) is None
    assert bound(InPython(irb140, law.law, law.parameters, memory=1)) is None
    assert "bound" not in vars(copy.copy(law))
