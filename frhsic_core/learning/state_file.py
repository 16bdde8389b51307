"""Whole files of tensors and plain values, for checkpoints and saved estimators."""

from __future__ import annotations

import os
from typing import Any

import torch

from frhsic_core.atomic_files import write_atomically

FORMAT = 1


def write_state(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write ``state`` so that ``path`` holds either the old file or the whole new one."""
    write_atomically(path, lambda file: torch.save({"format": FORMAT, **state}, file))


def read_state(path: str | os.PathLike[str], *, map_location: torch.device | str = "cpu") -> dict[str, Any]:
    """Read a checkpoint with ``weights_only=True``, so that a file from elsewhere cannot run code.

    Raises
    ------
    ValueError
        The file is damaged, or it is not a checkpoint of this version.
    """
    try:
        state = torch.load(path, map_location=map_location, weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # torch raises many kinds of errors for a damaged file
        raise ValueError(
            f"{path} is not a readable checkpoint ({type(error).__name__}): delete it to start again."
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(f"{path} is not a checkpoint of format {FORMAT}: delete it to start again.")
    return state
