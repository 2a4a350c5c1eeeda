"""The command `irb-twin export-model`."""

import os

import mujoco
import numpy as np
import pytest
import trimesh

import twin
from scenarios.shell.command_line import main
from tests.support.foreign_urdf import chain, frame, robot


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("always::twin.errors.ExportWarning")
def test_both_files_are_written_and_state_what_they_leave_out(command):
    options = ["--drives", "rigid", "--payload", "5,0,0,0.1", "--mounting", "wall"]
    said = command(["export-model", "irb140", "--urdf", "a.urdf", "--mjcf", "a.xml", *options])
    assert said.out == "wrote a.xml\nwrote a.urdf\n"
    assert said.err.count("static friction above Coulomb friction") == 1
    assert said.err.count("irb-twin: warning: a URDF leaves out: drives; mounting\n") == 1
    assert len(said.err.splitlines()) == 2
    robot = twin.load("irb140").with_payload(twin.Payload(5.0, [0, 0, 0.1])).with_drives("rigid")
    np.testing.assert_allclose(twin.load("a.urdf").tree.inertias, robot.tree.inertias, rtol=1e-12, atol=1e-15)
    model = mujoco.MjModel.from_xml_path("a.xml")
    np.testing.assert_array_equal(model.opt.gravity, [-9.81, 0, 0])
    assert model.dof_armature[0] == pytest.approx(robot.drives.reflected_inertia[0, 0], rel=1e-15)
    assert model.body_mass.sum() == pytest.approx(robot.tree.inertias[:, 0].sum(), rel=1e-14)


@pytest.mark.filterwarnings("always::twin.errors.ExportWarning")
def test_meshes_and_tool_frame_of_a_foreign_urdf(command, folder, monkeypatch):
    """Meshes of a package are found by --package-path; the payload goes to the frame that is named."""
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    mesh = folder / "workspace" / "parts" / "box.stl"
    mesh.parent.mkdir(parents=True)
    trimesh.creation.box((1, 1, 1)).export(mesh)
    shape = '<visual><geometry><mesh filename="package://parts/box.stl"/></geometry></visual>'
    text = robot(chain(2), frame("hand", "link_2"), frame("probe", "link_2"))
    (folder / "arm.urdf").write_text(text.replace("</link>", f"{shape}</link>", 1))
    words = ["export-model", "arm.urdf", "--urdf", "out/arm.urdf", "--payload", "1", "--tool-frame", "probe"]
    (folder / "out").mkdir()
    assert "mesh package://parts/box.stl, which was not found" in command(words).err
    assert command([*words, "--package-path", str(folder / "workspace")]).err == ""
    assert (folder / "out" / "parts" / "box.stl").is_file()
    written = twin.load("out/arm.urdf", tool_frame="payload").frames
    np.testing.assert_allclose(written["payload"].T, written["probe"].T, atol=1e-15)
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)


def test_an_unknown_tool_frame_is_one_sentence(folder, capsys):
    (folder / "p.mod").write_text("MODULE p\nPROC main()\nENDPROC\nENDMODULE\n")
    message = "unknown link 'tool1' of irb140, did you mean 'tool0'?: known are link_1"
    for words in ("run joint_tracking", "rapid check p.mod", "reach", "export-model irb140 --urdf a.urdf"):
        assert main([*words.split(), "--tool-frame", "tool1"]) in (1, 2)
        assert message in capsys.readouterr().err


def test_a_run_finds_the_meshes_of_a_package(command, folder, monkeypatch):
    monkeypatch.setenv("ROS_PACKAGE_PATH", "/nowhere")
    words = ["run", "gravity_hold", "--duration", "0.002", "--package-path", "/elsewhere"]
    command(words)
    assert os.environ["ROS_PACKAGE_PATH"] == "/elsewhere"
