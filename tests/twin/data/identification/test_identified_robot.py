"""An identified robot's file: it loads, the engine agrees, it says where it is from, whole or not at all."""

import shlex
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from tests.support import tasks
from tests.support.identified_arms import believed, measured, slides_as_it_starts
from tests.support.peers import MuJoCo, Pinocchio
from twin.data.identification.least_squares import joint_residuals, triangles
from twin.data.identification.physical import physical_solution
from twin.data.identification.robot_file import write_robot_file
from twin.data.identification.torque_model import TorqueModel
from twin.physics.robot.loading import robot_facts


@pytest.fixture(scope="module")
def log():
    return tasks.run("excitation", robot="irb140", time_step=0.004).log


@pytest.fixture(scope="module")
def identified(log, tmp_path_factory):
    """Files and output of the command for a run of a robot with other masses."""
    folder = tmp_path_factory.mktemp("identified")
    log.save(folder / "run.npz")
    file = folder / "identified.toml"
    assert main(["identify", str(folder / "run.npz"), "--out", str(file)]) == 0
    return file


def same_torques(one, other):
    rng = np.random.default_rng(0)
    motion = rng.normal(size=(3, 20, one.n))
    a, b = (twin.inverse_dynamics(robot, *motion) for robot in (one, other))
    return np.max(np.abs(a - b)) / np.max(np.abs(a))


def comments(text):
    """Return the comments of a file in one line."""
    return " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))


def test_it_loads_and_needs_the_torques_of_the_arm_that_was_recorded(identified, log):
    robot = twin.load(identified)
    assert robot.urdf is not None
    assert (robot.name, robot.urdf.name) == ("identified", "identified.urdf")
    assert same_torques(log.robot, robot.with_drives("rigid")) < 1e-9
    np.testing.assert_array_equal(robot.q_min, log.robot.q_min)
    assert robot.poses.keys() == log.robot.poses.keys()


def test_the_engine_and_the_model_are_one_robot_whose_urdf_its_facts_make(identified):
    settings = {"drives": "rigid", "duration": 0.2, "time_step": 0.002}
    _, scenario, setup = tasks.task("joint_tracking", robot=str(identified), **settings)
    run = scenario.run(setup)
    assert np.max(np.abs(run.log.q - run.log.q_ref)) < 1e-12
    assert all(metric.passes for metric in scenario.metrics(run))
    words = [sys.executable, "-m", "urdf.build", "--check", str(identified)]
    assert "up to date" in subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("name", "file"), [("irb1400", "found.toml"), ("manutec_r3", "found_dh.toml")])
def test_closed_loops_and_tables_are_written(name, file, tmp_path):
    robot = twin.load(name)
    assert robot.drives is not None
    robot = robot.with_drives("rigid", replace(robot.drives, static=robot.drives.coulomb))
    solution = physical_solution(twin.identify(believed(robot), measured(robot, noise=1.0)))
    files = write_robot_file(solution, tmp_path / file)
    again = twin.load(files[0]).with_drives("rigid")
    assert again.name == "found"
    assert same_torques(solution.robot, again) < 1e-12
    assert same_torques(believed(robot), again) > 1e-2
    found = solution.robot.tree.inertias
    scale = np.max(np.abs(found), axis=1, keepdims=True)
    np.testing.assert_allclose(again.tree.inertias / scale, found / scale, rtol=0, atol=1e-12)


