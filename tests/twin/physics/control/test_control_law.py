"""Control laws of one's own: called as they are written, compiled for rollouts, and nothing of them lost.

Compiled laws in a closed loop: equal to Python laws, with copies of all but the memory.
"""

import copy
import functools
import os
import threading

import numba
import numpy as np
import pytest
from numba.extending import is_jitted

import controllers
import twin
from tests.support.forks import NUMBA, Fork
from tests.support.short_runs import PERIOD, still
from twin.base.errors import ControllerError
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.control_law import ControlLaw, bound, compiled_law, is_compiled
from twin.physics.control.plant import AnalyticPlant
from twin.physics.control.rollout import run_rollouts
from twin.physics.robot.drives.motors import Sensors
from twin.physics.trajectories.joint_trajectories import hold
from twin.physics.trajectories.sampling import sample

pytestmark = pytest.mark.slow("compiles laws and runs them")


class Halved(controllers.law("pd")):
    """A controller that is more than its law."""

    def __call__(self, state, reference):
        return 0.5 * super().__call__(state, reference)


def by_a_text(state, reference, parameters, memory, model):
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


def ratio(state, reference, parameters, memory, model):
    """At rest it divides by zero, which numpy takes for infinity."""
    return 1e-3 * min(1.0, 3.0 / abs(state.qd[0])) * np.ones(len(state.q))


@numba.njit
def jitted(state, reference, parameters, memory, model):
    return parameters[3] + state.q


def test_what_is_more_than_its_law_is_called_whole(irb140):
    pd = controllers.make("pd", irb140)
    log = run_closed_loop(AnalyticPlant(irb140), Halved(irb140), sample(hold(np.ones(6), 0.01), PERIOD),
                          start=(np.full(6, 0.99), np.zeros(6)))  # fmt: skip
    np.testing.assert_array_equal(log.tau_demand[0], 0.5 * pd.parameters[0] * (1.0 - np.full(6, 0.99)))
    log = run_closed_loop(AnalyticPlant(irb140), ControlLaw(irb140, by_a_text), still(irb140))
    np.testing.assert_array_equal(log.tau_demand, np.full((20, 6), 0.01))


def test_what_a_law_raises_comes_through():
    robot = twin.load("two_link")
    worn_out = ControlLaw(robot, tired, np.zeros(15), memory=1)
    with pytest.raises(IndexError):
        run_closed_loop(AnalyticPlant(robot), worn_out, still(robot))
    assert worn_out.memory[0, 0] == 16
    with pytest.raises(IndexError):
        run_rollouts(robot, worn_out, still(robot))
    with pytest.raises(ValueError, match=r"'of_another_shape' returned tau of shape \(5,\) at t = 0 s"):
        run_closed_loop(AnalyticPlant(robot), ControlLaw(robot, of_another_shape), still(robot))


def test_a_law_cannot_move_the_robot_or_falsify_the_reference(irb140):
    reference = still(irb140, q=np.full(6, 0.1))
    with pytest.raises(ValueError, match="read-only"):
        run_closed_loop(AnalyticPlant(irb140), ControlLaw(irb140, vandal), reference)

    def only_the_state(state, reference):
        state.q[:] = state.qd[:] = 7.0
        return 0.01 * reference.q

    logs = [
        run_closed_loop(AnalyticPlant(irb140), law, reference)
        for law in (only_the_state, lambda s, r: 0.01 * r.q)
    ]
    np.testing.assert_array_equal(logs[0].q, logs[1].q)


def test_a_law_may_divide_by_zero_as_numpy_does():
    robot = twin.load("two_link")
    law = ControlLaw(robot, ratio)
    with np.errstate(divide="ignore"):
        log = run_closed_loop(AnalyticPlant(robot), law, still(robot, 5))
    np.testing.assert_array_equal(run_rollouts(robot, law, still(robot, 5)).tau, log.tau)


def test_a_law_that_is_jitted_already_is_compiled_again_with_its_bounds():
    robot = twin.load("two_link")
    controller = ControlLaw(robot, jitted, [1.0])
    for run, plant in ((run_closed_loop, AnalyticPlant(robot)), (run_rollouts, robot)):
        with pytest.raises(IndexError):
            run(plant, controller, still(robot, 2))


def test_a_controller_of_another_arm_or_more_than_its_law_is_refused(irb140):
    of_another = ControlLaw(twin.load("youbot"), vandal)
    with pytest.raises(ValueError, match="expected a controller of 6 joints, got one of 5"):
        run_closed_loop(AnalyticPlant(irb140), of_another, still(irb140))
    with pytest.raises(ValueError, match=r"that do not override __call__, .*, got a Halved"):
        run_rollouts(irb140, Halved(irb140), still(irb140))


