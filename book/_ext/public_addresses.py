"""Show public addresses: buttons for Colab, Binder and the repository, and ```` ```{public-links} ````.

``public_addresses`` in ``_config.yml`` is the one place for them. What is empty there is not shown.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

HOSTS = {"colab_url": "https://colab.research.google.com", "binderhub_url": "https://mybinder.org"}
DEFAULT = {"repository": "", "branch": "main", "book": "", "paper": "", "doi": ""}
NAMES = {"paper": "The paper", "book": "The book", "repository": "The repository", "doi": "The archived version"}


def checked(addresses: dict[str, str]) -> dict[str, str]:
    """Return the addresses without spaces and final slashes; a DOI becomes an address."""
    unknown = set(addresses) - set(DEFAULT)
    if unknown:
        raise ValueError(f"public_addresses has {sorted(unknown)}. The names are {', '.join(DEFAULT)}.")
    found = {name: str(addresses.get(name) or default).strip().rstrip("/") for name, default in DEFAULT.items()}
    if found["doi"].startswith("10."):
        found["doi"] = f"https://doi.org/{found['doi']}"
    for name, address in found.items():
        if address and name != "branch" and not address.startswith("https://"):
            raise ValueError(f"The public address {name!r} is {address!r}. Use one like https://github.com/OWNER/NAME.")
    return found


def theme_options(addresses: dict[str, str]) -> dict[str, Any]:
    """Return the theme's options for the repository; none while it has no address."""
    found = checked(addresses)
    if not found["repository"]:
        return {}
    return {
        "repository_url": found["repository"],
        "repository_branch": found["branch"],
        "use_repository_button": True,
        "use_issues_button": True,
        "launch_buttons": {**HOSTS, "notebook_interface": "jupyterlab"},
    }


class PublicLinks(SphinxDirective):
    """Links to what is public."""

    def run(self) -> list[nodes.Node]:
        """Return one line of links, or nothing."""
        found = checked(self.config.public_addresses)
        links = [nodes.reference(name, name, refuri=found[key]) for key, name in NAMES.items() if found[key]]
        line = nodes.paragraph(classes=["public-links"])
        for link in links:
            line += [nodes.Text(" · "), link] if len(line) else [link]
        return [line] if links else []


def _apply(app: Any, config: Any) -> None:
    config.html_theme_options.update(theme_options(config.public_addresses))


def setup(app: Any) -> dict[str, bool]:
    """Register the values and apply them before the theme reads its options."""
    app.add_config_value("public_addresses", DEFAULT, "env", [dict])
    app.add_directive("public-links", PublicLinks)
    app.connect("config-inited", _apply, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
