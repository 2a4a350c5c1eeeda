"""Numbers that no source has follow the stated rules; the pages of the arms say what their files have."""

import importlib.util
import math
import re
from functools import cache

import numpy as np
import pytest
from scipy.stats import qmc

import twin
from tests.support.doc_pages import HOUSE
from tests.support.effort_rule import BEYOND_FLANGE, OFF_AXIS_6, peak_torques
from tests.support.urdf_files import FILES
from twin.physics.robot.limits import folded
from twin.physics.robot.quantities import CAD_SHARES

pytestmark = pytest.mark.slow("builds and compiles arms")

JOINED = "irb120", "irb1200", "irb2400", "irb2600", "irb4600"
LECTURE = "irb1600", "irb1600_10"  # a lecture has their gears, motors and how heavy their rotors are
SHARES = {"irb140": 1.5, "irb1400": 1.5} | dict.fromkeys(JOINED, 0.57)
FAMILY = 118.461539, 100, 80, 60, 40
MAIN = np.arange(6) < 3


@pytest.fixture(scope="module", params=(*JOINED, *LECTURE))
def arm(request):
    return twin.load(request.param)


@pytest.fixture(scope="module")
def medians(arm):
    """Medians over the ranges with the rated payload: diagonal of the mass matrix, abs(gravity torque)."""
    q = qmc.scale(qmc.Sobol(6, scramble=False).random_base2(16), arm.q_min, arm.q_max)
    q = q[~folded(arm, q).any(axis=-1)]
    loaded = arm.with_payload(twin.Payload(arm.rating.payload, (OFF_AXIS_6, 0, BEYOND_FLANGE)))
    inertia = np.diagonal(twin.mass_matrix(loaded, q), axis1=1, axis2=2)
    return np.median(inertia, axis=0), np.median(np.abs(twin.gravity_torque(loaded, q)), axis=0)


@cache
def peaks_of(name):
    return peak_torques(twin.load(name))


def assert_rounded(stated, rule, digits, units=0.5):
    """Assert that numbers are those of the rule to half a unit of their last digit."""
    unit = 10.0 ** (np.floor(np.log10(rule)) - digits + 1)
    assert np.all(np.abs(stated - rule) <= (units + 1e-9) * unit), (stated, rule)


@pytest.mark.parametrize("name", SHARES)
def test_effort_is_the_rule_applied_to_the_scenarios(name):
    robot = twin.load(name)
    friction = robot.drives.coulomb + robot.drives.viscous * robot.qd_max if name == "irb2400" else 0
    expected = SHARES[name] * peaks_of(name) + friction
    assert robot.tau_max.tolist() == [math.ceil(tau) for tau in expected.tolist()]


def test_the_share_is_the_median_of_what_the_lecture_has(irb1600):
    shares = irb1600.tau_max / peaks_of("irb1600")
    found = [round(share, 2) for share in (np.median(shares), min(shares), max(shares))]
    assert found == [SHARES["irb2600"], 0.43, 0.74]


@pytest.mark.parametrize("name", JOINED)
def test_gears_and_motors_reach_the_speed_limits(name):
    robot = twin.load(name)
    drives = robot.drives
    ratio = [next((n for n in FAMILY if n * speed <= 100 * math.pi + 1e-6), 40) for speed in robot.qd_max]
    assert drives.ratio.tolist() == ratio
    assert set(drives.motor_speed_max) == {10 * math.ceil(0.105 * max(ratio * robot.qd_max))}
    given = drives.ratio * drives.motor_torque_max
    assert np.all((given >= robot.tau_max) & (given <= 1.08 * robot.tau_max))  # rounded up to two digits


def test_rotors_springs_and_damping_follow_their_rules(arm, medians):
    """Rotors are half of the arm's inertia, damping a twentieth of critical."""
    drives, (median_inertia, _) = arm.drives, medians
    J = np.diagonal(drives.reflected_inertia)
    assert_rounded(drives.rotor_inertia, 0.5 * median_inertia / drives.ratio**2, 3)
    assert_rounded(drives.stiffness, np.where(MAIN, 115, 200) * arm.tau_max, 3)
    reduced = J * median_inertia / (J + median_inertia)
    assert_rounded(drives.damping, 0.1 * np.sqrt(drives.stiffness * reduced), 2)


def test_friction_follows_its_rule_and_is_the_published_on_the_irb2400(arm):
    """The published friction of the IRB 2400 beside the rule, as docs/estimated.md states."""
    drives = arm.drives
    coulomb = np.where(MAIN, 0.045, 0.09) * arm.tau_max
    viscous = np.where(MAIN, 0.10, 0.15) * arm.tau_max / arm.qd_max
    if arm.name != "irb2400":
        assert_rounded(drives.coulomb, coulomb, 2)
        assert_rounded(drives.static, np.where(MAIN, 1.5, 2.0) * coulomb, 2, units=0.81)  # of a rounded one
        assert_rounded(drives.viscous, viscous, 2)
        return
    assert drives.coulomb.tolist() == [24.2, 31.2, 16.9, 7.9, 13.7, 8.8]
    assert drives.static.tolist() == [36.3, 39.2, 25.3, 19.2, 39.7, 17.5]
    assert drives.viscous.tolist() == [11.85, 8.323, 9.3613, 7.1228, 7.2654, 2.323]
    assert drives.stribeck_speed.tolist() == [0.0085, 0.0031, 0.0094, 0.0175, 0.0176, 0.0162]
    assert np.round(drives.coulomb / coulomb, 1).tolist() == [0.6, 0.9, 0.6, 0.9, 1.5, 1.8]
    assert np.round(drives.viscous / viscous, 1).tolist() == [0.4, 0.3, 0.4, 3.0, 3.0, 2.2]