THREADS = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np, twin
from twin.physics.control.plant import AnalyticPlant
from twin.data.logs.closed_loop import run_closed_loop
from tests.support.short_runs import still
robot = twin.load("irb140")
def run(_):
    return run_closed_loop(AnalyticPlant(robot), lambda *_: np.zeros(6), still(robot, 5)).q
with ThreadPoolExecutor(4) as pool:
    assert len({q.tobytes() for q in pool.map(run, range(4))}) == 1
"""


def test_the_first_use_may_be_by_several_threads():
    ended = Fork(THREADS, NUMBA).wait()
    assert ended.returncode == 0, ended.stderr


def meeting(arm, controller, plants):
    """Return the errors of two loops in two threads that run a controller at the same time."""
    both, errors = threading.Barrier(2, timeout=20), []

    def run(plant):
        try:
            run_closed_loop(plant, controller, still(arm, 2), at_sample=lambda k: both.wait())
        except ValueError as error:
            errors.append(str(error))
            both.abort()
        except threading.BrokenBarrierError:
            pass

    threads = [threading.Thread(target=run, args=(plant,)) for plant in plants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_a_controller_that_remembers_and_a_plant_serve_one_loop_at_a_time(irb140):
    plants = [AnalyticPlant(irb140), AnalyticPlant(irb140)]
    (told,) = meeting(irb140, controllers.make("pid", irb140), plants)
    assert "controller 'pid' is in another closed loop at this moment" in told
    assert meeting(irb140, controllers.make("pd", irb140), plants) == []
    (told,) = meeting(irb140, controllers.make("pd", irb140), plants[:1] * 2)
    assert told.startswith("this plant is in another closed loop")
    assert len(run_closed_loop(plants[0], controllers.make("pid", irb140), still(irb140, 2)).t) == 2


def test_only_builtin_laws_are_cached_and_they_use_constants_only(irb140):
    for name in controllers.NAMES:
        law = controllers.make(name, irb140).law
        assert is_compiled(law)
        used = set(law.__code__.co_names) & law.__globals__.keys() - {"np"}
        values = [law.__globals__[name] for name in used]
        followed = law.__module__, "twin.physics.control"  # the cache follows the files of these rooms
        places = [getattr(one, "__module__", "").startswith(followed) for one in values]
        compiled = (is_jitted(one) or place for one, place in zip(values, places, strict=True))
        assert all(isinstance(one, int | float) or known for one, known in zip(values, compiled, strict=True))
        assert law.__code__.co_freevars == ()
        assert law.__name__ != "<lambda>"
    assert not is_compiled(vandal)
    wrapped = functools.wraps(law)(lambda *at: law(*at))
    assert not is_compiled(wrapped), "a wrapper does more than what it wraps"


TWO = """
import sys
sys.path.insert(0, {!r})
import numpy as np, twin
import gains, helpers
from twin.physics.control.plant import AnalyticPlant
from twin.physics.control.control_law import ControlLaw
from twin.physics.control.rollout import run_rollouts
from tests.support.short_runs import still
robot = twin.load("two_link")
def law(state, reference, parameters, memory, model):
    return np.full(2, gains.KP) + helpers.more(state.q)
laws = [law, *[lambda s, r, p, m, o: np.full(2, 1e-3), lambda s, r, p, m, o: np.full(2, 2e-3)]]
print(*(float(run_rollouts(robot, ControlLaw(robot, each), still(robot, 1)).tau[0, 0]) for each in laws))
"""


def test_user_laws_are_compiled_in_every_process_without_files(tmp_path):
    """An imported module's gain, a helper's helper and two functions on a line are what they are now."""
    helper = "from numba.extending import register_jitable\n@register_jitable\ndef inner(q):\n    return {}\n"
    (tmp_path / "helpers.py").write_text(
        "import numba, inner\n@numba.njit\ndef more(q):\n    return inner.inner(q)\n"
    )
    told = []
    for gain, more in ((0.25, 0.0), (0.5, 1.0)):
        (tmp_path / "gains.py").write_text(f"KP = {gain}\n")
        (tmp_path / "inner.py").write_text(helper.format(f"{more} + 0.0 * q"))
        for name in ("gains", "inner"):  # of the same size and date, as an editor might leave it
            os.utime(tmp_path / f"{name}.py", (1e9, 1e9))
        ended = Fork(TWO.format(str(tmp_path)), NUMBA).wait()
        assert ended.returncode == 0, ended.stderr
        told.append([float(word) for word in ended.stdout.split()])
    assert told == [[0.25, 1e-3, 2e-3], [1.5, 1e-3, 2e-3]]
    kept = [path.name for path in tmp_path.rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert kept == []


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
