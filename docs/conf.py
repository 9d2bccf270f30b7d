"""Sphinx configuration of the documentation site; `make docs` builds it.

The source folder is the root of the repository and not docs/, so that links between README.md,
CONTRIBUTING.md and the pages of docs/ are the same on a code host and on the site. What is in the
navigation is said by the lists of docs/index.md and docs/api/index.rst.
"""

from importlib.metadata import version as installed_version

project = "maxmargin"
author = "The maxmargin developers"
copyright = author
version = release = installed_version("maxmargin")

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = ["build", "dist", ".*"]

# Strict: every reference must be found (`make docs` also turns warnings into errors). Names of
# other projects would need their inventories from the network, so they are not linked.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(numpy|np|scipy|sklearn|collections|pathlib|typing)\..*")]

# Headings get the anchors that code hosts give them. Blocks without a language are plain text.
myst_heading_anchors = 3
highlight_language = "none"

# Types are in the docstrings, in words; hints in signatures would say them twice and at length.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "exclude-members": "structure_, structure_type, machine, file_meta_",
}
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 80
default_role = "any"  # a name in single backquotes is a reference, by its end if that is unique
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Furo has system fonts, a dark mode and no scripts from elsewhere.
html_theme = "furo"
pygments_dark_style = "monokai"
html_title = f"maxmargin {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["extra"]
html_copy_source = False
html_show_sphinx = False


def skip_member(app, kind, name, member, skip, options):  # noqa: PLR0917
    """Leave out what scikit-learn's base classes bring along; its own documentation has that."""
    made = name.startswith("set_") and name.endswith("_request")
    inherited = (getattr(member, "__module__", None) or "").startswith("sklearn.")
    return True if made or inherited else None


def setup(app):
    """Connect the function above; Sphinx calls this."""
    app.connect("autodoc-skip-member", skip_member)