def test_the_page_has_peaks_accelerations_of_the_tool_and_times_to_the_speed_limits(arm, medians):
    """Along the axes of the base, with rotors; against weight, Coulomb and viscous friction."""
    lines = (HOUSE / "docs" / "estimated.md").read_text(encoding="utf-8").splitlines()
    torques, figures = (
        line.strip("| ").split(" | ")[1:] for line in lines if line.startswith(f"| `{arm.name}`")
    )
    peaks = zip(np.round(peaks_of(arm.name)), arm.tau_max, strict=True)
    assert torques == [f"{peak:.0f} → {limit:g}" for peak, limit in peaks]
    q = arm.poses[arm.tour[0]]
    ways = np.linalg.solve(twin.jacobian(arm, q), np.vstack([np.eye(3), np.zeros((3, 3))])).T
    cells = []
    for mass in (1.0, arm.rating.payload):
        loaded = arm.with_drives("rigid").with_payload(twin.Payload(mass, (0, 0, 0)))
        tau = np.array([*ways, *-ways]) @ twin.mass_matrix(loaded, q).T
        rest = arm.tau_max - np.sign(tau) * twin.gravity_torque(loaded, q)
        found = np.min(rest / np.maximum(np.abs(tau), 1e-9), axis=1)
        cells.append(f"{min(found):.0f} to {max(found):.0f}")
    drives, (inertia, weight) = arm.drives, medians
    lag = (inertia + np.diagonal(drives.reflected_inertia)) / drives.viscous
    top = (arm.tau_max - weight - drives.coulomb) / drives.viscous  # the speed that it would tend to
    times = -lag * np.log(1 - arm.qd_max / top)
    assert figures == [*cells, *(f"{time:.2f}" for time in times[:3])]


# The pages "Arms" and "What is estimated".


DOCS = HOUSE / "docs"


@pytest.fixture(scope="module")
def arms():
    """The script of the build that makes the tables."""
    spec = importlib.util.spec_from_file_location("arms", DOCS / "arms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(text):
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line
    ]


def test_every_table_has_every_arm_and_its_numbers(arms):
    assert arms.MARK in (DOCS / "guides" / "arms.md").read_text(encoding="utf-8").splitlines()
    tables = arms.tables().split("## ")[1:]
    assert len(tables) == 4
    for table in tables:
        assert sorted(name.strip("`") for name, *_ in rows(table)[2:]) == list(twin.robot_names())
    for name, mass, *parts, _ in rows(tables[2])[2:]:
        weights = [float(part) for part in parts if part]
        assert sum(weights) == pytest.approx(float(mass), rel=2e-3)
        assert float(mass) == FILES[name.strip("`")].facts.get("mass", float(mass))


def test_origins_follow_from_the_words_of_the_sources(arms):
    of = {arm["name"]: dict(zip(arms.ORIGINS, arms.origins(arm), strict=True)) for arm in arms.arms()}
    assert of["irb140"]["coupling of the motors"] == of["irb140"]["Coulomb friction"] == "published"
    assert of["irb140"]["torques"] == of["irb120"]["torques"] == "estimate"
    assert of["irb1600"]["torques"] == "published"
    assert of["irb1400"]["stiffness"] == of["irb1600_10"]["torques"] == "in part"
    assert of["irb120"]["coupling of the motors"] == "none"


def test_the_worth_of_shares_of_volume_follows_from_its_table():
    """Ratios, root mean squares of their logarithms, and the range that `sweep --list` names."""
    text = (DOCS / "estimated.md").read_text(encoding="utf-8").partition("## What shares")[2]
    found = np.array([[float(cell) for cell in row[1:]] for row in rows(text)[2:10]])
    ratios = found[:, 0] / found[:, 1]
    np.testing.assert_allclose(found[:, 2], ratios, rtol=0, atol=0.0051)
    main, wrist = (np.sqrt(np.mean(np.log(part) ** 2)) for part in (ratios[:5], ratios[5:]))
    words = " ".join(text.split())
    assert f"is {main:.2f} for the first five rows, a factor of {np.exp(main):.1f}" in words
    assert f"and {wrist:.2f} for the other three, a factor of {np.exp(wrist):.1f}" in words
    percent = round(10 * (np.exp(main) - 1)) * 10
    assert f"known to some {percent} %" in words
    assert re.search(rf"mass=\+-{percent}%:each", words)
    assert f"+-{percent}%:each" in CAD_SHARES
    boxes, shares = (
        [FILES[name].body(f"link_{i}").mass for i in "123"] for name in ("irb1600", "irb1600_10")
    )
    off = [round(100 * (a / b - 1)) for a, b in zip(boxes, shares, strict=True)]
    assert f"{min(off)} to {max(off)} %" in words
