"""How `make docs` builds the site: Sphinx, with Markdown by MyST."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "robots.txt decisions"
html_title = project
html_theme = "furo"
extensions = ["myst_parser", "status_index"]
exclude_patterns = ["example-site"]
html_static_path = ["static"]
html_css_files = ["site.css"]
myst_heading_anchors = 4
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
suppress_warnings = [
    "misc.highlighting_failure",  # JSON in which "..." stands for further members
]
