"""Published items are complete, are confirmed, can fail, and are on the page."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from tests.published import __main__ as program
from tests.published.items import (
    Finding,
    Item,
    Row,
    against_printed,
    checked_item,
    computations,
    items,
    largest,
    rows,
)
from tests.published.norrlof import inverse as norrlof_inverse

COUNTS = {
    "Norrlöf 1999": {"reproduced": 46, "misprint": 21, "ambiguous": 5, "lost": 3},
    "Norrlöf, lecture 3": {"reproduced": 7, "misprint": 6, "lost": 1},
    "Aliaga 2019": {"reproduced": 17, "misprint": 6, "ambiguous": 1, "lost": 5},
    "Ljubljana manual": {"reproduced": 19, "misprint": 8, "ambiguous": 2, "lost": 7},
    "Kawasaki": {"reproduced": 6, "lost": 1},
}


@pytest.fixture(scope="module")
def computed():
    return list(rows())


def test_number_of_items_by_source_and_verdict():
    found = {source: Counter() for source in COUNTS}
    for item in items():
        found[item.source][item.verdict] += 1
    assert found == COUNTS
    assert len(items()) == 161


def test_every_item_is_computed_or_gives_a_reason():
    known = computations()
    for item in items():
        assert bool(item.text_only) != (item.id in known), item.id
    assert set(known) <= {item.id for item in items()}
    misprints = [item for item in items() if item.verdict == "misprint"]
    assert sum(not item.text_only for item in misprints) >= 30


def test_every_item_is_confirmed_and_every_misprint_has_an_error_above_1e_3(computed):
    assert not [f"{row.item.id}: {row.finding} {row.error}" for row in computed if not row.passes]
    for row in computed:
        if row.finding is not None and row.item.verdict == "misprint":
            assert row.finding.printed_residual > max(1e-3, 1e3 * row.item.tolerance), row.item.id
        if row.finding is not None and not np.size(row.item.expected):  # an equation
            assert row.item.tolerance <= 1e-9 or row.item.note, row.item.id


def made_up(**changes):
    item = Item("X-1", "source", "(1)", "a number", "reproduced", tolerance=0.1, expected=[1.0, float("nan")])
    return dataclasses.replace(item, **changes)


@pytest.mark.parametrize(
    ("verdict", "finding", "passes"),
    [
        ("reproduced", Finding(0, 0.1), True),
        ("reproduced", Finding(0, np.nextafter(0.1, 1)), False),
        ("reproduced", Finding(0, np.nan), False),
        ("misprint", Finding(0, 0.0, 2.0), True),
        ("misprint", Finding(0, 0.0, 1.9), False),
        ("misprint", Finding(0, 0.0), False),
        ("misprint", Finding(0, 0.2, 3.0), False),
        ("lost", None, False),
    ],
)
def test_residuals_decide_whether_a_verdict_is_confirmed(verdict, finding, passes):
    assert Row(made_up(verdict=verdict, least_error=2.0), finding).passes is passes


def test_lost_entries_are_ignored_and_computed_values_must_be_finite():
    assert against_printed(made_up(), [1.05, 7.0]).residual == pytest.approx(0.05)
    with pytest.raises(ValueError, match="'X-1': expected finite numbers of shape"):
        against_printed(made_up(), [1.0, np.nan])
    assert np.isnan(largest([0.0], [np.nan], [5.0]))


def test_row_that_raises_fails_without_stopping_the_others(monkeypatch):
    def broken(item):
        raise ValueError("no such pose\nand further lines")

    monkeypatch.setitem(computations(), "N-2.9", broken)
    found = list(rows([item for item in items() if item.id in ("N-2.8", "N-2.9")]))
    assert [row.passes for row in found] == [True, False]
    assert found[1].error == "ValueError: no such pose"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": ""}, "lacks 'id'"),
        ({"verdict": "true"}, "has the verdict 'true'; valid verdicts:"),
        ({"x": 1}, "unknown key 'x'; valid keys:"),
        ({"right": ""}, "or its right form"),
        ({}, "needs least_error above its tolerance"),
    ],
)
def test_incomplete_item_is_rejected(changed, message):
    entry = {"id": "X", "what": "w", "where": "1", "verdict": "misprint", "printed": "a", "right": "b"}
    with pytest.raises(ValueError, match=message):
        checked_item("x.toml", "source", entry | changed)


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


def test_failed_item_makes_the_program_return_1(monkeypatch, capsys):
    monkeypatch.setitem(computations(), "N-2.9", lambda item: Finding(0.0, 1.0, 5.0))
    assert program.main(["N-2.9"]) == 1
    assert "residual 1, expected at most 1e-12" in capsys.readouterr().out
