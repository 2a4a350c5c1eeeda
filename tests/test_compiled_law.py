"""Control laws compiled into the closed loop: what they demand, and that nothing that they do is lost."""

import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numba
import numpy as np
import pytest

import controllers
import twin
from tests.test_closed_loop import PERIOD, still
from twin import compiled_loops
from twin.analytic_plant import AnalyticPlant
from twin.closed_loop import run_closed_loop
from twin.compiled_loops import compilable
from twin.control_law import ControlLaw
from twin.engine import Simulation
from twin.errors import DivergenceError
from twin.rollout import run_rollouts
from twin.sampling import sample
from twin.trajectories import hold, sines


@pytest.mark.parametrize("name", controllers.NAMES)
@pytest.mark.parametrize("make", [Simulation, AnalyticPlant])
def test_a_law_compiled_in_demands_what_it_demands_when_asked(arm, name, make):
    """To the bit, with drives that saturate and an integral that winds up."""
    robot = replace(arm, tau_max=0.2 * arm.tau_max)
    controller = controllers.make(name, arm, bandwidth=30.0)
    path = sines(arm.poses["zero"] + 0.1, np.full(6, 0.3), np.full(6, 0.5), 0.3)
    start = (arm.poses["zero"] + 0.05, np.full(6, -0.1))
    plant = make(robot)
    compiled = run_closed_loop(plant, controller, sample(path, PERIOD), start=start)
    memory = controller.memory.copy()
    controller.reset()
    asked = run_closed_loop(plant, lambda *at: controller(*at), sample(path, PERIOD), start=start)
    assert compiled.identical(replace(asked, controller=name))
    assert compiled.saturated.any()
    assert not compiled.saturated.all()
    np.testing.assert_array_equal(compiled.tau, np.clip(compiled.tau_demand, -robot.tau_max, robot.tau_max))
    np.testing.assert_array_equal(controller.memory, memory, "it is left as the last sample left it")
    assert name != "pid" or memory.any()


class Halved(controllers.law("pd")):
    """A controller that is more than its law."""

    def __call__(self, state, reference):
        return 0.5 * super().__call__(state, reference)


def in_words(state, reference, parameters, memory, model):
    """A law that numba cannot compile."""
    return np.full(len(state.q), float(f"{0.01:.2f}"))


def tired(state, reference, parameters, memory, model):
    """It has parameters for 15 samples."""
    k = int(memory[0, 0])
    memory[0] += 1.0
    return parameters[k] * np.ones(len(state.q))


def vandal(state, reference, parameters, memory, model):
    """It writes to what it sees, and demands what it saw last."""
    tau = 0.01 * reference.q + 0.0001 * state.t
    state.q[:] = 7.0
    state.qd[:] = 7.0
    reference.q[:] = 7.0
    return tau


def of_another_shape(state, reference, parameters, memory, model):
    return np.zeros(5)


def test_what_is_more_than_a_law_for_numba_is_asked(irb140):
    pd = controllers.make("pd", irb140)
    log = run_closed_loop(AnalyticPlant(irb140), Halved(irb140), sample(hold(np.ones(6), 0.01), PERIOD),
                          start=(np.full(6, 0.99), np.zeros(6)))  # fmt: skip
    np.testing.assert_array_equal(log.tau_demand[0], 0.5 * pd.parameters[0] * (1.0 - np.full(6, 0.99)))
    assert not compilable(in_words)
    log = run_closed_loop(AnalyticPlant(irb140), ControlLaw(irb140, in_words), still(irb140))
    np.testing.assert_array_equal(log.tau_demand, np.full((20, 6), 0.01))


def test_a_compiled_law_that_is_wrong_is_told_as_one_that_is_asked(irb140):
    worn_out = ControlLaw(irb140, tired, np.zeros(15), memory=1)
    for controller in (worn_out, lambda *at: worn_out(*at)):
        worn_out.reset()
        with pytest.raises(IndexError):
            run_closed_loop(AnalyticPlant(irb140), controller, still(irb140))
        assert worn_out.memory[0, 0] >= 15
    with pytest.raises(ValueError, match=r"'of_another_shape' returned tau of shape \(5,\) at t = 0 s"):
        run_closed_loop(AnalyticPlant(irb140), ControlLaw(irb140, of_another_shape), still(irb140))


def test_a_compiled_law_cannot_move_the_robot_or_falsify_the_reference(irb140):
    reference = still(irb140, q=np.full(6, 0.1))
    log = run_closed_loop(AnalyticPlant(irb140), ControlLaw(irb140, vandal), reference)
    honest = run_closed_loop(AnalyticPlant(irb140), lambda s, r: 0.01 * r.q + 0.0001 * s.t, reference)
    assert log.identical(replace(honest, controller="vandal"))
    np.testing.assert_array_equal(reference.q, np.full((20, 6), 0.1))