def test_a_file_that_cannot_be_is_refused_before_the_work(identified, capsys, tmp_path):
    run = str(identified.with_name("run.npz"))
    for words, sentence in (
        ((run, "--out", f"{tmp_path}/arm.txt"), "expected a file name that ends in .toml"),
        ((run, "--out", f"{tmp_path}/no/arm.toml"), "there is no folder"),
        ((run, "--out", f"{tmp_path}/arm_dh.toml"), "ends in .toml, but not in dh.toml"),
        ((run, "--out", f"{tmp_path}/arm.toml", "--both-sides"), "friction on one side of each gear"),
        ((run, "--out", str(identified), "--robot", str(identified)), "is a file of the given robot"),
    ):
        assert main(["identify", *words]) == 2
        assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_urdf_becomes_a_folder_with_its_bodies_and_drives(log, identified, tmp_path, capsys):
    """Names and frames stay; Pinocchio and MuJoCo read the bodies that were found."""
    urdf = tmp_path / "given" / "arm.urdf"
    urdf.parent.mkdir()
    urdf.write_text(identified.with_suffix(".urdf").read_text().replace("tool0", "hand"))
    run = str(identified.with_name("run.npz"))
    words = ["identify", run, "--robot", str(urdf), "--out", str(tmp_path / "found")]
    assert main(words) == 0
    given, found = twin.load(urdf), twin.load(tmp_path / "found")
    assert (found.name, found.tool_frame) == (f"{given.name}_identified", "hand")
    assert (found.tree.names, found.tree.links) == (given.tree.names, given.tree.links)
    assert found.frames.keys() == given.frames.keys()
    solution = physical_solution(twin.identify(given, log))
    rigid = found.with_drives("rigid")
    assert same_torques(solution.robot, rigid) < 1e-12
    assert same_torques(given, rigid) > 1e-2
    q, qd, qdd = np.linspace(-1, 1, 18).reshape(3, 6)
    torques = twin.inverse_dynamics(found, q, qd, qdd)
    for peer in (Pinocchio(found.urdf, found.joint_names), MuJoCo(found.urdf)):
        np.testing.assert_allclose(peer.inverse_dynamics(q, qd, qdd), torques, rtol=0, atol=1e-10)
    capsys.readouterr()
    # The folder is a robot of its own: another identification starts from it, and not over it.
    assert main([*words[:2], "--robot", str(tmp_path / "found"), "--out", str(tmp_path / "found")]) == 2
    assert "is a file of the given robot" in capsys.readouterr().err
    assert main([*words[:2], "--robot", str(tmp_path / "found"), "--out", str(tmp_path / "again")]) == 0
    assert twin.load(tmp_path / "again").with_drives("rigid").drives is not None


def test_of_two_files_none_appears_where_one_cannot(log, tmp_path, monkeypatch):
    solution = physical_solution(twin.identify(log.robot, log))
    (tmp_path / "arm.urdf").mkdir()
    with pytest.raises(OSError, match=r"arm\.urdf"):
        write_robot_file(solution, tmp_path / "arm.toml")
    assert [path.name for path in tmp_path.iterdir()] == ["arm.urdf"]


def test_what_is_written_is_what_is_tested_and_what_its_header_shows(irb140, tmp_path):
    """With an offset of the torques, which is in the file like all other friction."""
    robot = slides_as_it_starts(irb140)
    runs = [measured(robot, noise=5.0, seed=seed) for seed in (1, 2)]
    runs = [replace(run, tau=run.tau + 3.0, name=name) for run, name in zip(runs, "AB", strict=True)]
    found = twin.identify(believed(robot), runs[0], validate=[replace(runs[1], how="by another filter")])
    solution = physical_solution(found)
    again = twin.load(write_robot_file(solution, tmp_path / "arm.toml")[0]).with_drives("rigid")
    of_file = found.model.base.K @ TorqueModel(again).parameters.values
    for part, residuals in ((runs[0], solution.residuals_of_file), (runs[1], solution.validation)):
        expected = joint_residuals(triangles(found.model, [part]), of_file)
        np.testing.assert_allclose(residuals.rms, expected.rms, rtol=1e-9)
    np.testing.assert_allclose(again.drives.offset, solution.robot.drives.offset, rtol=1e-12)
    assert np.max(np.abs(again.drives.offset)) > 1.0

    text = (tmp_path / "arm.toml").read_text(encoding="utf-8")
    comment = comments(text)
    rows = zip(found.values, of_file.tolist(), solution.deviations.tolist(), strict=True)
    for one, value, deviation in rows:
        line = f"{one.stands_for} = {value:.6g} +- {deviation:.2g} {one.unit}"
        assert line in comment
    percent = ", ".join(f"{x:.3g}" for x in solution.validation.percent)
    source = robot_facts(tmp_path / "arm.toml")["source"]
    assert f"On validation recordings: {percent} % (B: by another filter)." in source


def test_header_has_the_whole_command_and_the_validation_filter(log, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [f"{name}{joint}" for name in ("q", "tau") for joint in range(1, 7)]
    every = slice(None, None, 3)
    rows = np.column_stack([log.t[every], np.degrees(log.q[every]) - 1.0, log.tau[every]])
    for name, part in (("a", rows), ("b", rows[: len(rows) // 2])):
        np.savetxt(f"{name}.csv", part, delimiter=",", header=",".join(["t", *names]), comments="")
    words = ["identify", "a.csv", "--robot", "irb140", "--angle-unit", "deg"]
    words += ["--q-offset", "1,1, 1,1,1,1", "--cutoff", "10", "--position-cutoff", "35", "--from", "0.1"]
    words += ["--validate", "b.csv", "--out", "arm.toml"]
    assert main(words) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "validation, b.csv: positions low-pass filtered at 35 Hz, torques and model at 10 Hz" in printed
    source = robot_facts(tmp_path / "arm.toml")["source"]
    command = source.partition("By `")[2].partition("`, 20")[0]
    assert shlex.split(command) == ["irb-twin", *words]
