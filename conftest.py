"""Load the two packages in which a function has the name of its module, before any file of theirs is collected.

pytest collects ``frhsic_core/joint/hsic.py`` for its doctests and binds the module to ``frhsic_core.joint.hsic`` if it
was not imported before. The function of that name would then be hidden from every test that follows.
"""

from __future__ import annotations


def pytest_sessionstart() -> None:
    """Import them here and not above: ``tests/conftest.py`` sets the number of threads before torch is imported."""
    import frhsic_core.conditional
    import frhsic_core.joint  # noqa: F401
