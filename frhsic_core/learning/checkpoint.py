"""Writing and reading training state: tensors and plain values only, whole files or none."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import torch

__all__ = ["read_checkpoint", "write_checkpoint"]

FORMAT = 1


def write_checkpoint(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write ``state`` so that ``path`` holds either the old file or the whole new one, never half of it.

    The new file is written beside it, flushed to the disk and renamed; a full disk or a crash leaves the old one.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save({"format": FORMAT, **state}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_checkpoint(path: str | os.PathLike[str], *, map_location: torch.device | str = "cpu") -> dict[str, Any]:
    """Read a checkpoint with ``weights_only=True``: a file from elsewhere cannot run code.

    Raises
    ------
    ValueError
        The file is not a checkpoint of this version.
    """
    try:
        state = torch.load(path, map_location=map_location, weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # torch raises many kinds for a damaged file
        raise ValueError(
            f"{path} is not a readable checkpoint ({type(error).__name__}): delete it to start anew."
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(f"{path} is not a checkpoint of format {FORMAT}: delete it to start anew.")
    return state
