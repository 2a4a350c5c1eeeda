"""Imports of the project's files, and the files that a command enters."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import twin

HOUSE = Path(twin.__file__).parents[1]
PACKAGES = ("urdf", "twin", "controllers", "scenarios")

FILES = {
    ".".join(file.relative_to(HOUSE).with_suffix("").parts).removesuffix(".__init__"): file
    for package in PACKAGES
    for file in sorted((HOUSE / package).rglob("*.py"))
}
"""Files by the names of their modules."""

WALK = """
import os, sys, threading
root, seen = os.getcwd() + os.sep, set()
def note(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and frame.f_code.co_name != "<module>" and name.startswith(root):
        if "/.venv/" not in name and "/tests/" not in name:
            seen.add(name)
sys.argv[0] = "irb-twin"
threading.setprofile(note)
sys.setprofile(note)
from scenarios.shell.process import main
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
print(len(seen), file=sys.stderr)
"""


def text_of(file):
    """Return the text of a file without the part that runs only where it is started as a script.

    That part starts the command line, which nothing that imports the file does.
    """
    return file.read_text(encoding="utf-8").partition('if __name__ == "__main__":')[0]


def imported(file):
    """Yield the modules that a file imports, and the names from them, at its top or within a function."""
    for node in ast.walk(ast.parse(text_of(file))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def faces():
    """Return where the public names of each package come from: pairs of a module and a name."""
    found = {}
    for stub in (stub for package in PACKAGES for stub in (HOUSE / package).rglob("__init__.pyi")):
        package = ".".join(stub.parent.relative_to(HOUSE).parts)
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    module = f"{package}.{node.module}" if node.module else package
                    found[package, alias.name] = module, alias.name
    return found


FACES = faces()


def file_of(module, name):
    """Return the module of the file in which a name is that is imported from a module; `None` for others."""
    if f"{module}.{name}" in FILES:
        return f"{module}.{name}"
    if (module, name) in FACES and FACES[module, name] != (module, name):
        return file_of(*FACES[module, name])
    return module if module in FILES else None


def imports():
    """Return the modules of the project that each module imports, for type checkers and in functions, too."""
    found = {}
    for module, file in FILES.items():
        named = {file_of(*one) for one in imported(file)}
        for node in ast.walk(ast.parse(text_of(file))):  # public names, as in `twin.load`
            owner = node.value if isinstance(node, ast.Attribute) else None
            if isinstance(owner, ast.Name) and owner.id in ("twin", "controllers", "scenarios"):
                named.add(file_of(owner.id, node.attr))
        found[module] = named - {module, None}
    return found


def entered(*words):
    """Return the number of files in which a command executes a function, in this process alone."""
    program = [sys.executable, "-c", WALK, *words]
    environment = os.environ | {"PYTHONPATH": str(HOUSE)}
    ended = subprocess.run(
        program, cwd=HOUSE, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return int(ended.stderr.split()[-1])
