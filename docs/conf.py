"""Settings of the documentation; `make docs` builds it."""

import sys
from pathlib import Path

import hedgerow

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "hedgerow"
author = "The hedgerow developers"
copyright = "The hedgerow developers"
version = release = hedgerow.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml", "docstrings"]
exclude_patterns = ["extensions"]
source_suffix = {".md": "markdown"}
default_role = "literal"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 90
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "hedgerow"
html_static_path = ["style"]
html_css_files = ["hedgerow.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2f6b3a", "color-brand-content": "#2f6b3a"},
    "dark_css_variables": {"color-brand-primary": "#8fce9b", "color-brand-content": "#8fce9b"},
}
