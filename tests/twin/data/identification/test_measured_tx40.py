"""A measured arm, a Stäubli TX40, identified from the command line as a user would, with a file of their own.

Geometry, gears and the published figures: GitHub `thanhndv212/figaroh-examples`, commit c0b5c7f, folder
`examples/staubli_TX40`, by Janot, Gautier and co-workers.  The percentages are those of two independent
implementations of its recipe, to a tenth.  Data of others, which are no part of this project.
"""

import json

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from tests.support.shared_data import shared_folder
from twin.data.identification import Filtering
from twin.data.identification.measurements import chosen_cutoff
from twin.data.identification.physical import pseudo_inertias
from twin.data.logs.recordings.columns import header_options

pytestmark = [
    pytest.mark.slow("fits recordings"),
    pytest.mark.shared,
    pytest.mark.filterwarnings("ignore:the residuals of joint"),
]

DH_TOML = """
name = "tx40"
title = "Stäubli TX40"
source = "figaroh-examples, c0b5c7f; its table of Craig's convention rewritten in the standard one"

[dh]
theta0_deg = [0, -90, 90, 0, 0, 0]
d = [0.320, 0, 0.035, 0.225, 0, 0]
a = [0, 0.225, 0, 0, 0, 0]
alpha_deg = [-90, 0, 90, -90, 90, 0]
source = "see above"

[links]
source = "masses: the URDF there; inertias: our estimate"

[drives]
ratio = [32, 32, 45, -48, 45, 32]
rotor_inertia = [3.54e-4, 3.54e-4, 4.88e-5, 1.36e-5, 2.31e-5, 1.0e-5]
coupling = [
    [1, 0, 0, 0, 0, 0],
    [0, 1, 0, 0, 0, 0],
    [0, 0, 1, 0, 0, 0],
    [0, 0, 0, 1, 0, 0],
    [0, 0, 0, 0, 1, 0],
    [0, 0, 0, 0, 1, 1],
]

[drives.source]
ratio = "see above"
rotor_inertia = "see above: reflected inertia over the ratio's square"
coupling = "the gear of motor 6 sits behind axis 5"
"""
MASSES = (10.5, 3.6, 4.07, 3.62, 1.02, 0.2)

OLS = (4.0, 4.0, 7.2, 7.2, 9.4, 8.6)
WLS = (4.2, 4.1, 7.0, 6.5, 9.4, 8.3)
HELD_OUT = (2.3, 2.0, 1.3, 0.53, 0.95, 0.67)  # N m
VISCOUS = (8.10, 5.57, 1.96, 1.109, 1.87, 0.653)
COULOMB = (6.98, 8.11, 6.36, 2.49, 2.99)
RECIPE = ("--cutoff", "10", "--position-cutoff", "50", "--row-rate", "100", "--from", "0.1", "--to", "7.4",
          "--min-speed", "0")  # fmt: skip


@pytest.fixture(scope="module")
def robot_file(tmp_path_factory):
    links = "".join(
        f"\n[link.{i + 1}]\nmass = {mass}\ninertia = [0.01, 0.01, 0.01, 0, 0, 0]\n"
        for i, mass in enumerate(MASSES)
    )
    path = tmp_path_factory.mktemp("tx40") / "tx40_dh.toml"
    path.write_text(DH_TOML + links, encoding="utf-8")
    return path


def identified(robot_file, *options):
    """Output of `irb-twin identify` for the measured run."""
    data, found = shared_folder(), robot_file.with_name("found.json")
    words = [
        "identify",
        f"{data}/tx40_motor_position.csv.gz",
        "--robot",
        str(robot_file),
        "--json",
        str(found),
    ]
    words += ["--torques", f"{data}/tx40_motor_torque.csv.gz", "--columns", "q*=Joint_*, tau*=Joint_*"]
    assert main([*words, "--sample-time", "0.0002", "--motor-side", "both", *options]) == 0
    return json.loads(found.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found(robot_file):
    return identified(robot_file, *RECIPE, "--both-sides", "--physical")


def test_sixty_one_base_parameters_explain_the_torques_as_published(found, capsys):
    assert found["rank"] == len(found["parameters"]) == 61
    assert found["condition"] < 30
    np.testing.assert_allclose(found["residuals_unweighted"]["percent"], OLS, rtol=0, atol=0.1)
    np.testing.assert_allclose(found["residuals"]["percent"], WLS, rtol=0, atol=0.1)


def test_friction_is_that_of_two_other_implementations(found):
    value = {one["symbol"]: one["value"] for one in found["parameters"]}
    viscous = [value[f"Fv{joint}"] for joint in range(1, 7)]
    viscous[4] += value["Fv6"]  # motor 6 turns with joint 5, too, which their Fv5 has in it
    viscous[5] += value["Fvo6"]
    np.testing.assert_allclose(viscous, VISCOUS, rtol=0.01)
    np.testing.assert_allclose([value[f"Fc{joint}"] for joint in range(1, 6)], COULOMB, rtol=0.02)


def test_inertia_at_joint_6_beside_that_of_its_motor_is_none(found):
    """Rotor 6 is all that joints 5 and 6 feel: a check of the coupling's sign, by the data."""
    (inertia,) = [one for one in found["parameters"] if one["symbol"] == "Jj6"]
    assert abs(inertia["value"]) < 2 * inertia["deviation"]
    (rotor,) = [one for one in found["parameters"] if one["symbol"] == "J6"]
    assert rotor["value"] == pytest.approx(1.0e-5, abs=2 * rotor["deviation"])


def test_physical_links_explain_the_torques_nearly_as_accurately(found):
    physical = found["physical"]
    growth = np.array(physical["residuals"]["rms"]) / found["residuals"]["rms"]
    assert np.all(growth <= 1.1)
    values = np.array([one["value"] for one in physical["parameters"]])
    assert np.all(np.linalg.eigvalsh(pseudo_inertias(values[:60].reshape(6, 10))) > 0)
    friction = [one for one in physical["parameters"] if one["name"].split()[-1] in ("viscous", "Coulomb")]
    assert len(friction) == 12
    assert all(one["value"] > 0 for one in friction)


def test_validation_part_is_predicted_and_a_cutoff_chosen_near_that_of_the_recipe(robot_file):
    data, robot = shared_folder(), twin.load(robot_file)
    columns = header_options("q*=Joint_*, tau*=Joint_*")
    form = twin.logs.TableForm(columns, f"{data}/tx40_motor_torque.csv.gz", "both", 2e-4)
    recording = twin.logs.read_torque_recording(f"{data}/tx40_motor_position.csv.gz", robot, form)
    assert chosen_cutoff(recording.q, recording.period) == pytest.approx(10.0, abs=0.5)
    recipe = {"filtering": Filtering(10.0, position_cutoff=50.0, row_rate=100.0), "min_speed": 0.0}
    found = twin.identify(robot, recording, start=0.1, split=4.6, end=7.4, both_sides=True,
                          deviations="white", **recipe)  # fmt: skip
    assert np.all(found.validation.rms <= HELD_OUT)
    assert np.all(found.validation.rms > 0.8 * np.array(HELD_OUT))
