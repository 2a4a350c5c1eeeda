"""Variations of a scenario: a trial equals `irb-twin run` with the same settings."""

import pickle
import sys

import numpy as np
import pytest

from scenarios.judging.bounds import ROUND_OFF
from scenarios.running import registry
from scenarios.running.runs import Run, repeat_command, run_one
from scenarios.scenario import TrackingScenario
from scenarios.studies.sweeps.scenario_experiment import ScenarioExperiment
from scenarios.studies.sweeps.tuning import TunedLaw
from tests.support import tasks, user_scenarios
from tests.support.command_lines import parsed_back
from twin.base.errors import TwinError, UnknownNameError, VariationError
from twin.physics.control.rollout import run_rollouts
from twin.studies.sweeps.evaluation import engine_outcomes, outcomes

SHORT = {
    "collision": {"duration": 0.2},
    "joint_tracking": {"duration": 0.2},
    "pose_path": {"speed": 0.5, "angular_speed": 3.0},
    "gravity_hold": {"duration": 0.2},
    "payload_mismatch": {},
    "drive_check": {"duration": 0.2, "states": 5},
    "parallelogram": {"duration": 0.2, "free_time": 0.01},
    "laboratory": {"distance": 0.01, "speed": 0.05},
    "excitation": {"harmonics": 2, "draws": 2, "iterations": 1},
    "press": {},
    "velocity_control": {"duration": 0.2},
}
"""The scenarios that can vary."""


def experiment(name="joint_tracking", *, tool_error=False, engine=False, **settings):
    task = tasks.task(name, **{**SHORT[name], **settings})
    return ScenarioExperiment(task, tool_error=tool_error, engine=engine)


@pytest.fixture(scope="module")
def swing():
    return experiment(controller="pd", drives="rigid")


def test_every_tracking_scenario_can_vary():
    kinds = {name: registry.find(name).kind for name in registry.BUILT_IN}
    assert set(SHORT) == {name for name, kind in kinds.items() if issubclass(kind, TrackingScenario)}


@pytest.mark.parametrize("name", SHORT)
def test_trial_has_plant_model_and_reference_of_the_run(name, monkeypatch):
    """Plant, model and reference are equal to the bit, with variations of each side."""
    seen = []

    class Seen(Exception): ...

    def follow(setup, reference, arms, *, loads=(), stops=()):
        assert not loads
        seen.append((setup.with_plant_changes(arms.plant), setup.model_of(arms), reference))
        raise Seen

    def beside(robot, *_):
        assert np.array_equal(robot.tree.inertias, trial.plant.tree.inertias), "what falls, or is loaded"
        return {} if name == "parallelogram" else None

    it = experiment(name)
    values = {"mass": 1.1, "model.mass": 0.9, "torque_limit": 1.2, "payload": 1.5, "payload.z": 0.03}
    trial = it.trial(values)
    monkeypatch.setattr("scenarios.judging.following.follow", follow)
    module = vars(sys.modules[f"scenarios.{name}"])
    for part in {"free_motion", "drive_load"} & set(module):
        monkeypatch.setitem(module, part, beside)
    _, scenario, setup = it.task_of(values)
    with pytest.raises(Seen):
        scenario.run(setup)
    ((plant, model, reference),) = seen
    assert np.array_equal(plant.tree.inertias, trial.plant.tree.inertias)
    assert np.array_equal(plant.drive_torque_max, trial.plant.drive_torque_max)
    assert np.array_equal(model.tree.inertias, trial.controller.robot.tree.inertias)
    assert model.drive_mode == trial.controller.robot.drive_mode
    assert all(map(np.array_equal, reference, trial.reference))
    nominal = it.trial({})
    sides = (trial.plant, nominal.plant, 1.1), (trial.controller.robot, nominal.controller.robot, 0.9)
    for heavier, robot, share in sides:
        bare = robot.with_payload(None).tree.inertias
        np.testing.assert_allclose(heavier.with_payload(None).tree.inertias, share * bare, rtol=1e-15)
    assert trial.plant.payload.mass == 1.5
    assert trial.plant.payload.com.tolist()[2] == 0.03


