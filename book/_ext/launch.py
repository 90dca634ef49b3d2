"""Buttons that lead to the repository and to Binder, once CITATION.cff has its address (``repository-code``)."""

from typing import Any

from rcbook import citation
from sphinx.application import Sphinx
from sphinx.config import Config

BINDER = "https://mybinder.org"


def options(entry: dict[str, Any]) -> dict[str, Any]:
    """Options of the theme for a repository: its buttons, and a launch of the version that the page is of."""
    if "repository-code" not in entry:
        return {}
    return {
        "repository_url": entry["repository-code"].rstrip("/"),
        "repository_branch": f"v{entry['version']}",
        "use_repository_button": True,
        "use_issues_button": True,
        "launch_buttons": {"binderhub_url": BINDER, "notebook_interface": "jupyterlab"},
    }


def add_buttons(app: Sphinx, config: Config) -> None:
    """Give the theme what it needs for the buttons."""
    config.html_theme_options = {**config.html_theme_options, **options(citation.citation())}


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", add_buttons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
