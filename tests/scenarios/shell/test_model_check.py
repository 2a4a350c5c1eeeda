"""`irb-twin check-model`: its exit status, what it prints, and robots of this project and of others."""

import json
from pathlib import Path

import numpy as np
import pybullet_data
import pytest
from PIL import Image

import twin
from scenarios.judging import agreement
from scenarios.report.model_report import Report
from scenarios.shell.command_line import main
from tests.support.small_robots import SOUND
from twin.base.errors import RobotError
from twin.physics.robot.model_check import check_model

pytestmark = pytest.mark.slow("runs commands")

DATA = Path(pybullet_data.getDataPath())
OTHERS = sorted(path for path in DATA.rglob("*.urdf") if "random_urdfs" not in path.parts)
OTHERS = [*{path.parent: path for path in OTHERS}.values(), DATA / "random_urdfs" / "500" / "500.urdf"]
"""Files of others: one of each folder."""

ISOLATED = agreement.isolated_agreement
CYLINDER, MESH = '<cylinder radius="0.05" length="0.2"/>', '<mesh filename="one.stl"/>'


@pytest.fixture(autouse=True)
def here(monkeypatch):
    """Engine and model are compared in this process, which is sooner done, and can be tampered with."""
    monkeypatch.setattr(agreement, "isolated_agreement", lambda path: agreement.agreement(twin.load(path)))


@pytest.fixture
def in_a_process(monkeypatch):
    """Engine and model are compared in a separate process, which takes a second."""
    monkeypatch.setattr(agreement, "isolated_agreement", ISOLATED)


@pytest.fixture
def write(tmp_path):
    def written(text=SOUND):
        path = tmp_path / "arm.urdf"
        path.write_text(text, encoding="utf-8")
        return path

    return written


@pytest.fixture
def checked(write, tmp_path, capsys):
    """Function that checks a robot's file; exit status, output, and document with the results."""

    def run(text=SOUND):
        results = tmp_path / "check.json"
        status = main(["check-model", str(write(text)), "--json", str(results)])
        printed = capsys.readouterr()
        assert printed.err == ""
        return status, " ".join(printed.out.split()), json.loads(results.read_text(encoding="utf-8"))

    return run


@pytest.mark.usefixtures("in_a_process")
def test_nothing_wrong(checked):
    status, printed, document = checked()
    expected = (
        "arm: 2 moving joints, 4 kg, base 'base'", "-57.3 to 57.3 deg", "0 to 0.2 m",
        "acceleration in one step, PyBullet - model, relative", "no findings: the check passes",
    )  # fmt: skip
    assert (status, [text for text in expected if text not in printed]) == (0, [])
    assert document["passes"]
    assert document["joints"][1]["range"] == [0.0, 0.2]
    assert document["links"][0]["mass_kg"] == 3.0
    assert document["agreement"]["step"] < 1e-12


def test_an_error_is_exit_status_1_and_a_warning_is_not(checked):
    status, printed, document = checked(SOUND.replace('value="3"', 'value="nan"'))
    assert status == 1
    assert "error: link 'one' has mass nan kg" in printed
    assert "the check FAILS" in printed
    assert not document["passes"]
    assert document["agreement"] is None
    assert document["links"][0]["mass_kg"] is None
    assert document["findings"][0]["severity"] == "error"
    status, printed, _ = checked(SOUND.replace('effort="5"', ""))
    assert (status, "1 warning: the check passes" in printed) == (0, True)


def test_a_disagreement_is_wrong_and_so_is_an_engine_that_is_not_itself(checked, write, monkeypatch):
    """As if the engine had twice the gravity, and as if another engine had another robot."""
    measure, seen = agreement._in_engine, []
    monkeypatch.setattr(
        agreement, "_in_engine", lambda r, *state: measure(r.with_gravity((0, 0, -19.62)), *state)
    )
    status, printed, _ = checked()
    assert status == 1
    assert "no findings, and PyBullet disagrees: the check FAILS" in printed

    def restless(*state):
        seen.append(state)
        accelerations, poses = measure(*state)
        return accelerations * (1 + 1e-9 * (len(seen) - 1)), poses

    monkeypatch.setattr(agreement, "_in_engine", restless)
    assert not Report(write()).passes
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("does", "told"),
    [
        ("import os; os.kill(os.getpid(), 9)", "crashed, its process ended with status -"),
        ("import time; time.sleep(60)", "did not end within 2 s"),
    ],
)
@pytest.mark.usefixtures("in_a_process")
def test_a_comparison_that_crashes_or_hangs_is_a_finding(checked, tmp_path, monkeypatch, does, told):
    (tmp_path / "sitecustomize.py").write_text(does)  # which the other process runs as it starts
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(agreement, "TIMEOUT", 2.0)
    status, printed, _ = checked()
    assert status == 1
    assert f"error: the comparison with PyBullet {told}" in printed
    assert "the check FAILS" in printed


def test_names_that_look_like_markup_are_shown_and_ranges_without_meaning_not_gone_through(checked, write):
    text, names = SOUND, {"turn": "[red]turn[/x]", "one": "[/]one", "arm": "[b]arm"}
    for name, odd in names.items():
        text = text.replace(f'"{name}"', f'"{odd}"')
    status, printed, _ = checked(text)
    assert (status, [odd for odd in names.values() if odd not in printed]) == (0, [])
    endless = SOUND.replace('lower="-1" upper="1"', 'lower="-1e16" upper="1e16"')
    report = Report(write(endless.replace('upper="0.2"', 'upper="1e9"')))
    assert report.agreement is not None
    assert report.agreement.passes