def test_rollout_of_trial_equals_run_of_its_settings(swing):
    """To the bit the model's part of the run, to rounding the engine; its command repeats it."""
    values = {
        "mass": 1.07, "mass.joint_3": 20.0, "drives.coulomb": 1.4, "drives.viscous.2": 9.0, "payload": 2.0,
        "payload.z": 0.05, "model_payload": 1.0, "model.mass": 0.95, "model.drives.rotor_inertia": 0.8,
        "bandwidth": 31.0, "law.Kp": 1.2, "speed_fraction": 0.3, "noise": 1e-6, "delay": 1.0, "seed": 5.0,
    }  # fmt: skip
    trial, task = swing.trial(values), swing.task_of(values)
    run = run_one(task)
    assert run.error is None
    assert run.passes
    rollout = run_rollouts(
        trial.plant, trial.controller, trial.reference, sensors=trial.sensors, time_step=trial.time_step,
        steps_per_period=trial.steps_per_period,
    )  # fmt: skip
    assert np.array_equal(rollout.q, run.run.prediction.q)
    assert np.max(np.abs(rollout.q - run.log.q)) < 1e-12
    assert np.max(np.abs(run.log.q - run.log.q_ref)) > 1e-3
    assert not any(metric.limit == ROUND_OFF for metric in run.metrics)
    command = repeat_command(run)
    assert parsed_back(command) == task, command
    assert all(f" {name}=" in command for name in ("mass", "model.mass", "model.drives.rotor_inertia", "Kp"))


STRICT = """
import numpy as np
from scenarios import Metric
from scenarios.joint_tracking import JointTracking


class Strict(JointTracking):
    '''Strict scenario.'''

    def metrics(self, run):
        error = np.abs(run.log.q_ref - run.log.q)[-1]
        end = Metric("error at the end", float(np.max(error)), "rad", 0.005, "tolerance")
        return (*super().metrics(run), end)
"""


@pytest.mark.parametrize("controller", ["pid", "a Python function"])
def test_draw_passes_if_the_checks_of_its_run_pass(tmp_path, controller):
    """The scenario's own limit decides, in rollouts and in PyBullet, and the row names the check."""
    entry = registry.find(user_scenarios.write_text(tmp_path / "strict.py", STRICT))
    if controller.startswith("a "):
        text = "from controllers import pid\n\ndef law(model):\n    one = pid.PID(model, bandwidth=20.0)\n"
        (tmp_path / "law.py").write_text(text + "    return lambda state, ref: one(state, ref)\n")
        controller = f"{tmp_path}/law.py:law"
    it = ScenarioExperiment(entry.task({"duration": 0.3, "controller": controller}))
    draws = [{"payload": payload, "model_payload": 0.0} for payload in (0.0, 0.1)]
    evaluate = engine_outcomes if it.needs_engine else outcomes
    rows = evaluate([it.trial(draw) for draw in draws])
    runs = [run_one(it.task_of(draw)) for draw in draws]
    failed = [[one.name for one in run.metrics if not one.passes] for run in runs]
    assert rows["passes"].tolist() == [run.passes for run in runs] == [True, False]
    assert [[name] if name else [] for name in rows["check"].tolist()] == failed
    assert failed[1] == ["error at the end"]
    assert evaluate([TunedLaw(it).trial(draws[1])])["check"].tolist() == failed[1], "in `tune`, too"


def test_checks_that_need_the_engine_are_named_as_not_judged(tmp_path):
    text = STRICT.replace("        return (*", "        run.prediction.q\n        return (*")
    entry = registry.find(user_scenarios.write_text(tmp_path / "strict.py", text))
    it = ScenarioExperiment(entry.task({}))
    assert it.trial({}).judge is None
    assert it.not_judged == (
        "checks of the scenario (AttributeError: 'NoneType' object has no attribute 'q')"
    )


def test_figures_alone_judge_draws_if_the_scenario_has_no_other_limits():
    it = experiment(controller="computed_torque")
    assert it.trial({"payload": 3.0}).judge is None
    assert it.further_checks == set()
    bounded = experiment(controller="pd")
    assert "joint error / its bound" in bounded.further_checks
    assert bounded.trial({"payload": 3.0}).judge is not None
    assert bounded.trial({"mass": 1.1}).judge is None, "no bound is known"
    file = str(registry.HERE / "templates/my_scenario.py")
    nod = ScenarioExperiment(registry.find(file).task({}))
    assert nod.trial({"angle": 1.9}).judge is None
    row = outcomes([nod.trial({"angle": 2.1})])[0]
    assert (bool(row["passes"]), row["check"]) == (False, "reference beyond the range")


