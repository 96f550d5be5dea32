"""How Sphinx makes the book: offline, with nothing but the pages, and with every warning an error.

    make book       installs what it needs and builds docs/_build/html; begin at its index.html

No page asks anything of the network.
"""

import gc
import sys
from pathlib import Path

gc.disable()  # what Sphinx makes stays to the end: looking through it for garbage takes an eighth of the time

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

from groundup import __version__  # noqa: E402  (found through the line above)


def notebooks_without_outputs() -> list[str]:
    """The notebooks whose stage cannot run here, such as phase 3's without a compiler."""
    from shared.contract import StageUnavailable, load_stage

    missing = []
    for name, stage in (("phase3", "stage3_c"), ("phase4", "stage4_numba_cuda"), ("phase5", "stage4_numba_cuda")):
        try:
            load_stage(stage)
        except StageUnavailable as error:
            print(f"the notebook {name} is shown without outputs: {error}")
            missing.append(name)
    return missing


project = "groundup"
author = "The groundup authors"
copyright = "The groundup authors, MIT licence"
version = release = __version__

extensions = ["myst_nb", "api", "console", "dark_pictures", "glossary", "mathml", "notebooks", "sources", "studio"]
extensions += ["turnable"]
exclude_patterns = ["_build", "_ext", "**.ipynb_checkpoints"]

# Notebooks are stored without outputs. The book runs them, and keeps what came out as long as their cells stay the
# same. What a notebook needs may be missing here: then its page has the cells alone.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_excludepatterns = [f"notebooks/{name}.ipynb" for name in notebooks_without_outputs()]

# Headings are link targets under the names that GitHub gives them, so that a link works there and here.
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False  # "$5 and $10" is money
myst_update_mathjax = False
html_math_renderer = "mathml"

pygments_style = "xcode"  # every colour of it can be read on a light ground: WCAG's level AA
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = "groundup"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_js_files = ["book.js"]
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True, "light_css_variables": {"color-code-background": "#f7f7f7"}}
