"""Sphinx's settings for the site of `make site`. Its sources are what layout.py has laid out below build/site-source.

Everything that a page needs is in the site: no font, script or style comes from elsewhere, so that it can be read and
searched from a disk. Each warning is an error (`make site` says so), a link or an anchor that leads nowhere among them.
"""

from __future__ import annotations

import os
from pathlib import Path

project = "tortie"
version = release = os.environ["TORTIE_VERSION"]
html_title = f"tortie {release}"
copyright = "the authors of tortie; Apache License 2.0"  # noqa: A001 - Sphinx's name for it

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 4  # as the places that show Markdown make them: from the heading's words
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # such a block is highlighted as far as it goes

html_theme = "furo"
html_static_path = [str(Path(__file__).parent / "static")]
html_css_files = ["tortie.css"]
html_js_files = ["most_words.js"]
html_search_scorer = str(Path(__file__).parent / "static/scorer.js")
html_copy_source = html_show_sourcelink = html_use_index = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style, pygments_dark_style = "tango", "github-dark"
