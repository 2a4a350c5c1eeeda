"""README fits one screen, its links and commands exist, and its Python script tracks to round-off."""

import re

import twin
from scenarios import Setup
from scenarios.pose_path import PosePath
from tests.support.doc_pages import HOUSE, blocks

README = (HOUSE / "README.md").read_text(encoding="utf-8")


def test_readme_script_tracks_to_round_off(tmp_path, monkeypatch, capsys):
    (script,) = (block.text for block in blocks(README) if block.kind == "python")
    assert len(script.splitlines()) <= 12
    monkeypatch.chdir(tmp_path)
    exec(script, {})
    error = re.search(r"1\.000 s, largest joint error (\S+) rad", capsys.readouterr().out)
    assert error is not None
    assert float(error[1]) <= 1e-10


def test_every_make_target_exists():
    makefile = (HOUSE / "Makefile").read_text(encoding="utf-8")
    pages = [README, (HOUSE / "docs" / "guides" / "development.md").read_text(encoding="utf-8")]
    targets = {target for page in pages for target in re.findall(r"^    make (\w+)", page, flags=re.M)}
    assert targets >= {"run", "test", "docs", "lint", "bench", "fuzz"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_every_link_points_to_a_file():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) > 15
    for link in links:
        assert (HOUSE / link).is_file(), link


def test_readme_fits_one_screen_and_states_requirements_and_reserved_names():
    assert len(README.splitlines()) <= 75
    for text in ("Python 3.10", "urchin", "urdfpy", "named `twin`, `controllers` or `scenarios`"):
        assert text in README


def test_friction_identified_from_the_readme_run_is_exact():
    """Use steps of 20 ms to save time."""
    lines = [line.partition("#")[0].split()[1:] for line in README.splitlines() if "run.npz" in line]
    assert ["identify", "run.npz"] in lines
    arguments = next(line for line in lines if line[0] == "run")
    assert arguments[:2] == ["run", "pose_path"]
    drives = arguments[arguments.index("--drives") + 1]
    log = PosePath().run(Setup(drives=drives, time_step=0.02)).log
    values = twin.identify(log.robot, log).values
    friction = [parameter for parameter in values if parameter.symbol[:2] in ("Fv", "Fc")]
    assert len(friction) == 12
    for parameter in friction:
        assert abs(parameter.value - parameter.before) < 1e-6 * parameter.before, parameter.symbol
