"""Controllers that prepare a table for the whole reference, start with a given memory, and record signals."""

import copy

import numpy as np
import pytest

import controllers
import twin
from scenarios.bench.watched import ChosenLaw
from scenarios.judging.following import LawPerLoad
from scenarios.setup import Setup
from tests.support.refusals import refused
from twin import AnalyticPlant, run_closed_loop, run_rollouts

ARM = twin.load("irb140")
PATH = twin.sample_semi_implicit(twin.quintic(np.zeros(6), np.full(6, 0.002), 0.05), 1e-3)


def foreseeing(state, reference, parameters, memory, model):
    """Apply the torque of the table, and count the calls in the memory."""
    for i in range(len(state.q)):
        memory[0, i] += 1.0
    return state.table[0] + parameters[0] * (reference.q - state.q)


class Foreseeing(twin.ControlLaw):
    """Feed-forward of the torque that the reference requires at the sample `ahead`."""

    def __init__(self, robot, ahead=0, gain=50.0):
        start = np.full((1, robot.n), 100.0)
        super().__init__(robot, foreseeing, [gain], memory=start, signals={"calls": 0})
        self.ahead = ahead

    def prepare(self, reference):
        tau = twin.inverse_dynamics(self.robot, reference.q, reference.qd, reference.qdd)
        return np.roll(tau, -self.ahead, axis=0)[:, None]


def run(law, reference=PATH):
    return run_closed_loop(AnalyticPlant(ARM), law, reference)


def test_table_of_the_reference_drives_an_exact_model_along_it():
    log = run(Foreseeing(ARM, gain=0.0))
    assert np.max(np.abs(log.q - log.q_ref)) < 1e-13
    assert np.max(np.abs(run(Foreseeing(ARM, ahead=3, gain=0.0)).q - log.q_ref)) > 1e-7


def test_memory_starts_at_the_given_values_and_is_recorded():
    law = Foreseeing(ARM)
    for _ in range(2):  # reset returns to the start
        log = run(law)
        np.testing.assert_array_equal(log.law_signals["calls"][:, 0], 101.0 + np.arange(len(PATH.t)))
    worn = copy.copy(law)
    law.reset()
    assert worn.memory[0, 0] == 100.0 + len(PATH.t)
    assert law.memory[0, 0] == 100.0


def test_rollouts_prepare_tables_and_record_signals_like_the_closed_loop():
    every = 7
    laws = [Foreseeing(ARM, ahead) for ahead in (0, 3, 9)]
    rollouts = run_rollouts(ARM, laws, PATH, every=every)
    for k, law in enumerate(laws):
        log = run(law)
        np.testing.assert_array_equal(rollouts.q[k], log.q[::every])
        np.testing.assert_array_equal(rollouts.law["calls"][k], log.law_signals["calls"][::every])
    plants = [ARM, ARM.with_payload(twin.Payload(1.0))]  # one controller, whose table all share
    shared = run_rollouts(plants, laws[1], PATH)
    np.testing.assert_array_equal(shared.q[0], run(laws[1]).q)


def test_signals_of_a_rollout_that_fails_end_where_it_fails():
    class Bad(Foreseeing):
        def prepare(self, reference):
            table = super().prepare(reference)
            table[20:] = 1e300 * 1e8
            return table

    runs = run_rollouts(ARM, Bad(ARM, gain=0.0), PATH, keep_failures=True)
    reached = runs.failures[0].samples if runs.failures else len(PATH.t)
    assert np.all(np.isfinite(runs.law["calls"][:reached]))
    assert np.all(np.isnan(runs.law["calls"][reached:]))


def test_other_tables_are_refused():
    for table, message in (
        (np.zeros((3, 1, 6)), r"expected what prepare\(\) of controller 'foreseeing' returns to be None or"),
        (np.zeros((51, 6)), r"shape \(51, rows, 6\), got \(51, 6\)"),
        (np.full((51, 1, 6), np.nan), "to be finite"),
        ("text", "what prepare"),
    ):
        law = Foreseeing(ARM)
        law.prepare = lambda reference, given=table: given  # type: ignore[method-assign]
        refused((lambda: run(law), message), (lambda: run_rollouts(ARM, law, PATH), message))  # noqa: B023


def test_controllers_without_a_table_receive_an_empty_one():
    seen = []

    def law(state, reference):
        seen.append(state.table.shape)
        return np.zeros(6)

    run(law)
    assert set(seen) == {(0, 6)}
    for name in ("pd", "pd_gravity", "pid", "cascade", "computed_torque", "dob"):
        assert controllers.make(name, ARM).prepare(PATH) is None  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"expected a memory of shape \(rows, 6\), got \(2, 5\)"):
        twin.ControlLaw(ARM, foreseeing, [1.0], memory=np.zeros((2, 5)))


def test_parts_of_a_run_are_not_prepared():
    law = Foreseeing(ARM)
    law.prepare = lambda reference: pytest.fail("prepared a part of a run")  # type: ignore[method-assign]
    plant = AnalyticPlant(ARM)
    plant.reset(PATH.q[0])
    with pytest.raises(IndexError):  # this law requires its table
        run_closed_loop(plant, law, PATH, part=True)


def test_controllers_that_stand_for_others_pass_their_tables():
    law = Foreseeing(ARM)
    alone = run(law)
    per_load = LawPerLoad([Foreseeing(ARM, 3), Foreseeing(ARM)], [0.0, 0.02])
    both = run(per_load)
    first, second = (one.prepare(PATH) for one in per_load.laws)
    np.testing.assert_array_equal(per_load.prepare(PATH), np.concatenate([first[:20], second[20:]]))
    assert np.any(both.q != alone.q)
    chosen = ChosenLaw(Setup(), lambda setup: Foreseeing(ARM))
    np.testing.assert_array_equal(run(chosen).q, alone.q)
    chosen.choose(Setup())  # another controller of the same motion prepares, too
    np.testing.assert_array_equal(run(chosen).q, alone.q)
