"""How the pages of this folder are made: `make docs` writes them to `_build/html`.

They are complete offline: no fonts, scripts or styles from elsewhere, and formulas are MathML.
The pages of `tutorials` are notebooks, which the build executes.  They are copied from
`scenarios/templates/tutorials`, because `irb-twin new notebooks` writes them, too.
"""

import gc
import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from numpy.typing import ArrayLike
from sphinx.errors import ExtensionError
from sphinx.util.typing import stringify_annotation

sys.path.insert(0, str(Path(__file__).parent))
import arms

gc.disable()  # collecting cycles takes a fifth of the time of a build

project = "irb-twin"
copyright = "the authors of irb-twin"
version = release = version_of("irb-twin")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
autosummary_generate = False
exclude_patterns = ["_build"]
default_role = "code"  # what docstrings have in single backticks
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"  # which browsers draw without a script

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, not an entry of the index each

autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
smartquotes = False

html_theme = "furo"
html_title = f"irb-twin {release}"
html_show_search_summary = False  # it would be fetched, which browsers refuse for pages opened from a disk
html_copy_source = False
html_static_path = ["_static"]
html_extra_path = ["_build/pictures/report.html"]  # which the guide on the page shows
html_css_files = ["pages.css"]
html_show_sphinx = False

BUILT = Path(__file__).parent / "_build"
SOURCES = ("urdf", "twin", "controllers", "scenarios")

here = Path(__file__).parent
tutorials = here.parent / "scenarios" / "templates" / "tutorials"
shutil.copytree(tutorials, here / "tutorials", dirs_exist_ok=True)


def digest(packages):
    """Return a short hash of the sources and the data of packages."""
    found = hashlib.sha256()
    for package in packages:
        folder = Path(find_spec(package).submodule_search_locations[0])
        for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".toml", ".urdf")):
            found.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:16]


def made_from_sources(kind, state):
    """Return the folder for files of a kind that depend on our sources; remove those of other states."""
    folder = BUILT / kind / state
    for outdated in set(folder.parent.glob("*")) - {folder}:
        shutil.rmtree(outdated, ignore_errors=True)
    return folder


# By default a page is executed again when its text changes.  Its figures depend on our sources, too.
state = digest(SOURCES)
cache = made_from_sources("executed", state)
nb_execution_mode = "cache"
nb_execution_cache_path = str(cache)
nb_execution_in_temp = True  # pages write files
nb_execution_timeout = 120  # s, for a cell; the first one may compile
nb_execution_raise_on_error = True
nb_execution_show_tb = True
suppress_warnings = ["myst-nb.lexer"]  # a page that is not executed has no kernel to name the language
nb_output_stderr = "warn"
nb_merge_streams = True
nb_code_prompt_show = "Show the answer"  # of an exercise, a cell with the tag `hide-cell`
nb_code_prompt_hide = "Hide the answer"

executed = os.environ.get("TUTORIALS")  # names of the pages to execute, by default all pages and pictures
if executed is None:
    extensions.append("sphinx.ext.viewcode")  # a third of the time of a build
nb_execution_excludepatterns = [
    f"tutorials/{page.name}"
    for page in Path(__file__).parent.glob("tutorials/*.md")
    if executed is not None and page.stem not in executed.split()
]


PLACEHOLDER = Path(__file__).with_name("_static").joinpath("bench.png").read_bytes()
"""Picture in place of all others if only some pages are executed."""


def write_pictures(app, config):
    """Copy the pictures of the guides to `_build/pictures`; make them first if sources have changed."""
    script = Path(__file__).with_name("pictures.py")
    made = made_from_sources("made", state + hashlib.sha256(script.read_bytes()).hexdigest()[:8])
    if executed is None and not (made / "complete").exists():
        drawn = subprocess.run([sys.executable, script, made], capture_output=True, text=True, check=False)
        if drawn.returncode:
            raise ExtensionError(f"{script} failed:\n{drawn.stderr}")
        (made / "complete").touch()
    shown = BUILT / "pictures"
    shown.mkdir(exist_ok=True)
    pages = [page.read_text(encoding="utf-8") for page in script.parent.glob("**/*.md")]
    for name in ("report.html", *re.findall(r"_build/pictures/([\w.]+)", "".join(pages))):
        if executed is None:
            shutil.copy(made / name, shown / name)
        else:
            (shown / name).write_bytes(b"" if name.endswith(".html") else PLACEHOLDER)


