"""Build the written pages alone: no page for each module, and numbers that were computed before."""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

from frhsic_core.paper import page_values


def _remove_list(app: Any, name: str, source: list[str]) -> None:
    if name == "book/api_modules":
        source[0] = re.sub(r"(?ms)^```\{eval-rst\}\n\.\. autosummary::.*?^```$", "", source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register the hook, and take the numbers of the pages from the file of ``FRHSIC_PAGE_VALUES``."""
    values = pickle.loads(Path(os.environ["FRHSIC_PAGE_VALUES"]).read_bytes())
    page_values.page_values = lambda: values
    app.connect("source-read", _remove_list)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
