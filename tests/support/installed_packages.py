"""Packages that a test installs: folders on Python's path, with their entry points."""

import contextlib
import sys

from twin.base import plugins


@contextlib.contextmanager
def installed(folder, modules, entry_points, name="my-things"):
    """Install modules within a `with` block.

    Args:
        folder: folder that is put on Python's path.
        modules: texts of the modules by file name.
        entry_points: entry points by group, each a dictionary of names and values.
        name: name of the package.
    """
    for file, text in modules.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    lines = []
    for group, entries in entry_points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.path.insert(0, str(folder))
    plugins.plugin_entries.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        plugins.plugin_entries.cache_clear()
        for file in modules:
            sys.modules.pop(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."), None)
