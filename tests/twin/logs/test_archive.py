"""Logs that somebody altered: a log that can be, or one sentence; nothing is run, nothing is set aside."""

import copy
import io
import os
import pickle
import tracemalloc
import zipfile
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

import twin
from tests.support.example_runs import made_up_log
from twin.errors import TwinError
from twin.logs.archive import robot_from_record, robot_to_record
from twin.logs.log import ARRAYS, STANDS_FOR, Log
from twin.robot import DH, LinkBody


@pytest.fixture(scope="module")
def log():
    """With motors that are not where the joints are, and are not seen as they are."""
    log = made_up_log("pd")
    own = {name: getattr(log, name) + 1.0 for name in STANDS_FOR}
    return replace(log, **own, arrays={"mine": np.arange(3.0)})


def content_of(log, path):
    """Return the contents of the archive of a log."""
    log.save(path)
    with np.load(path) as archive:
        return dict(archive)


@pytest.fixture(scope="module")
def content(log, tmp_path_factory):
    return content_of(log, tmp_path_factory.mktemp("log") / "a.npz")


def altered(tmp_path, content, **changes):
    """The path of an archive with some of its arrays replaced, or left out where they are `None`."""
    arrays = {name: array for name, array in (content | changes).items() if array is not None}
    np.savez(tmp_path / "a.npz", **arrays)
    return tmp_path / "a.npz"


def refused(path):
    with pytest.raises(TwinError) as error:
        Log.load(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)
    return str(error.value)


FORMS = [
    lambda a: a[:-1],
    lambda a: a[..., None],
    lambda a: a.astype(object),
    lambda a: a.astype(">f8" if a.dtype == float else ">i2"),
    lambda a: np.array("text"),
]


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_is_not_there_or_of_another_form_is_refused(name, content, tmp_path):
    """Files from before there were drives lack those of the motors."""
    for alter in FORMS if name in ("q", "saturated") else FORMS[:2]:
        refused(altered(tmp_path, content, **{name: alter(content[name])}))
    path = altered(tmp_path, content, **{name: None})
    if name == "T_flange_tool":  # nor was there a tool
        np.testing.assert_array_equal(Log.load(path).T_flange_tool, np.eye(4))
    elif name not in STANDS_FOR:
        assert refused(path).endswith(f"(it has no '{name}')")
    else:
        back = Log.load(path)
        assert getattr(back, name) is getattr(back, STANDS_FOR[name])


NO_PAYLOAD = {"payload_mass": np.array(-1.0), "payload_com": np.zeros(3), "payload_inertia": np.eye(3)}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"time_step": np.array(np.nan)}, "a time step above 0 s"),
        ({"time_step": np.array(2e-3)}, "steps of the control period, 0.002 s"),
        ({"steps_per_period": np.array(0)}, "at least 1 step per period"),
        ({"t": np.zeros(50)}, "expected t to have at least one sample and to increase"),
        ({"robot": np.array("irb1600"), "q": np.zeros((50, 8))}, r"of shape (50, 6), got"),
        ({"inertias": np.full((6, 10), np.inf)}, "expected finite inertias"),
        ({"base_inertia": np.r_[-1.0, np.zeros(9)]}, "no body has the inertia of link 'base': -1 kg"),
        ({"payload_mass": np.array(1.0)}, "it has no 'payload_com'"),
        (NO_PAYLOAD, "-1.0"),
        ({"own_mine": np.array([None])}, "own_mine.npy contains object"),
        ({"drives_ratio": np.zeros(6)}, "drives: ratio of axis 1 is 0, expected a finite number"),
        ({"drives_friction_at": np.zeros(6)}, "expected drives_friction_at to be text of 1 axes"),
        ({"drives_stiffness": None}, "it has no 'drives_stiffness'"),
    ],
)
def test_what_cannot_be_of_one_run_is_refused(changes, told, content, tmp_path):
    assert told in refused(altered(tmp_path, content, **changes))


