"""How the pages of this folder are made: `make docs` writes them to `_build/html`.

They are complete offline: no fonts, scripts or styles from elsewhere, and formulas are plain text.
"""

from importlib.metadata import version as version_of

project = "irb-twin"
copyright = "the authors of irb-twin"
version = release = version_of("irb-twin")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
default_role = "code"  # what docstrings have in single backticks
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, not an entry of the index each

autodoc_typehints = "none"  # shapes and units, which the docstrings have, say more
maximum_signature_line_length = 100
smartquotes = False

html_theme = "furo"
html_title = f"irb-twin {release}"
html_show_search_summary = False  # it would be fetched, which browsers refuse for pages opened from a disk
html_copy_source = False
html_show_sphinx = False


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


def skip_fields_of_tuples(app, what, name, obj, skip, options):
    """Leave out "Alias for field number 0": the fields stand under the class's attributes."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app):
    """Attach the two functions above, the first before Napoleon's."""
    app.connect("autodoc-process-docstring", literal_blocks, priority=400)
    app.connect("autodoc-skip-member", skip_fields_of_tuples)
