"""The IRB 1600: hollow boxes of steel against the CAD that they stand for, and a lecture's motors."""

from decimal import Decimal

import numpy as np
import pytest

import twin
from tests.support.effort_rule import BEYOND_FLANGE, paths_of
from tests.support.urdf_files import FILES
from twin.physics.trajectories.sampling import sample
from urdf import decimal_math
from urdf.facts import read
from urdf.solids import bulk

FILE = FILES["irb1600"]
STEEL = 7850.0  # kg/m^3
# Of a public STL conversion of ABB's CAD: volume in [mm^3], to 3 % (meshes not closed), centre in [m].
CAD = {
    "base": (28_826_542, (-0.10051, 0.0005, 0.06157)),
    "1": (40_104_652, (0.05059, -0.01159, 0.34288)),
    "2": (10_403_724, (0.15022, -0.18273, 0.79059)),
    "3": (16_338_996, (0.17078, 0.01843, 1.17353)),
    "4": (2_992_383, (0.62486, -0.00064, 1.18663)),
    "5": (181_204, (0.75, 0, 1.1865)),
    "6": (32_051, (0.79732, 0, 1.18712)),
}


@pytest.fixture(scope="module")
def bulks():
    with decimal_math.precisely():
        return {link: bulk(values) for link, values in read(FILE.toml, Decimal)["link"].items()}


def masses():
    return {link: FILE.body("base_link" if link == "base" else f"link_{link}").mass for link in CAD}


def test_walls_of_steel_make_up_the_mass(bulks):
    """One wall; at the density of steel it weighs what the data sheet says, to a tenth of a percent."""
    assert {values["solid"]["wall"] for values in FILE.facts["link"].values()} == {0.00858}
    volumes = {link: float(spread.volume) for link, spread in bulks.items()}
    assert STEEL * sum(volumes.values()) == pytest.approx(249.94, abs=5e-3)
    assert sum(masses().values()) == pytest.approx(250, abs=1e-12)
    densities = [masses()[link] / volume for link, volume in volumes.items()]
    np.testing.assert_allclose(densities, 250 / sum(volumes.values()), rtol=1e-15)


def test_masses_and_centres_are_near_those_of_the_cad(bulks):
    """As the file says; centres differ by 59 mm at most (base and column), those of the arms by 49."""
    told = {"base": 66, "1": 91, "2": 38, "3": 41, "4": 11.5, "5": 1.5, "6": 0.9}
    by_cad = {"base": 73, "1": 101, "2": 26, "3": 41, "4": 7.6, "5": 0.5, "6": 0.1}
    total = sum(volume for volume, _ in CAD.values())
    for link, (volume, com) in CAD.items():
        for mass, stated in ((masses()[link], told[link]), (250 * volume / total, by_cad[link])):
            assert abs(mass - stated) <= (1 if stated > 12 else 0.1) / 2, link
        distance = np.linalg.norm(np.array(bulks[link].com, float) - com)
        assert distance < (0.059 if link in ("base", "1") else 0.049), link


def test_effort_is_what_the_motors_give_and_carries_the_payload_along_every_scenario(irb1600):
    assert irb1600.tau_max.tolist() == irb1600.drives.torque_max.tolist() == [600, 1000, 500, 36, 36, 20]
    ratio = np.max(np.abs(irb1600.drives.ratio) * irb1600.qd_max / irb1600.drives.motor_speed_max)
    assert 0.95 < ratio < 1  # the motors reach the joints' speed limits
    dh = irb1600.dh
    assert dh.a[0] + dh.a[1] + dh.d[3] == pytest.approx(irb1600.rating.reach, abs=1e-15)
    loaded = irb1600.with_payload(twin.Payload(irb1600.rating.payload, (0, 0, BEYOND_FLANGE)))
    for path in paths_of(irb1600):
        samples = sample(path, 1e-3)
        tau = twin.inverse_dynamics(loaded, samples.q, samples.qd, samples.qdd)
        assert np.all(np.max(np.abs(tau), axis=0) < 0.9 * irb1600.tau_max)