def test_links_of_a_table_have_their_moments_about_their_centres():
    link = check_model(twin.load("two_link").file).parts.links[2]
    np.testing.assert_allclose([*link.moments, *link.com], [0, 1 / 12, 1 / 12, 0.5, 0, 0], atol=1e-16)


def test_a_damaged_mesh_is_an_error_and_a_missing_one_a_warning(write, monkeypatch):
    """A missing mesh is not drawn; the motion is compared nevertheless."""
    report = Report(write(SOUND.replace(CYLINDER, MESH)))
    assert report.passes
    assert report.agreement is not None
    assert "'one.stl': no such file" in report.findings[0].text
    path = write(SOUND.replace(CYLINDER, MESH.replace("one", "cut")))
    path.with_name("cut.stl").write_text("solid cut\nfacet normal", encoding="utf-8")
    monkeypatch.setattr(agreement, "isolated_agreement", ISOLATED)
    report = Report(path)
    assert not report.passes
    assert "cannot be drawn: the mesh file" in report.findings[0].text


FOUND = {
    "manutec_r3": [
        "link 'link_6': the centre of mass lies outside the link, by 0.0866 m for a size of 0.125 m"
    ],
    "youbot3": [
        "link 'link_1': moved by a joint, but massless",
        "links 'link_2', 'link_3': the centre of mass lies outside the link",
        "unphysical, as stated in the file: link 1 has inertia and no mass",
    ],
}
WEIGHED = (*twin.robot_names(), "two_link", "youbot", *FOUND)


@pytest.mark.parametrize("name", [*twin.robot_names(), *twin.robot.laboratory_names()])
def test_the_robots_of_this_project(name):
    report = Report(twin.load(name).file)
    assert report.passes
    assert (report.agreement is None) == (not report.check.robot.has_inertia)
    told = [finding.text for finding in report.findings if "assumed to be" not in finding.text]
    expected = FOUND.get(name, [] if name in WEIGHED else ["no masses: only kinematics, no simulation"])
    assert [text[: len(start)] for text, start in zip(told, expected, strict=True)] == expected
    assert name not in twin.robot_names() or report.findings == []


def test_a_picture_shows_the_arm(tmp_path, irb1400, capsys):
    """Orange on white, beside passive joints and loops; a robot without masses has none: status 1."""
    picture = tmp_path / "arm.png"
    assert main(["check-model", str(irb1400.file), "--picture", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "revolute, passive" in printed
    assert "closed loops: parallelogram (link_rod and link_3 share a point)" in printed
    with Image.open(picture) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    assert 0.02 < np.mean(pixels[..., 0] - pixels[..., 2] > 100) < 0.5
    table = str(twin.load("rx90").file)
    assert main(["check-model", table, "--picture", str(tmp_path / "no.png")]) == 1
    assert "no.png: robot 'rx90' has no dynamics" in capsys.readouterr().err
    assert not (tmp_path / "no.png").exists()


def test_a_loop_that_does_not_stay_closed_is_a_finding(irb1400, tmp_path):
    for name in ("robot.toml", "irb1400.urdf"):
        text = irb1400.file.with_name(name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("q = [0, -1, 1,", "q = [0, -1, 2,", 1), encoding="utf-8")
    check = check_model(tmp_path / "robot.toml")
    assert check.robot is None
    assert check.findings[0].severity == "error"
    assert check.findings[0].text.startswith("loop 'parallelogram'")


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: str(path.relative_to(DATA)))
def test_files_of_others_leave_no_traceback(path):
    """Findings or one sentence; where the twin cannot use the file, a finding says why."""
    try:
        check = check_model(path)
    except RobotError as error:
        told = str(error)
    else:
        assert check.robot is not None or not check.sound
        told = " ".join(finding.text for finding in check.findings)
    assert "\n" not in told
    assert "nan" not in told


@pytest.mark.parametrize(
    "name",
    [
        "kuka_iiwa/model.urdf", "franka_panda/panda.urdf", "racecar/racecar.urdf", "r2d2.urdf",
        "pr2_gripper.urdf", "a1/a1.urdf", "quadruped/minitaur.urdf", "differential/diff_ring.urdf",
        "xarm/xarm6_robot.urdf",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning:trimesh")  # of a sphere of radius 0
def test_robots_of_others_are_one_robot_in_engine_and_model(name):
    """Gears far denser than lead, and inertias that are impossible, do not pass."""
    report = Report(DATA / name)
    assert report.passes == (name not in ("differential/diff_ring.urdf", "xarm/xarm6_robot.urdf"))
    if report.agreement is not None:
        assert report.agreement.passes
        assert report.agreement.step < 1e-12


def test_an_unexpanded_macro_is_named(capsys):
    assert main(["check-model", str(DATA / "husky" / "husky.urdf")]) == 2
    assert "joint 'imu_joint' has <origin xyz='$(optenv HUSKY_IMU_XYZ" in capsys.readouterr().err