def test_reference_and_controller_are_shared_unless_a_trial_changes_them(swing):
    """A load is none of the reference, but where the motors of the loaded arm say how fast it may be."""
    first = swing.trial({"mass": 1.1, "bandwidth": 22.0})
    again = swing.trial({"mass": 1.2, "bandwidth": 22.0, "noise": 1e-5, "seed": 3})
    assert (again.controller, again.reference) == (first.controller, first.reference)
    longer = swing.trial({"duration": 0.3})
    assert len(longer.reference.t) > len(first.reference.t)
    assert swing.trial({"duration": 0.3, "payload": 1.0}).reference is longer.reference
    carried = experiment("payload_mismatch")
    one, other = (carried.trial({"payload_mass": mass}) for mass in (2.0, 5.0))
    assert (one.plant.payload.mass, other.plant.payload.mass) == (2.0, 5.0)
    assert one.controller.robot.payload is other.controller.robot.payload is None
    hurried = experiment("drive_check")
    one, other = (hurried.trial({"payload": mass}) for mass in (1.0, 30.0))
    assert np.max(np.abs(one.reference.qd)) > 1.2 * np.max(np.abs(other.reference.qd))


def test_pickled_experiment_gives_equal_trials(swing, tmp_path):
    """A scenario of one's own, too, whose class no other process could load by itself."""
    own = registry.find(user_scenarios.write_text(tmp_path / "own.py", STRICT))
    task = own.task({"controller": "pid", "duration": 0.1})
    for it in (swing, ScenarioExperiment(task, tool_error=True)):
        values = {"mass": 1.1, "payload": 1.0, "law.Kp": 1.3, "noise": 1e-5}
        sent = pickle.dumps(it)
        assert len(sent) < 2000
        trial, other = it.trial(values), pickle.loads(sent).trial(values)
        assert np.array_equal(trial.plant.tree.inertias, other.plant.tree.inertias)
        assert np.array_equal(trial.controller.parameters, other.controller.parameters)
        assert all(map(np.array_equal, trial.reference, other.reference))
        assert trial.sensors == other.sensors
        assert (trial.T_flange_tool is None) == (other.T_flange_tool is None) == (it is swing)


def test_payload_inertia_scales_with_mass(swing):
    box = experiment(payload="2,0.01,0,0.1,0.02,0.03,0.02,0,0,0.001")
    assert [box.nominal(f"payload{part}") for part in ("", ".x", ".z")] == [2.0, 0.01, 0.1]
    heavier = box.trial({"payload": 3.0, "payload.x": 0.02}).plant.payload
    assert heavier.com.tolist() == [0.02, 0.0, 0.1]
    nominal = box.trial({}).plant.payload.inertia
    np.testing.assert_allclose(heavier.inertia, 1.5 * nominal, rtol=1e-15)
    assert box.nominal("model_payload") == 2.0
    assert experiment("payload_mismatch").nominal("payload") == 6.0
    assert experiment("payload_mismatch").nominal("payload.z") == 0.08
    assert swing.nominal("payload") == 0.0
    with pytest.raises(VariationError, match=r"payload\.z cannot vary: there is no payload"):
        swing.trial({"payload.z": 0.1})


def test_nominal_values_give_nominal_trial(swing):
    names = [one.name for one in swing.quantities()]
    assert len(set(names)) == len(names) > 150
    assert {"bandwidth", "payload.x", "model.mass.link_2", "drives.static.6", "law.Kd"} <= set(names)
    values = {name: swing.nominal(name) for name in names}
    assert values == {one.name: one.nominal for one in swing.quantities()}
    trial, nominal = swing.trial(values), swing.trial({})
    np.testing.assert_allclose(trial.plant.tree.inertias, nominal.plant.tree.inertias, rtol=1e-15, atol=1e-16)
    np.testing.assert_allclose(trial.controller.parameters, nominal.controller.parameters, rtol=1e-15)
    assert all(map(np.array_equal, trial.reference, nominal.reference))
    assert np.isnan(experiment("payload_mismatch").nominal("payload_mass"))


def test_controller_setting_is_factor_for_vectors_and_value_for_numbers(swing):
    nominal = swing.trial({}).controller
    twice = swing.trial({"law.Kp": 2.0, "law.bandwidth": 40.0}).controller
    np.testing.assert_allclose(twice.parameters, [[8.0], [2.0]] * nominal.parameters, rtol=1e-14)
    chosen = experiment(controller="pd", law_settings=(("Kp", 100.0), ("Kd", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))))
    assert (chosen.nominal("law.Kp"), chosen.nominal("law.Kd")) == (100.0, 1.0)
    law = chosen.trial({"law.Kp": 50.0, "law.Kd": 3.0}).controller
    assert law.parameters.tolist() == [[50.0] * 6, [3.0, 6.0, 9.0, 12.0, 15.0, 18.0]]


