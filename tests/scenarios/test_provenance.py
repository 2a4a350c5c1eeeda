"""Every file says what it was made with, and with which settings."""

import json
import subprocess
from importlib.metadata import packages_distributions, version

import matplotlib.image
from PIL import Image

import twin
from scenarios.running.provenance import commit, provenance
from scenarios.shell.command_line import main
from twin.base import version as versions
from twin.data.logs.log import Log


def git(folder, *words):
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_provenance_has_installed_versions_and_the_package_of_the_engine(monkeypatch):
    assert twin.__version__ == version("irb-twin")
    told = provenance()
    assert {name: version(name) for name in ("numpy", "numba")}.items() <= told.items()
    (engine,) = packages_distributions()["pybullet"]
    assert told["pybullet"] == version(engine) + " (pybullet-arm64)" * (engine != "pybullet")
    monkeypatch.setattr(versions, "ENGINES", ("no-such-package", "numpy"))
    assert versions.library_versions()["pybullet"] == f"{version('numpy')} (numpy)"


def test_commit_marks_modified_checkout(tmp_path):
    assert commit(tmp_path) == ""
    git(tmp_path, "init", "-q")
    assert commit(tmp_path) == ""  # nothing is committed yet
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-qm", "a")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit(tmp_path) == head
    (tmp_path / "below").mkdir()
    assert commit(tmp_path / "below") == ""  # installed somewhere within somebody's repository
    (tmp_path / "new").write_text("1")
    assert commit(tmp_path) == head
    (tmp_path / "a").write_text("2")
    assert commit(tmp_path) == f"{head} + changes"


def test_logs_pictures_and_results_contain_provenance(tmp_path, capsys, small_pictures):
    log, picture, results = (tmp_path / name for name in ("a.npz", "a.png", "a.json"))
    words = "run gravity_hold --duration 0.01 --controller pd --seed 7 --bandwidth 21 --speed-cutoff inf"
    assert main([*words.split(), "--log", str(log), "--picture", str(picture), "--json", str(results)]) == 0
    arrays = Log.load(log).arrays
    with Image.open(picture) as image:
        image.load()
        texts = image.text
    assert matplotlib.image.imread(picture).ndim == 3
    document = json.loads(results.read_text())
    settings = json.loads(str(arrays["settings"]))
    assert [settings] == json.loads(texts["settings"])
    assert settings == {"scenario": "gravity_hold", **document["runs"][0]["config"]}
    assert (settings["seed"], settings["bandwidth"], settings["speed_cutoff"]) == (7, 21.0, "inf")
    texts_of = str(arrays["provenance"]), texts["provenance"]
    made_with = [*map(json.loads, texts_of), document["provenance"]]
    assert made_with == [provenance()] * 3


def test_results_contain_controller_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "law.toml").write_text("Kp = [3.0, 3.0, 3.0, 3.0, 3.0, 3.0]\n")
    for words in ("--settings law.toml", "--set Kp=3,3,3,3,3,3"):
        main(f"run gravity_hold --duration 0.01 --controller pd --json a.json {words}".split())
        config = json.loads((tmp_path / "a.json").read_text())["runs"][0]["config"]
        assert config["law_settings.Kp"] == [3.0] * 6
