"""Show Colab and Binder buttons once ``public_repository`` in ``_config.yml`` has the repository's public address."""

from __future__ import annotations

from typing import Any

HOSTS = {"colab_url": "https://colab.research.google.com", "binderhub_url": "https://mybinder.org"}


def theme_options(address: str, branch: str) -> dict[str, Any]:
    """Return the theme's options for a public address; none for an empty one."""
    if not address:
        return {}
    if not address.startswith("https://"):
        raise ValueError(f"public_repository is {address!r}. Use an address like https://github.com/OWNER/NAME.")
    return {
        "repository_url": address.rstrip("/"),
        "repository_branch": branch,
        "use_repository_button": True,
        "use_issues_button": True,
        "launch_buttons": {**HOSTS, "notebook_interface": "jupyterlab"},
    }


def _apply(app: Any, config: Any) -> None:
    config.html_theme_options.update(theme_options(config.public_repository.strip(), config.public_branch))


def setup(app: Any) -> dict[str, bool]:
    """Register the two values and apply them before the theme reads its options."""
    app.add_config_value("public_repository", "", "html", [str])
    app.add_config_value("public_branch", "main", "html", [str])
    app.connect("config-inited", _apply, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
