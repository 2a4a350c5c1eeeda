"""What the findings of a fit need: filtered recordings, drives, and a file to compare with."""

from types import SimpleNamespace

import numpy as np
import pytest

from twin.identification import model_faults


def test_exact_logs_and_mixtures_with_them_have_no_findings():
    filtered, exact = SimpleNamespace(low_pass=1.0), SimpleNamespace(low_pass=None)
    for measured in ([], [exact], [filtered, exact]):
        assert model_faults.model_findings(SimpleNamespace(measured=measured)) == []


@pytest.mark.parametrize(
    ("factors", "drives"), [(None, SimpleNamespace()), (np.array([1.0, 40.0]), None), (None, None)]
)
def test_the_unit_of_a_joint_needs_drives_and_a_file(factors, drives, monkeypatch):
    monkeypatch.setattr(model_faults, "_file_factors", lambda _: factors)
    robot = SimpleNamespace(n=2, active_drives=drives)
    found = SimpleNamespace(model=SimpleNamespace(robot=robot))
    assert model_faults._unit_of_a_joint(found, SimpleNamespace(), 0.0) is None


@pytest.mark.parametrize(("fall", "changes"), [(1e-3, 0), (100.0, 1)])
def test_a_sign_changes_only_where_the_residuals_fall_enough(fall, changes, monkeypatch):
    """The mean logarithm of the residuals falls if the torque of the first joint is flipped."""
    monkeypatch.setattr(model_faults, "friction_power", lambda *_: None)
    monkeypatch.setattr(model_faults, "in_deviations", lambda *_: np.zeros(2))
    monkeypatch.setattr(model_faults, "_rest", lambda *_: np.zeros(2))
    fit = SimpleNamespace(beta=None, covariance=None)
    other = SimpleNamespace(R=np.zeros(2), fit=lambda factors: (fit, -fall * (factors[0] < 0)))
    found = SimpleNamespace(model=None, measured=None)
    assert len(list(model_faults._signs(other, found, 0.0, np.zeros(2)))) == changes