# The kernel is this interpreter, whatever kernels and profiles the user has.
kernel = BUILT / "jupyter" / "kernels" / "python3" / "kernel.json"
kernel.parent.mkdir(parents=True, exist_ok=True)
(BUILT / "ipython").mkdir(exist_ok=True)
environment = {
    "IPYTHONDIR": str(BUILT / "ipython"),
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),  # for `!irb-twin`
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # no warning of the debugger
    "COLUMNS": "86",  # what fits on a page
}
argv = [sys.executable, "-m", "ipykernel_launcher", "--log-level=ERROR", "-f", "{connection_file}"]
kernel.write_text(
    json.dumps({"argv": argv, "display_name": "Python 3", "language": "python", "env": environment})
)
os.environ["JUPYTER_PATH"] = str(BUILT / "jupyter")
logging.getLogger("traitlets").setLevel(logging.WARNING)  # the logger of nbclient


def write_mathml(translator, node, display):
    """Write a formula as MathML."""
    translator.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def add_summary(app, page, source):
    """Insert a table of all entries after the first paragraph of a reference page."""
    entries = re.findall(r"^\.\. auto(?:class|data|exception|function):: (\S+)", source[0], flags=re.M)
    if page.startswith("reference/") and len(entries) > 3:
        title, line, text, rest = re.match(r"(.+\n)(=+\n)\n(.+?\n)\n(.*)", source[0], flags=re.S).groups()
        table = ".. autosummary::\n   :nosignatures:\n\n   " + "\n   ".join(entries)
        source[0] = f"{title}{line}\n{text}\n{table}\n\n{rest}"


def add_arms(app, page, source):
    """Insert the tables of the arms into their page."""
    if page == "guides/arms":
        source[0] = source[0].replace(arms.MARK, arms.tables())


def keep_numbers_whole(app, page, template, context, doctree):
    """Forbid browsers to break the lines of a table's cell within numbers such as 1e-15."""
    if "body" in context:
        whole = partial(re.sub, r"\b[\d.]+e-\d+", r'<span style="white-space: nowrap">\g<0></span>')
        cells = r"<td>.*?</td>"
        context["body"] = re.sub(cells, lambda cell: whole(cell[0]), context["body"], flags=re.S)


def literal_blocks(app, what, name, obj, options, lines):
    """Make what stands indented after an empty line a literal block, as it is in Markdown."""
    indents = [len(line) - len(line.lstrip()) for line in lines]
    last = 0  # of the last line that has text
    for i in range(1, len(lines)):
        if not lines[i]:
            continue
        if not lines[i - 1] and indents[i] >= indents[last] + 4:
            lines[i - 1] = f"\n{' ' * indents[last]}::\n"
        last = i
    lines[:] = "\n".join(lines).split("\n")


def name_array_types(app, what, name, obj, options, signature, returns):
    """Write `ArrayLike` and `ndarray` instead of the unions and parameters that NumPy makes of them."""
    for union in (
        stringify_annotation(ArrayLike, mode) for mode in ("smart", "fully-qualified-except-typing")
    ):
        signature, returns = (text and text.replace(union, "ArrayLike") for text in (signature, returns))
    parameters = r"ndarray\[tuple\[[^]]*\], [^]]*dtype\[[^]]*\]\]"
    return tuple(text and re.sub(parameters, "ndarray", text) for text in (signature, returns))


def skip_fields_of_tuples(app, what, name, obj, skip, options):
    """Leave out "Alias for field number 0": the fields stand under the class's attributes."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app):
    """Attach the functions above, `literal_blocks` before Napoleon's."""
    inline, block = (partial(write_mathml, display=display) for display in ("inline", "block"))
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("config-inited", write_pictures, priority=100)  # before Sphinx looks for the report
    app.connect("html-page-context", keep_numbers_whole)
    app.connect("source-read", add_summary)
    app.connect("source-read", add_arms)
    app.connect("env-get-outdated", lambda *_: ["guides/arms"])  # its tables depend on the arms' files
    app.connect("autodoc-process-docstring", literal_blocks, priority=400)
    app.connect("autodoc-process-signature", name_array_types)
    app.connect("autodoc-skip-member", skip_fields_of_tuples)
