"""Files of tensors and plain values that are used only if they are undamaged: checkpoints and saved estimators.

``torch.save`` writes a ZIP archive with a CRC-32 of every record, but ``torch.load`` does not look at it: it takes most
flipped bits for data. Here all records are checked before any of them is used.
"""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import torch

from frhsic_core.atomic_files import write_atomically


def write_state(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write ``state`` so that ``path`` holds either the old file or the whole new one."""
    # In memory first: when Ctrl-C comes while torch writes to a file, torch raises a RuntimeError of its own instead.
    buffer = io.BytesIO()
    torch.save(state, buffer)
    if zipfile.ZipFile(buffer).testzip() is not None:
        raise RuntimeError(
            f"torch writes no checksums, so {path} could not be checked when it is read: call "
            "torch.serialization.set_crc32_options(True) first."
        )
    write_atomically(path, lambda file: file.write(buffer.getbuffer()))


def read_state(
    path: str | os.PathLike[str], *, what: str, format: int, advice: str, map_location: torch.device | str = "cpu"
) -> dict[str, Any]:
    """Read a file of :func:`write_state` with ``weights_only=True``, so that a file from elsewhere cannot run code.

    Parameters
    ----------
    path : path
        The file.
    what, advice : str
        What the file should be, and what to do if it is not, for the messages.
    format : int
        The format number that the file must have.
    map_location : torch.device or str
        Device of the tensors.

    Raises
    ------
    ValueError
        The file is of another kind, truncated, damaged or of another format.
    """
    data = Path(path).read_bytes()
    file = io.BytesIO(data)
    if not data.startswith(b"PK"):
        raise ValueError(f"{path} is not {what}: {advice}.")
    try:
        truncated = not zipfile.is_zipfile(file)
        damaged = None if truncated else zipfile.ZipFile(file).testzip()
    except Exception as error:  # the directory of the archive is damaged, which shows in many ways
        raise ValueError(f"{path} is damaged ({type(error).__name__}): {advice}.") from error
    if truncated:
        raise ValueError(f"{path} is truncated, its end is missing: {advice}.")
    if damaged is not None:
        raise ValueError(f"{path} is damaged (the checksum of its record {damaged} is wrong): {advice}.")
    file.seek(0)
    try:
        state = torch.load(file, map_location=map_location, weights_only=True)
    except Exception as error:  # torch raises many kinds of errors for the archives of others
        # Not chained, because torch's own message advises to read the file as a pickle, which would run its code.
        raise ValueError(f"{path} is not {what} ({type(error).__name__}): {advice}.") from None
    found = state.get("format") if isinstance(state, dict) else None
    if not isinstance(found, int):
        raise ValueError(f"{path} is not {what}, because it has no format number: {advice}.")
    if found > format:
        raise ValueError(
            f"{path} was written by a newer version of frhsic-core (format {found}; this version reads format "
            f"{format}): update frhsic-core."
        )
    if found < format:
        raise ValueError(f"{path} has format {found}, but this version reads format {format}: {advice}.")
    return state
