"""The pages "Arms" and "What is estimated" say what the files of the arms and the publications have."""

import importlib.util
import re

import numpy as np
import pytest

import twin
from tests.support.doc_pages import HOUSE
from tests.support.urdf_files import FILES
from twin.robot.quantities import CAD_SHARES

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


def test_origins_are_told_from_the_words_of_the_sources(arms):
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