def test_error_limit_of_trial_equals_that_of_run(irb140):
    claimed = experiment()
    assert claimed.trial({}).error_limit == claimed.trial({"payload": 2.0}).error_limit == ROUND_OFF
    for values in ({"mass": 1.1}, {"model.mass": 1.1}, {"noise": 1e-6}, {"model_payload": 1.0},
                   {"law.Kp": 1.0}, {"steps_per_period": 2}):  # fmt: skip
        assert claimed.trial(values).error_limit == np.inf, values
    for settings in ({"controller": "pd"}, {"reference": "continuous"}, {"drives": "elastic"},
                     {"drives": "rigid", "model_drives": "ideal"}):  # fmt: skip
        assert experiment(**settings).trial({}).error_limit == np.inf, settings
    known = [experiment("payload_mismatch", payload_known=known).trial({}).error_limit for known in (0, 1)]
    assert known == [np.inf, ROUND_OFF]
    models = [experiment("parallelogram", model=model).trial({}).error_limit for model in ("exact", "no_rod")]
    assert models == [ROUND_OFF, np.inf]


def test_invalid_quantities_and_values_raise(swing):
    for name, error, told in (
        ("bandwith", UnknownNameError, "'joint_tracking' has no quantity 'bandwith': the nearest are b"),
        ("law.kp", UnknownNameError, r"controller 'pd' has no quantity 'law\.kp': the nearest are law\.Kp"),
        ("robot", VariationError, "robot cannot vary: it is a text"),
        ("encoder", VariationError, "encoder cannot vary: it is a switch"),
        ("model.drives.damping", VariationError, r"model\.drives\.damping has no effect"),
    ):
        with pytest.raises(error, match=told):
            swing.nominal(name)
        with pytest.raises(error):
            swing.trial({name: 1.0})
    for values, told in (
        ({"delay": 1.5}, r"delay must be a whole number, got 1\.5"),
        ({"mass": -1.0}, "expected mass to be finite and above 0"),
        ({"payload": -1.0}, "expected a payload mass of at least 0 kg"),
        ({"drives.static": 0.1}, "at least the Coulomb friction"),
    ):
        with pytest.raises((TwinError, ValueError), match=told):
            swing.trial(values)
    with pytest.raises(VariationError, match="scenario 'model_agreement' is no TrackingScenario"):
        ScenarioExperiment(tasks.task("model_agreement"))


def test_python_controllers_need_the_engine_and_are_new_in_each_run(swing, tmp_path):
    law = tmp_path / "my.py"
    law.write_text(
        "def plain(state, reference):\n    return 0 * state.q\n"
        "class Law:\n    def __init__(self, model):\n        pass\n"
        "    def __call__(self, state, reference):\n        return 0 * state.q\n",
        encoding="utf-8",
    )
    assert not swing.needs_engine
    assert experiment(controller="pd", engine=True).needs_engine
    plain, stateful = (experiment(controller=f"{law}:{name}") for name in ("plain", "Law"))
    assert plain.needs_engine
    assert stateful.needs_engine
    assert plain.trial({}).controller.name == "plain"
    assert stateful.trial({"payload": 1.0}).controller is not stateful.trial({"payload": 1.0}).controller


def test_absent_setting_is_ignored(swing):
    swing = ScenarioExperiment(swing.task, absent=frozenset({"law.Ki"}))
    swing = pickle.loads(pickle.dumps(swing))
    assert np.isnan(swing.nominal("law.Ki"))
    assert swing.task_of({"law.Ki": np.nan, "payload": 1.0}) == swing.task_of({"payload": 1.0})


def test_varied_change_replaces_fixed_change(swing):
    """A change that is fixed stays, and one that varies takes its place."""
    it = ScenarioExperiment(swing.task.with_setup(changes=(("mass", 1.1), ("drives.coulomb", 2.0))))
    task = it.task_of({"mass": 1.3})
    assert task.setup.changes == (("mass", 1.3), ("drives.coulomb", 2.0))
    run = Run(task)
    assert repeat_command(run).endswith(" --with mass=1.3 drives.coulomb=2.0")


def test_law_is_not_known_with_an_unknown_payload():
    for known in (False, True):
        assert tasks.run("payload_mismatch", payload_known=known, time_step=0.005).loop.known_law is known


def test_options_without_a_share_in_the_motion_share_their_reference():
    """`of_motion` hides them; options of the motion itself stay."""
    carried = experiment("payload_mismatch")
    for values in ({"payload_mass": 2.0}, {"payload_distance": 0.05}):
        assert carried.trial(values).reference is carried.trial({}).reference
    fallen = experiment("parallelogram")
    assert fallen.trial({"free_time": 0.02}).reference is fallen.trial({}).reference
    assert fallen.trial({"speed_fraction": 0.4}).reference is not fallen.trial({}).reference
