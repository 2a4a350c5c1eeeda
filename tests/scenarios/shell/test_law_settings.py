"""Settings of laws on the command line, and what hangs on the flange."""

import numpy as np
import pytest

import controllers
import twin
from scenarios.judging.drive_load import with_rated_payload
from scenarios.setup import Setup
from scenarios.shell.settings import LawSettings
from tests.support import tasks
from twin.base.errors import WrongUse
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.flange_load import payload_of, tool_of
from twin.physics.rotations.rotations import pose_vector

SIX = (9.0, 9.0, 9.0, 4.0, 4.0, 4.0)


def chosen(words, file, laws):
    return LawSettings(tuple(words), file).chosen(laws)


def test_a_setting_goes_to_the_laws_that_have_it(tmp_path):
    assert chosen([], None, ["pd"]) == {"pd": ()}
    got = chosen(["Kp=9,9,9,4,4,4", "pid.Kd=2", "bandwidth=7"], None, ["pd", "pid", "cascade"])
    assert got["pd"] == (("Kp", SIX), ("bandwidth", 7.0))
    assert got["pid"] == (("Kp", SIX), ("Kd", 2.0), ("bandwidth", 7.0))
    assert got["cascade"] == (("bandwidth", 7.0),)
    assert chosen(["feed_forward=false"], None, ["cascade"])["cascade"] == (("feed_forward", False),)
    file = tmp_path / "gains.toml"
    file.write_text("Kp = 3\n[pid]\nKi = [1, 1, 1, 2, 2, 2]\nKp = 4\n", encoding="utf-8")
    got = chosen(["pd.Kp=5"], file, ["pd", "pid"])
    assert got["pd"] == (("Kp", 5.0),)
    assert got["pid"] == (("Kp", 4), ("Ki", (1.0, 1.0, 1.0, 2.0, 2.0, 2.0)))


def test_wrong_settings_are_one_sentence(tmp_path):
    file = tmp_path / "a.toml"
    for word, told in (
        ("Kp", "--set Kp: expected NAME=VALUE, as Kp=100"),
        ("K p=3", "expected NAME=VALUE"),
        ("Ki=3", "--set Ki=3: there is no setting 'Ki': pd has bandwidth, Kp, Kd"),
        ("period=3", "there is no setting 'period'"),
        ("lqr.Q=3", "this run has no controller 'lqr', only pd"),
    ):
        with pytest.raises(WrongUse, match=told):
            chosen([word], None, ["pd"])
    with pytest.raises(WrongUse, match="cannot be read: No such file"):
        chosen([], file, ["pd"])
    for text, told in (
        ("Kp = ", "it is not valid TOML"),
        ("Kp = {a = {b = 1}}", "a is {'b': 1}, expected"),
        ("Kp = ['a']", "Kp is "),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(WrongUse, match=told):
            chosen([], file, ["pd"])


def test_gains_of_ours_are_taken_as_given(irb140):
    law, derived = controllers.make("pid", irb140, Kp=100.0, Kd=SIX), controllers.make("pid", irb140)
    np.testing.assert_array_equal(law.gains.Kp, np.full(6, 100.0))
    np.testing.assert_array_equal(law.gains.Kd, SIX)
    np.testing.assert_array_equal(law.gains.Ki, derived.gains.Ki)


def test_payload_from_text():
    assert payload_of("2").mass == 2.0
    body = payload_of("2,0.1,0.2,0.3,1,2,2.5,0.1,0.2,0.3")
    np.testing.assert_array_equal(body.com, [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(body.inertia, [[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]])
    for text in ("", "x", "1,2", "nan", "1,2,3,4,5"):
        with pytest.raises(ValueError, match="expected a payload as mass, or as mass,x,y,z"):
            payload_of(text)
    with pytest.raises(ValueError, match="got 80: are these millimetres"):
        payload_of("2,0,0,80")
    with pytest.raises(ValueError, match="no body has the principal moments"):
        payload_of("1,0,0,0,1,1,5,0,0,0")


def test_tool_from_text():
    np.testing.assert_array_equal(pose_vector(tool_of("0.12")), [0, 0, 0.12, 1, 0, 0, 0])
    turned = pose_vector(tool_of("1,2,3,0,0.6,0,0.8"))
    np.testing.assert_allclose(turned, [1, 2, 3, 0, 0.6, 0, 0.8], atol=1e-15)
    for text in ("", "1,2", "1,2,3,1,0,0,0.1", "1,2,inf"):
        with pytest.raises(ValueError, match="expected a tool as its length, or as x,y,z, or as x,y"):
            tool_of(text)
    for text in ("120", "0,0,-120", "5.1,0,0,1,0,0,0"):
        with pytest.raises(ValueError, match=r"expected a tool in metres, at most 5 m from the flange, got"):
            tool_of(text)
    tool_of("5")


def test_run_uses_the_given_tool(irb140):
    """The laboratory's line is one of the tool, and the log's poses are the tool's."""
    _, scenario, setup = tasks.task(
        "laboratory", tool="0.05,0,0.1", start_error=0.0, controller="computed_torque"
    )
    run = scenario.run(setup)
    log = run.log
    poses = forward_kinematics(irb140, log.q, setup.T_flange_tool)[:, :3, 3]
    np.testing.assert_allclose(log.pose[:, :3], poses, rtol=0, atol=1e-15)
    moved = log.pose[-1, :3] - log.pose[0, :3]
    np.testing.assert_allclose(moved[1:], [-0.2, -0.2], rtol=0, atol=1e-3)
    assert all(metric.passes for metric in scenario.metrics(run))


def test_payloads_of_plant_and_model(irb140):
    setup = Setup(payload="3", model_payload="0")
    robot = setup.load_robot()
    assert robot.payload.mass == 3.0
    assert setup.controller_model(robot).payload.mass == 0.0
    assert Setup(payload="3").controller_model(robot).payload.mass == 3.0
    assert (setup.known_law, Setup().known_law) == (False, True)
    carrying = irb140.with_payload(twin.Payload(1.5, (0.0, 0.0, 0.05)))
    assert with_rated_payload(carrying) is carrying
