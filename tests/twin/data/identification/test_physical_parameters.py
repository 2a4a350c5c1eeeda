"""Parameters that bodies can have, nearest to what recordings tell: possible, least, unmoved where right."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.identified_arms import believed, measured
from twin.data.identification.excitation import stored_excitation
from twin.data.identification.physical import physical_solution, possible_bodies, pseudo_inertias
from twin.data.identification.torque_model import TorqueModel
from twin.physics.multibody.tree import inertial_parameters
from twin.physics.robot.drives.drives import Drives


@pytest.fixture(scope="module")
def true(irb140):
    """An arm whose friction is no higher at rest."""
    return irb140.with_drives("rigid", replace(irb140.drives, static=irb140.drives.coulomb))


@pytest.fixture(scope="module")
def noisy(true):
    """Solution for so much noise that the free fit is physically impossible."""
    return physical_solution(twin.identify(believed(true), measured(true, noise=20.0)))


def eigenvalues(solution):
    return np.linalg.eigvalsh(pseudo_inertias(solution.robot.tree.inertias))


def test_a_pseudo_inertia_is_that_of_the_masses():
    """Return the pseudo-inertia of points by its definition: the sum of m r r^T, with r = (x, y, z, 1)."""
    rng = np.random.default_rng(3)
    masses, points = rng.uniform(1, 2, 5), rng.normal(size=(5, 3))
    body = sum(inertial_parameters(m, r, np.zeros((3, 3))) for m, r in zip(masses, points, strict=True))
    r = np.column_stack((points, np.ones(5)))
    np.testing.assert_allclose(pseudo_inertias(body), (r * masses[:, None]).T @ r, rtol=0, atol=1e-14)


def test_without_noise_the_arm_is_found_from_a_wrong_one(true):
    solution = physical_solution(twin.identify(believed(true), measured(true)))
    base = solution.found.model.base
    expected = base.K @ TorqueModel(true).parameters.values
    np.testing.assert_allclose(base.K @ solution.pi, expected, rtol=1e-10, atol=1e-10)
    assert np.all(eigenvalues(solution) > 0)
    assert np.max(solution.residuals.percent) < 1e-8


def test_what_the_robot_that_was_given_has_right_stays(true):
    """No direction moves, open ones as the mass of link 1 least of all."""
    found = twin.identify(true, measured(true))
    known = found.model.parameters.values
    np.testing.assert_allclose(physical_solution(found).pi, known, rtol=1e-8, atol=1e-10)


def test_under_noise_links_and_drives_are_possible_where_the_free_solution_is_not(noisy):
    free = {one.symbol: one.value for one in noisy.found.values}
    assert min(free["Ixx6"], free["J4"], free["J5"], free["J6"]) < 0
    assert np.all(eigenvalues(noisy) > 0)
    drives = noisy.robot.drives
    assert np.all((drives.rotor_inertia > 0) & (drives.viscous > 0) & (drives.coulomb > 0))
    assert np.all(noisy.growth < 1.1)
    assert np.linalg.norm(noisy.found.residuals.rms) < np.linalg.norm(noisy.residuals.rms)


def test_nothing_near_is_better(noisy):
    """The objective, written down anew, grows in every direction, by the square of how far one goes.

    Friction and rotors that the recordings alone determine to be more than e times what is given, by two
    deviations, are centred at that bound over e: here rotor 6, to which the fit gives 36 times its size.
    """
    found = noisy.found
    K, parameters = found.model.base.K, found.model.parameters
    information = np.linalg.inv(found.fit.covariance)
    start = parameters.values.copy()
    friction = np.array([name[:2] in ("Fv", "Fc") or name[0] == "J" for name in parameters.symbols])
    offsets = np.array([name[:2] == "F0" for name in parameters.symbols])
    sizes = found.residuals.torque_rms
    bounds = (found.beta - 2.0 * np.sqrt(np.diag(found.fit.covariance))) / np.e
    for column, row, bound in zip(found.model.base.columns, K, bounds, strict=True):
        if friction[column] and np.count_nonzero(row) == 1 and bound > start[column]:
            assert parameters.symbols[column] == "J6"
            start[column] = bound

    def objective(pi):
        away = K @ pi - found.beta
        value = 0.5 * away @ information @ away + 0.5 * np.sum((pi[offsets] / sizes) ** 2)
        for after, before in zip(pi[:60].reshape(6, 10), start[:60].reshape(6, 10), strict=True):
            ratio = np.linalg.solve(pseudo_inertias(before), pseudo_inertias(after))
            value += np.trace(ratio) - np.linalg.slogdet(ratio)[1] - 4
        ratio = pi[friction] / start[friction]
        return value + np.sum(ratio - np.log(ratio) - 1)

    rng = np.random.default_rng(0)
    least = objective(noisy.pi)
    for _ in range(30):
        step = rng.normal(size=len(start)) * 1e-4 * np.abs(noisy.pi)
        forward, back = objective(noisy.pi + step), objective(noisy.pi - step)
        assert min(forward, back) > least
        assert abs(forward - back) < 0.02 * (forward + back - 2 * least)


def test_a_payload_stays_what_it_is_and_the_arm_behind_it_is_possible(true):
    loaded = true.with_payload(twin.Payload(6.0, (0.0, 0.0, 0.08)))
    found = twin.identify(believed(true).with_payload(loaded.payload), measured(loaded, 5.0))
    solution = physical_solution(found)
    robot = solution.robot
    assert np.all(np.linalg.eigvalsh(pseudo_inertias(robot.bare.inertias)) > 0)
    np.testing.assert_allclose(robot.tree.inertias[5] - robot.bare.inertias[5],
                               loaded.tree.inertias[5] - loaded.bare.inertias[5], atol=1e-12)  # fmt: skip
    np.testing.assert_allclose(robot.tree.inertias.ravel(), solution.pi[:60], rtol=1e-12)


def test_links_that_are_none_or_impossible_become_bodies_and_others_stay(irb140):
    point = inertial_parameters(2.0, np.array([0.1, 0.2, 0.3]), np.zeros((3, 3)))
    without_mass = np.array([0, 0, 0, 0, 0.1, 0.1, 0.1, 0, 0, 0.0])
    given = np.array([np.zeros(10), point, without_mass, *irb140.tree.inertias])
    bodies = possible_bodies(given)
    assert np.all(np.linalg.eigvalsh(pseudo_inertias(bodies)) > 0)
    np.testing.assert_array_equal(bodies[3:], irb140.tree.inertias)
    np.testing.assert_allclose(bodies[1, :4], point[:4], rtol=1e-4)


VISCOUS = np.array([1850.0, 2600.0, 1400.0, 300.0, 150.0, 80.0])  # N m s/rad
SLOWER = 4.0


@pytest.fixture(scope="module")
def large(irb140):
    """An arm of some tonnes that rubs as such arms do."""
    tree = replace(irb140.tree, inertias=50.0 * irb140.tree.inertias)
    drives = Drives(np.ones(6), np.zeros(6), coulomb=VISCOUS / 3.0, viscous=VISCOUS, static=VISCOUS / 3.0)
    return replace(irb140, tree=tree, drives=None, file=None).with_drives("rigid", drives)


def recorded(large, rate, offset=0.0, noise=0.01):
    """A slow motion of 40 s at some rows a second, torques with noise, in parts of themselves."""
    t = np.arange(0.0, 40.0, 1.0 / rate)
    motion = replace(stored_excitation(twin.load("irb140")), periods=2)(t / SLOWER)
    q, qd, qdd = (part / SLOWER**order for order, part in enumerate(motion))
    tau = twin.inverse_dynamics(large, q, qd, qdd) + offset
    size = noise * np.sqrt(np.mean(tau**2, axis=0))
    return twin.logs.torque_recording(t, q, tau + size * np.random.default_rng(0).normal(size=q.shape))


def parameter(solution, symbol):
    symbols = solution.found.model.parameters.symbols
    return np.array([solution.pi[symbols.index(f"{symbol}{joint}")] for joint in range(1, 7)])


def test_friction_of_a_large_arm_whose_file_has_none_is_that_of_the_free_fit(large):
    """Also of few rows, which determine friction less well."""
    found = twin.identify(replace(large, drives=None), recorded(large, 5))
    free = {one.symbol: one for one in found.values}
    solution = physical_solution(found)
    viscous = parameter(solution, "Fv")
    np.testing.assert_allclose(viscous, [free[f"Fv{joint}"].value for joint in range(1, 7)], rtol=0.06)
    np.testing.assert_allclose(viscous, VISCOUS, rtol=0.25)
    # 58 parameters absorb 8 % of the noise of 372 equations, and more of it in single joints
    assert np.all(solution.growth < 1.2)


def test_offsets_friction_and_masses_are_found_wherever_they_are_thought_to_be(large):
    """An offset of 500 N m, a file whose friction is a thousandth, and one without masses."""
    found = twin.identify(replace(large, drives=None), recorded(large, 20, 500.0))
    np.testing.assert_allclose(parameter(physical_solution(found), "F0"), 500.0, rtol=0.1)
    none = replace(large.tree, inertias=np.zeros((6, 10)))
    for known in (
        replace(large, drives=replace(large.drives, viscous=VISCOUS / 1e3, coulomb=VISCOUS / 1e3)),
        replace(large, drives=None, inertia_fault="unknown", tree=none),
    ):
        solution = physical_solution(twin.identify(known, recorded(large, 20)))
        assert np.all(solution.growth < 1.1)
        np.testing.assert_allclose(parameter(solution, "Fv"), VISCOUS, rtol=0.05)
    assert 0.3 < np.sum(solution.robot.tree.inertias[:, 0]) / np.sum(large.tree.inertias[:, 0]) < 3.0


def test_without_noise_friction_is_found_to_round_off_where_the_file_has_none(true):
    known = replace(true, drives=replace(true.drives, coulomb=np.zeros(6), viscous=np.zeros(6)))
    solution = physical_solution(twin.identify(known, measured(true)))
    for symbol, expected in (("Fv", true.drives.viscous), ("Fc", true.drives.coulomb)):
        np.testing.assert_allclose(parameter(solution, symbol), expected, rtol=1e-9)


def test_deviations_are_those_of_possible_links(noisy, true):
    """Deviations equal those of the free fit for determined parameters, and are smaller for the others.."""
    clear = physical_solution(twin.identify(true, measured(true, noise=1e-4)))
    np.testing.assert_allclose(clear.deviations, clear.found.deviations, rtol=0.05)
    ratio = noisy.deviations / noisy.found.deviations
    assert np.all(ratio < 1.0)
    assert np.min(ratio) < 0.2
