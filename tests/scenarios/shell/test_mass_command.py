"""The command `irb-twin mass`."""

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh

import twin
from scenarios.shell.command_line import main


@pytest.fixture
def parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, size in (("a.stl", 0.1), ("b.stl", 0.2)):
        trimesh.creation.box([size] * 3).export(tmp_path / name)
    (tmp_path / "arm.urdf").write_text(
        """<robot name="arm">
        <link name="base"><visual><geometry><mesh filename="b.stl"/></geometry></visual></link>
        <link name="one"><visual><geometry><mesh filename="a.stl"/></geometry></visual></link>
        <joint name="turn" type="continuous"><parent link="base"/><child link="one"/><origin xyz="1 0 0"/>
        <axis xyz="0 0 1"/></joint></robot>""",
        encoding="utf-8",
    )


def test_meshes_have_one_density_each_and_are_joined(parts, command):
    words = ["--unit", "m", "--density", "1000", "500", "--json", "m.json"]
    assert "together" in command(["mass", "a.stl", "b.stl", *words]).out
    with open("m.json", encoding="utf-8") as file:
        bodies = json.load(file)["bodies"]
    assert [round(body["mass_kg"], 6) for body in bodies.values()] == [1.0, 4.0, 5.0]
    assert bodies["together"]["inertia_kg_m2"]["xx"] == pytest.approx((0.01 + 4 * 0.04) / 6, rel=1e-6)
    assert main(["mass", "a.stl", "--unit", "mm", "--mass", "3"]) == 0


def test_total_is_shared_by_volume_and_written(parts, command):
    assert "9 kg in 2 links" in command(["mass", "arm.urdf", "--total", "9", "--out", "weighed.urdf"]).out
    robot = twin.load("weighed.urdf")
    np.testing.assert_allclose([robot.tree.base_inertia[0], robot.tree.inertias[0, 0]], [8.0, 1.0], rtol=1e-6)


def test_a_mass_that_is_lost_is_stated(parts, capsys):
    text = Path("arm.urdf").read_text(encoding="utf-8")
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    for name, mass in (("gripper", 2.5), ("tool0", 0.0)):
        text = text.replace(
            "</robot>",
            f'<link name="{name}"><inertial><mass value="{mass}"/>{inertia}'
            f'<joint name="to_{name}" type="fixed"><parent link="one"/>'
            f'<child link="{name}"/></joint></robot>',
        )
    Path("arm.urdf").write_text(text, encoding="utf-8")
    assert main(["mass", "arm.urdf", "--total", "9", "--out", "weighed.urdf"]) == 0
    assert capsys.readouterr().err == (
        "irb-twin: link 'gripper' has 2.5 kg, but no <visual> shape to weigh: it gets no mass\n"
    )
    assert main(["mass", "weighed.urdf", "--total", "9"]) == 0
    assert capsys.readouterr().err == "", "its mass is 0 now"
