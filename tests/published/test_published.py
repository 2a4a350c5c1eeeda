"""Published items are complete, are confirmed, can fail, and are on the page."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

import twin
from tests.published import __main__ as program
from tests.published.items import Finding, Item, Row, computations, items, rows
from tests.published.norrlof import closed_form
from tests.published.norrlof import inverse as norrlof_inverse
from tests.support.random_trees import interpreted

pytestmark = pytest.mark.slow("computes what is published")

COUNTS = {
    "Norrlöf 1999": {"reproduced": 46, "misprint": 23, "ambiguous": 5, "lost": 3},
    "Norrlöf, lecture 3": {"reproduced": 7, "misprint": 7, "lost": 1},
    "Aliaga 2019": {"reproduced": 18, "misprint": 9, "ambiguous": 1, "lost": 6},
    "Ljubljana manual": {"reproduced": 19, "misprint": 11, "ambiguous": 2, "lost": 7},
    "Kawasaki": {"reproduced": 6, "misprint": 1, "lost": 1},
    "Siciliano et al. 2009": {"reproduced": 4},
    "Corke, Robotics Toolbox": {"reproduced": 4},
}


@pytest.fixture(scope="module")
def computed():
    return list(rows())


def test_every_item_is_computed_or_gives_a_reason_and_none_is_lost():
    found = {source: Counter(item.verdict for item in items() if item.source == source) for source in COUNTS}
    assert found == COUNTS
    assert len(items()) == 181
    for item in items():
        assert bool(item.text_only) != (item.id in computations()), item.id
    assert set(computations()) <= {item.id for item in items()}
    assert sum(not item.text_only for item in items() if item.verdict == "misprint") >= 30


def test_every_item_is_confirmed_and_every_misprint_has_an_error_above_1e_3(computed):
    assert not [f"{row.item.id}: {row.finding} {row.error}" for row in computed if not row.passes]
    for row in computed:
        if row.finding is not None and row.item.verdict == "misprint":
            assert row.finding.printed_residual > max(1e-3, 1e3 * row.item.tolerance), row.item.id
        if row.finding is not None and not np.size(row.item.expected):  # an equation
            assert row.item.tolerance <= 1e-9 or row.item.note, row.item.id


def test_residuals_decide_whether_a_verdict_is_confirmed():
    item = Item("X-1", "source", "(1)", "a number", "misprint", tolerance=0.1, least_error=2.0)
    confirmed = dataclasses.replace(item, verdict="reproduced")
    assert Row(confirmed, Finding(0, 0.1)).passes
    assert Row(item, Finding(0, 0.0, 2.0)).passes
    for wrong in (Row(confirmed, Finding(0, np.nan)), Row(item, Finding(0, 0.0, 1.9)), Row(item, None)):
        assert not wrong.passes


@pytest.mark.parametrize("name", ["N-2.29", "N-2.34", "N-2.38"])
def test_item_fails_if_an_elbow_solution_is_missing(monkeypatch, name):
    whole = norrlof_inverse.main_axis_angles

    def without(robot, p):
        theta = whole(robot, p)
        theta[:, [1, 3]] = np.nan
        return theta

    (item,) = (item for item in items() if item.id == name)
    monkeypatch.setattr(norrlof_inverse, "main_axis_angles", without)
    assert not next(rows([item])).passes


def test_page_is_up_to_date(computed):
    """If this fails, `python -m tests.published --write` updates the page."""
    assert program.PAGE.read_text(encoding="utf-8") == program.page(computed)


def test_chosen_items_are_printed_in_full(capsys):
    assert program.main(["N-2.9", "T-FK1"]) == 0
    text = capsys.readouterr().out
    assert "conj(q) / |q|^2" in text
    assert "2 published items (1 misprint, 1 reproduced; 2 computed, 0 text only): all confirmed" in text
    assert program.main(["N-9.9"]) == 2


# The closed form of Norrlöf's main axes, and the robot that it describes.
#
# `main_axes.py` compares the closed form with the library.  The numbers for `STATE`, one set of parameters,
# come from a separate Euler-Lagrange derivation, which agreed with Pinocchio on the same tree.


STATE = closed_form.MainAxes(
    *(4.1, 0.9, 1.3, 0.2, 0.35, 28.0, 35.0, 6.0, 11.0, 0.15, 0.6, -0.18),
    *(0.03, 0.24, 0.11, 0.07, 0.0, 0.31, -0.09, 0.02),
)
Q, QD = np.array([[0.3, -0.4, 0.7], [0.8, -1.1, 0.5]])
D_STATE = [[4.538867475792382, 0, 0], [0, 15.9146, -1.0935264790977486], [0, -1.0935264790977486, 2.5329]]
C_STATE = [
    [-1.3824426241950283, 0.9955060985746411, -0.021794781847834777],
    [-0.9955060985746411, 0, -1.1030089391650553],
    [0.021794781847834777, -2.4266196661631216, 0],
]
G_STATE = [0, 105.41142567247438, -30.22932192243496]


def test_closed_form_gives_the_numbers_of_a_separate_derivation():
    np.testing.assert_allclose(closed_form.mass_matrix(STATE, Q), D_STATE, atol=1e-14)
    np.testing.assert_allclose(closed_form.coriolis_matrix(STATE, Q, QD), C_STATE, atol=1e-14)
    np.testing.assert_allclose(closed_form.gravity_torque(STATE, Q), G_STATE, atol=1e-13)


def test_simplified_robot_has_the_same_gravity_torque_and_mass():
    """The simplification drops only offsets from the plane, so g is unchanged with the wrist at zero."""
    robot = interpreted(twin.load("irb1400"))
    arm = interpreted(closed_form.main_axes_robot(robot))
    q = np.random.default_rng(3).uniform(-1, 1, (50, 3))
    q_full = np.concatenate([q, np.zeros((50, 3))], axis=1)
    expected = twin.gravity_torque(robot, q_full)[:, :3]
    np.testing.assert_allclose(twin.gravity_torque(arm, q), expected, atol=1e-12 * np.max(np.abs(expected)))
    M, M_full = twin.mass_matrix(arm, q), twin.mass_matrix(robot, q_full)
    np.testing.assert_allclose(M[:, 1, 1:], M_full[:, 1, 1:3], rtol=1e-12, atol=1e-12)
    loaded = closed_form.main_axes_parameters(robot.with_payload(twin.Payload(5.0, (0, 0, 0.1))))
    assert loaded.m3 == pytest.approx(closed_form.main_axes_parameters(robot).m3 + 5.0, rel=1e-14)
