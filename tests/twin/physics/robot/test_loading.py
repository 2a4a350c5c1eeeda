"""A robot with passive joints and a loop: what its URDF and its robot.toml must agree on."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from scenarios.judging.motion_range import random_positions
from tests.support.urdf_files import FILES
from twin.base.errors import RobotError
from twin.physics.multibody.tree import Loop, frozen
from twin.physics.robot import loading, loops


@pytest.fixture(scope="module")
def arm():
    return twin.load("irb1400")


@pytest.fixture
def altered(arm, tmp_path):
    """Load a copy of the robot with text replaced in robot.toml, or in another of its files."""

    def load(*replacements, file="robot.toml"):
        for name in ("robot.toml", "irb1400.urdf"):
            text = arm.urdf.with_name(name).read_text()
            for old, new in replacements if name == file else ():
                assert old in text
                text = text.replace(old, new, 1 if name == "robot.toml" else -1)
            (tmp_path / name).write_text(text)
        return twin.load(tmp_path / "robot.toml")

    return load


def refused(message):
    return pytest.raises(RobotError, match=message)


def test_a_limit_that_differs_from_the_urdf_is_rejected(altered):
    """The limit of the URDF would apply regardless of robot.toml."""
    rod = "-1, 0, 0, 0]\nrange_deg = [-"
    for old, new, told in (
        ("[-170, -70", "[-170, -71", r"q_min_deg of joint_2 is -71 degrees, in irb1400\.urdf -70 degrees"),
        ("115, 300]", "115, 200]", r"q_max_deg of joint_6 is 200 degrees, in irb1400\.urdf 300 degrees"),
        ("[120, 120, 120, 2", "[120, 120, 130, 2", "qd_max_deg_s of joint_3 is 130 degrees/s, .* 120 deg"),
        ("[701, 896", "[701, 897", r"effort of joint_2 is 897 N m, in irb1400\.urdf 896 N m"),
        ("[-75, 75]", "[-75, 80]", r"joint\.joint_elbow\.range_deg is 80 degrees, .* 75"),
        (f"{rod}75", f"{rod}60", r"joint\.joint_rod\.range_deg is -60"),
    ):
        with refused(rf"{told}.*; write the URDF again with python -m urdf\.build"):
            altered((old, new))


def test_passive_joints_without_a_loop_that_holds_them_are_rejected(arm, altered):
    """The engine would let the passive joints swing freely, while the model makes them follow the motors."""
    text = arm.file.read_text()
    loop = text[text.index("[loop.parallelogram]") : text.index("[rating]")]
    ends = "1.075], [-0.020, 0, 1.075]]"
    pin = [(ends, ends.replace("1.075", "0.475")), ('["rod", "3"]', '["rod", "lever"]')]
    for changes in ([(loop, "")], pin):  # lever and rod already share the pin between them
        with refused("neither a motor nor a closed loop moves joint_elbow and joint_rod"):
            altered(*changes)


def test_the_error_names_only_the_free_joint(arm):
    for links, free in ((("link_rod", "link_1"), "joint_elbow"), (("link_3", "link_1"), "joint_rod")):
        loop = Loop("odd", tuple(map(arm.tree.links.index, links)), frozen([[0.1, 0.2, 0.3]] * 2))
        with refused(f"neither a motor nor a closed loop moves {free}: expected"):
            loading._check_passive_joints(arm.file, replace(arm, loops=(loop,)))


@pytest.mark.parametrize(("end", "sign"), [("passive_min", -1), ("passive_max", 1)])
def test_a_range_that_passes_the_fold_is_rejected(arm, end, sign):
    """The parallelogram folds flat at 90 degrees; a simulation past the fold looks plausible but is wrong."""
    for joint, name in enumerate(("joint_elbow", "joint_rod")):
        limit = getattr(arm, end).copy()
        for degrees in (90, 91, 170):
            limit[joint] = sign * np.deg2rad(degrees)
            told = rf"parallelogram folds flat before {name} is at {sign * degrees}"
            with refused(told):
                loading._check_folds(arm.file, replace(arm, **{end: limit}))
        limit[joint] = sign * np.deg2rad(89.99)
        loading._check_folds(arm.file, replace(arm, **{end: limit}))


def test_a_passive_joint_that_never_moves_causes_no_fold(arm):
    G = arm.embedding.copy()
    G[list(arm.passive)] = 0
    loading._check_folds(arm.file, replace(arm, embedding=G))


def test_rates_are_the_derivatives_of_the_gaps(arm, rng):
    """Central differences confirm the rates for arbitrary loops, including loops with prismatic joints."""
    kinds = tuple("prismatic" if joint in (1, 3, 6) else "revolute" for joint in range(arm.tree.n))
    odd = [Loop("odd", ends, frozen(rng.normal(size=(2, 3)))) for ends in ((7, 2), (5, 6), (1, 4))]
    robot = replace(arm, tree=replace(arm.tree, kinds=kinds), loops=tuple(odd))
    q, h = rng.uniform(-1, 1, arm.tree.n), 1e-6
    ahead, behind = (
        np.array([loops.gaps(robot, q + s * e).ravel() for e in np.eye(arm.tree.n)]) for s in (h, -h)
    )
    # The error of the differences is about 1e-16 / h = 1e-10.
    rates = (ahead - behind).T / (2 * h)
    np.testing.assert_allclose(loops.gap_rates(robot, q), rates, rtol=0, atol=1e-9)


def test_the_embedding_opens_no_loop_at_any_rate(arm, rng):
    for q in random_positions(arm, rng, 20):
        rates = loops.gap_rates(arm, arm.tree_positions(q))
        assert np.abs(rates @ arm.embedding).max() < 1e-15
        assert np.linalg.matrix_rank(rates[:, list(arm.passive)]) == 2


def test_a_copy_is_the_robot(arm, altered):
    copy = altered()
    np.testing.assert_array_equal(copy.embedding, arm.embedding)
    assert copy.driven == arm.driven
    assert copy.rating == arm.rating == (5.0, 1.44)
    assert copy.tour == arm.tour
    np.testing.assert_array_equal(copy.loops[0].points, arm.loops[0].points)


def test_limits_are_those_of_the_driven_joints(arm):
    """In the order of the pendant, though the tree has the elbow before and the lever after them."""
    np.testing.assert_allclose(arm.q_max, np.deg2rad([170, 70, 70, 150, 115, 300]), rtol=1e-15)
    np.testing.assert_allclose(arm.q_min, np.deg2rad([-170, -70, -65, -150, -115, -300]), rtol=1e-15)
    np.testing.assert_allclose(arm.qd_max, np.deg2rad([120, 120, 120, 280, 280, 280]), rtol=1e-15)
    np.testing.assert_array_equal(arm.tau_max, FILES["irb1400"].facts["joints"]["effort"])
    assert len(set(arm.tau_max)) == 6


def test_a_robot_is_shown_in_one_line(arm):
    joints = "joint_1, joint_2, joint_3, joint_4, joint_5, joint_6"
    assert repr(arm) == f"<Robot irb1400: {joints}>"
    assert repr(arm.with_payload(twin.Payload(5))) == f"<Robot irb1400: {joints}, with 5 kg>"


APART = r"loop 'parallelogram' does not stay closed: .* link_rod and link_3 are \S+ m apart"


def test_facts_that_contradict_the_loop_or_the_urdf(altered):
    """The elbow or the rod turned round, the coupling forgotten, another axis; a pose; a coupling."""
    elbow, rod = "q = [0, -1, 1, 0, 0, 0]", "q = [0, 1, -1, 0, 0, 0]"
    loop = rf"robot\.toml: {APART} where they meet .* or irb1400\.urdf, is wrong$"
    folded = r"pose 'hanging': joint_elbow \(q3 - q2\) would be at 80 deg .* 0\.0295 m from folding"
    for old, new, told in (
        (elbow, rod, loop),
        (rod, elbow, loop),
        (elbow, "q = [0, 0, 1, 0, 0, 0]", loop),
        (rod, "q = [0.001, 1, -1, 0, 0, 0]", loop),
        ("q_deg = [0, 40, 70, 0, -30, 0]", "q_deg = [0, -10, 70, 0, -30, 0]", folded),
        (
            "[0, -1, 1, 0, 0, 0],\n    [0",
            "[0, 0, 1, 0, 0, 0],\n    [0",
            r"differ by \S+ in the pose of the fl",
        ),
    ):
        with refused(told):
            altered((old, new))


MORE = """<link name="link_more"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="joint_more" type="continuous"><parent link="link_6"/><child link="link_more"/></joint>
  </robot>"""


def test_a_urdf_that_contradicts_the_facts(altered):
    lever = '<origin xyz="-0.17 0 0" rpy="0 0 0"/>\n    <axis'
    lacking = r"robot\.toml: irb1400\.urdf has no moving joint 'joint_(3|rod)', only joint_1, .*joint_6"
    for old, new, told in (
        (lever, lever.replace("17", "18"), APART),
        ('name="joint_3"', 'name="joint_new"', lacking),
        ('name="joint_rod"', 'name="joint_new"', lacking),
        (
            "</robot>",
            MORE,
            r"'joint_more' of irb1400\.urdf is neither in joints\.names nor .*\[joint\.joint_m",
        ),
        ('"link_rod"', '"link_bar"', r"no joint of the URDF moves link 'rod' of loop 'parallelogram'"),
    ):
        with refused(told):
            altered((old, new), file="irb1400.urdf")


def test_facts_that_changed_after_the_urdf_was_written_are_rejected(altered):
    """A lever 40 mm elsewhere, a shape, a colour: the flange, limits and masses stay as they were."""
    for old, new in (
        ("at = [-0.020, 0, 0.475]", "at = [-0.060, 0, 0.475]"),
        ("orange = [1.0, ", "orange = [0.5, "),
        ("visual = [", 'visual = [{ sphere = 0.01, at = [0, 0, 0], color = "orange" }, '),
    ):
        told = r"robot\.toml has changed since irb1400\.urdf was written from it; write the URDF again with"
        with refused(rf"{told} python -m urdf\.build .*robot\.toml$"):
            altered((old, new))


def test_facts_without_effect_on_the_urdf_may_change(altered, arm):
    for old, new in (
        ("payload = 5.0", "payload = 5.5"),
        ('source = "', 'source = "also '),
        ("[-170, -70", "[-170.0, -7.0e1"),
    ):
        assert altered((old, new)).n == arm.n


def test_a_urdf_without_a_digest_is_the_user_s(altered, arm):
    """Nothing says from which facts it was written; limits, masses and the flange are compared."""
    lines = arm.urdf.read_text().splitlines()
    copy = altered((lines[1], "<!-- by hand -->"), file="irb1400.urdf")
    np.testing.assert_array_equal(copy.tree.inertias, arm.tree.inertias)
