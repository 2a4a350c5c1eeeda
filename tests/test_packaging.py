"""An installation contains every folder of the four packages, and their data files."""

from fnmatch import fnmatch
from pathlib import Path

from urdf.schema import tomllib

ROOT = Path(__file__).parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
FILES = [
    file.relative_to(ROOT)
    for package in ("urdf", "twin", "controllers", "scenarios")
    for file in sorted((ROOT / package).rglob("*"))
    if file.is_file() and "__pycache__" not in file.parts
]


def test_every_folder_is_installed_as_a_package():
    patterns = SETUPTOOLS["packages"]["find"]["include"]
    folders = {".".join(file.parts[:-1]) for file in FILES}
    assert not [folder for folder in folders if not any(fnmatch(folder, pattern) for pattern in patterns)]


def test_every_file_is_installed_as_code_or_data():
    patterns = ["*.py", *SETUPTOOLS["package-data"]["*"]]
    assert not [str(file) for file in FILES if not any(fnmatch(file.name, pattern) for pattern in patterns)]
