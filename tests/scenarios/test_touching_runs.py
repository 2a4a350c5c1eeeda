"""Runs of scenarios on a surface: each controller, each part of an arm, verdicts, files and refusals."""

import numpy as np
import pytest

import controllers
import twin
from scenarios.judging.agreement import agreement_metrics
from scenarios.judging.following import follow
from scenarios.running.registry import find
from scenarios.running.runs import repeat_command, run_one
from scenarios.setup import Setup
from twin.base.errors import IdentificationError
from twin.data.logs.annotations import LoadChange
from twin.data.logs.loads import torque_residual
from twin.data.logs.log import Log

Q = np.array([0.9, 0.4, -0.2, 0.5, 0.7, -0.4])
BODY = "3,0.02,-0.01,0.08,0.02,0.02,0.02,0,0,0"


def plane(robot, tool, depth=0.004):
    """A plane across the direction in which joint 1 moves the tool, 4 mm from it."""
    p = twin.forward_kinematics(robot, Q[: robot.n], tool)[:3, 3]
    n = np.array([p[1], -p[0], 0.2 * p[0]])
    n /= np.linalg.norm(n)
    p -= (0.01 + depth) * n
    place = f"plane={n[0]},{n[1]},{n[2]} at={p[0]},{p[1]},{p[2]}"
    return f"{place} stiffness=1e4 damping=60 friction=0.3 tip=0.01"


def touching(loads=(), **settings):
    """Move joint 1 by 0.05 rad, into the plane."""
    settings = {"drives": "rigid", **settings}
    first = Setup(**settings)
    setup = Setup(**settings, surface=plane(first.load_robot(), first.T_flange_tool))
    motion = twin.quintic(Q, Q + 0.05 * np.eye(6)[0], 0.3)
    robot = setup.load_robot() if not loads else setup.nominal_robot()
    return follow(setup, setup.sampling().sampled(motion), robot, loads=loads)


def assert_judged(run):
    assert np.max(np.abs(run.log.wrench[:, :3])) > 3
    for metric in agreement_metrics(run):
        assert metric.outcome in ("passes", "undetermined"), (metric.name, metric.value)
    assert run.prediction.differs.sum() == 0


@pytest.mark.parametrize("controller", controllers.NAMES)
def test_every_controller_touches_and_the_engine_is_the_model(controller):
    assert_judged(touching(controller=controller, payload=BODY))


@pytest.mark.filterwarnings("ignore::twin.base.errors.DriveWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {"tool": "0.05,0.02,0.2", "mounting": "wall"},
        {"robot": "irb1400", "payload": BODY, "tool": "0.1", "model_payload": "0"},
        {"robot": "irb1600", "drives": "elastic", "payload": BODY},
        {"encoder": True, "delay": 1, "force_sensor": "noise=0.5 offset=1,0,0,0,0,0 load=1,0,0,0.1"},
        {"steps_per_period": 4, "drives": "ideal", "payload": BODY},
    ],
    ids=str,
)
def test_every_part_of_an_arm_touches(settings):
    assert_judged(touching(**settings))


def test_payload_that_changes_while_the_tool_touches():
    body = twin.Payload(3.0, (0.02, -0.01, 0.08))
    run = touching(loads=[LoadChange(0, None, None), LoadChange(220, body, body)])
    assert_judged(run)
    first, second = twin.logs.parts(run.log)
    assert first.wrench.any()
    np.testing.assert_array_equal(second.wrench, run.log.wrench[220:])


def test_log_is_stored_with_its_surfaces(tmp_path):
    log = touching(payload=BODY).log
    log.save(tmp_path / "run.npz")
    again = Log.load(tmp_path / "run.npz")
    assert again.identical(log)
    np.testing.assert_array_equal(again.environment.surfaces, log.environment.surfaces)
    assert again.model_residual() == log.model_residual() < 1e-12
    assert torque_residual(log) < 1e-9
    with pytest.raises(IdentificationError, match="a wrench acted on the tool"):
        twin.identification.measurements_of_log(log)


def test_run_on_a_surface_is_not_judged_by_its_error_and_can_be_repeated():
    wall = "plane=0,-1,0 at=0,0.546,0 stiffness=2e4 damping=100"
    done = run_one(find("pose_path").task({"drives": "rigid", "surface": wall}))
    assert done.outcome == "not judged", done.error
    assert done.tracking.reason == "no bound known under a wrench on the tool"
    assert f"--surface '{wall}'" in repeat_command(done)
