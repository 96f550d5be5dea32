"""How Sphinx makes the book: offline, with nothing but the pages, and with every warning an error.

    make book       installs what it needs and builds docs/_build/html; begin at its index.html

No page asks anything of the network, no notebook is executed and no GPU is looked for.
"""

import gc
import sys
from pathlib import Path

gc.disable()  # what Sphinx makes stays to the end: looking through it for garbage takes an eighth of the time

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from groundup import __version__  # noqa: E402  (found through the line above)

project = "groundup"
author = "The groundup authors"
copyright = "The groundup authors, MIT licence"
version = release = __version__

extensions = ["myst_nb", "api", "console", "glossary", "mathml", "sources", "studio"]
exclude_patterns = ["_build", "_ext", "**.ipynb_checkpoints"]

# Notebooks are stored without outputs and run by the test suite, not by the book.
nb_execution_mode = "off"

# Headings are link targets under the names that GitHub gives them, so that a link works there and here.
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False  # "$5 and $10" is money
myst_update_mathjax = False
html_math_renderer = "mathml"

pygments_style = "tango"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = "groundup"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