def test_a_run_lets_go_of_its_arrays_however_it_ends(irb140):
    """A compiled generator holds them until it ends."""
    controller = ControlLaw(irb140, tired, np.zeros(20), memory=1)
    plant = AnalyticPlant(irb140)
    memory = controller.memory
    counts = [sys.getrefcount(memory)]
    for start, break_it, error in (
        (np.zeros(6), False, None),
        (np.full(6, 1e4), False, DivergenceError),
        (np.zeros(6), True, TypeError),
    ):
        plant.step = None if break_it else AnalyticPlant.step.__get__(plant)
        with pytest.raises(error) if error else nullcontext():
            run_closed_loop(plant, controller, still(irb140), start=(np.zeros(6), start))
        counts.append(sys.getrefcount(memory))
    assert len(set(counts)) == 1, counts


def ratio(state, reference, parameters, memory, model):
    """At rest it divides by zero, which numpy takes for infinity."""
    return 1e-3 * min(1.0, 3.0 / abs(state.qd[0])) * np.ones(len(state.q))


def test_a_law_may_divide_by_zero_as_numpy_does(irb140):
    law = ControlLaw(irb140, ratio)
    with np.errstate(divide="ignore"):
        asked = run_closed_loop(AnalyticPlant(irb140), lambda *at: law(*at), still(irb140, 5))
    compiled = run_closed_loop(AnalyticPlant(irb140), law, still(irb140, 5))
    assert compiled.identical(replace(asked, controller="ratio"))
    np.testing.assert_array_equal(run_rollouts(irb140, law, still(irb140, 5)).tau, compiled.tau)


class Bound:
    def law(self, state, reference, parameters, memory, model):
        return 0.01 + state.q


@numba.njit
def jitted(state, reference, parameters, memory, model):
    return parameters[3] + state.q


def test_a_law_that_is_no_plain_function_is_asked(irb140):
    law = Bound().law
    for each in (law, partial(law)):
        controller = ControlLaw(irb140, law, name="bound")
        controller.law = each
        log = run_closed_loop(AnalyticPlant(irb140), controller, still(irb140, 2))
        np.testing.assert_array_equal(log.tau_demand[0], np.full(6, 0.01))


def test_a_law_that_is_jitted_already_is_compiled_again_with_its_bounds(irb140):
    controller = ControlLaw(irb140, jitted, [1.0])
    for controller.law in (jitted.py_func, jitted):
        for run in (run_closed_loop, run_rollouts):
            with pytest.raises((IndexError, ValueError)):  # the second where the law itself does not check
                run(AnalyticPlant(irb140) if run is run_closed_loop else irb140, controller, still(irb140, 2))


@pytest.mark.parametrize(
    "memory", [np.zeros((1, 6), np.float32), np.zeros((1, 12))[:, ::2]], ids=["single precision", "in pieces"]
)
def test_a_memory_of_another_kind_is_kept_and_its_law_asked(irb140, memory):
    controller = ControlLaw(irb140, tired, np.full(15, 0.01), memory=1)
    controller.memory = memory
    run_closed_loop(AnalyticPlant(irb140), controller, still(irb140, 3))
    assert controller.memory is memory
    assert memory[0, 0] == 3


def test_a_controller_of_another_arm_is_refused(irb140):
    of_another = ControlLaw(twin.load("youbot"), vandal)
    with pytest.raises(ValueError, match="expected a controller of 6 joints, got one of 5"):
        run_closed_loop(AnalyticPlant(irb140), of_another, still(irb140))


def test_rollouts_refuse_a_controller_that_is_more_than_its_law(irb140):
    with pytest.raises(ValueError, match="that are their laws, got a Halved, which has its own __"):
        run_rollouts(irb140, Halved(irb140), still(irb140))


def numbered(k):
    """A law of its own code, which talks, so that it needs more of numba than its machine code."""

    def law(state, reference, parameters, memory, model):
        if state.t < 0.0:
            print("before the beginning", k)
        return np.full(len(state.q), 1e-3 * k)

    return law


def test_laws_may_come_and_go(irb140):
    """More of them than are kept; the first is still there, or compiled anew."""
    compiled_loops._compiled.cache_clear()
    laws = [ControlLaw(irb140, numbered(k)) for k in range(3)]
    for _ in range(2):
        for k, law in enumerate(laws):
            log = run_closed_loop(AnalyticPlant(irb140), law, still(irb140, 2))
            np.testing.assert_array_equal(log.tau_demand, np.full((2, 6), 1e-3 * k))
        compiled_loops._compiled.cache_clear()  # as 64 others would


THREADS = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np, twin
from twin.analytic_plant import AnalyticPlant
from twin.closed_loop import run_closed_loop
from tests.test_closed_loop import still
robot = twin.load("irb140")
def run(_):
    return run_closed_loop(AnalyticPlant(robot), lambda *_: np.zeros(6), still(robot, 5)).q
with ThreadPoolExecutor(4) as pool:
    assert len({q.tobytes() for q in pool.map(run, range(4))}) == 1
"""


def test_the_first_use_may_be_by_several_threads():
    subprocess.run([sys.executable, "-c", THREADS], check=True, env=os.environ)