def test_a_table_that_was_altered_is_refused(tmp_path):
    bodies = [LinkBody(1.0, (0.1, 0, 0.1), np.eye(3))] * 6
    robot = twin.dh_robot("own", DH(*np.zeros((4, 6))), bodies=bodies)
    content = content_of(replace(made_up_log("pd"), robot=robot), tmp_path / "own.npz")
    assert Log.load(tmp_path / "own.npz").robot.name == "own"
    kinds, ends = np.array(["round"] * 6), np.full(6, np.nan)
    for change in ({"joint_names": ends}, {"dh_kinds": kinds}, {"dh_a": np.zeros(5)}, {"q_min": ends}):
        refused(altered(tmp_path, content, **change))


class Spy:
    """Object that records that it was unpickled."""

    ran = False

    def __setstate__(self, state):
        Spy.ran = True


def test_nothing_is_unpickled(content, tmp_path):
    spy = Spy()
    spy.something = 1
    told = refused(altered(tmp_path, content, own_spy=np.array([spy], dtype=object)))
    assert "contains object" in told
    assert not Spy.ran


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_array_larger_than_the_file_is_never_set_aside(compression, content, tmp_path):
    stream, form = io.BytesIO(), {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(stream, form)
    path = altered(tmp_path, content)
    with zipfile.ZipFile(path, "a", compression) as archive:
        archive.writestr("own_bomb.npy", stream.getvalue() + bytes(10**7) * (compression != 0))
    tracemalloc.start()
    told = refused(path)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()
    assert "larger than the file" in told or "declares shape (1000000000000,)" in told


def test_damage_anywhere_is_one_sentence_or_none(content, tmp_path):
    """Bytes changed and cut off: the check sums of the archive, its headers and its directory."""
    whole = altered(tmp_path, content).read_bytes()
    rng, path, accepted = np.random.default_rng(17), tmp_path / "b.npz", 0
    for _ in range(150):
        data = bytearray(whole[: rng.integers(len(whole))] if rng.random() < 0.3 else whole)
        for place in rng.integers(len(data), size=rng.integers(1, 4)) if data else ():
            data[place] = rng.integers(256)
        path.write_bytes(data)
        try:
            Log.load(path)
            accepted += 1
        except TwinError as error:
            assert "\n" not in str(error)  # noqa: PT017
    assert accepted < 50  # a change may be in what nobody reads, as the date of a member


def test_a_log_that_could_not_be_loaded_is_not_saved(log, tmp_path):
    for changes in ({"q": np.zeros((3, 6))}, {"arrays": {"mine": np.array([{}])}}, {"arrays": {"mine": 3.0}}):
        with pytest.raises(TwinError, match=r"expected (q|mine) to be"):
            replace(log, **changes).save(tmp_path / "a.npz")
    os.mkfifo(tmp_path / "pipe")
    assert "it is not a regular file" in refused(tmp_path / "pipe")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda log: pickle.loads(pickle.dumps(log))])
def test_a_log_can_be_copied_and_pickled(copied, log):
    """The robot is not what is looked at here.  The arrays that a scenario adds cannot be changed later."""
    added = {"mine": np.arange(3.0)}
    log = replace(log, robot=SimpleNamespace(name="stub"), arrays=added)
    added["more"] = np.zeros(1)
    object.__setattr__(log, "_poses", (np.zeros((50, 7)), np.ones((50, 7))))
    again = copied(log)
    assert again is not log
    assert again.identical(log)
    assert set(again.arrays) == {"mine"}
    assert isinstance(again.arrays, MappingProxyType)


def test_drives_from_before_further_friction_have_none_of_it(irb140):
    content = robot_to_record(irb140.with_drives("rigid"))
    written = {name: np.asarray(value) for name, value in content.items()}
    later = ("coulomb_per_load", "viscous_root", "viscous_difference", "offset")
    for name in ("axis_torques", *(f"drives_{part}" for part in later)):
        del written[name]
    drives = robot_from_record(written).drives
    np.testing.assert_array_equal(drives.offset, np.zeros(6))
    np.testing.assert_array_equal(drives.coulomb, irb140.drives.coulomb)
    del written["drives_coulomb"]
    with pytest.raises(KeyError, match="drives_coulomb"):
        robot_from_record(written)
