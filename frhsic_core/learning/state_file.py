"""Files of tensors and plain values that are used only if they are undamaged: checkpoints and saved estimators.

A file has one line of text with the number and the SHA-256 of the bytes that follow, and these are what ``torch.save``
writes. ``torch.load`` itself takes most flipped bits for data. Files of format 1 have no such line; their checksums are
the CRC-32 of the records of torch's archive, which ``torch.load`` does not verify either.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import torch

from frhsic_core.atomic_files import write_atomically

FORMAT = 2
_FIRST_WORD = b"frhsic-core"


def write_state(path: str | os.PathLike[str], state: dict[str, Any]) -> None:
    """Write ``state`` and the format so that ``path`` holds either the old file or the whole new one."""
    # In memory first: when Ctrl-C comes while torch writes to a file, torch raises a RuntimeError of its own instead.
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, **state}, buffer)
    content = buffer.getvalue()
    head = b"%s %d %s\n" % (_FIRST_WORD, len(content), hashlib.sha256(content).hexdigest().encode())
    write_atomically(path, lambda file: file.write(head + content))


def read_state(
    path: str | os.PathLike[str], *, what: str, advice: str, oldest: int, map_location: torch.device | str = "cpu"
) -> dict[str, Any]:
    """Read a file of :func:`write_state` with ``weights_only=True``, so that a file from elsewhere cannot run code.

    Parameters
    ----------
    path : path
        The file.
    what, advice : str
        What the file should be, and what to do if it is not, for the messages.
    oldest : int
        The oldest format that is read.
    map_location : torch.device or str
        Device of the tensors.

    Raises
    ------
    ValueError
        The file is of another kind, truncated, damaged or of another format.
    """
    data = Path(path).read_bytes()
    if data.startswith(_FIRST_WORD):
        head, _, content = data.partition(b"\n")
        fault = _fault(head, content)
    elif data.startswith(b"PK"):
        content = data
        fault = _fault_of_archive(content)
    else:
        raise ValueError(f"{path} is not {what}: {advice}.")
    if fault is not None:
        raise ValueError(f"{path} is {fault}: {advice}.")
    try:
        state = torch.load(io.BytesIO(content), map_location=map_location, weights_only=True)
    except Exception as error:  # torch raises many kinds of errors for the archives of others
        # Not chained, because torch's own message advises to read the file as a pickle, which would run its code.
        raise ValueError(f"{path} is not {what} ({type(error).__name__}): {advice}.") from None
    found = state.get("format") if isinstance(state, dict) else None
    if not isinstance(found, int):
        raise ValueError(f"{path} is not {what}, because it has no format number: {advice}.")
    if found > FORMAT:
        raise ValueError(
            f"{path} was written by a newer version of frhsic-core (format {found}; this version reads format "
            f"{FORMAT}): update frhsic-core."
        )
    if found < oldest:
        raise ValueError(f"{path} has format {found}, but this version reads format {oldest}: {advice}.")
    if found > 1 and content is data:
        raise ValueError(f"{path} is damaged (it has lost its checksum): {advice}.")
    return state


def _fault(head: bytes, content: bytes) -> str | None:
    """Return what is wrong with a file of the first line ``head``, or None."""
    expected = b"%s %d %s" % (_FIRST_WORD, len(content), hashlib.sha256(content).hexdigest().encode())
    if head == expected:
        return None
    words = head.split(b" ")
    if len(words) == 3 and words[1].isdigit() and int(words[1]) > len(content):
        return f"truncated ({len(content)} of {int(words[1])} bytes)"
    return "damaged (its checksum is wrong)"


def _fault_of_archive(content: bytes) -> str | None:
    """Return what is wrong with a file of format 1, or None."""
    try:
        if not zipfile.is_zipfile(io.BytesIO(content)):
            return "truncated, its end is missing"
        archive = zipfile.ZipFile(io.BytesIO(content))
        damaged = archive.testzip()
        # Torch writes no attributes. It would take a record that is marked as a folder for an empty one.
        if any(record.external_attr for record in archive.infolist()):
            return "damaged (a record has attributes)"
    except Exception as error:  # the directory of the archive is damaged, which shows in many ways
        return f"damaged ({type(error).__name__})"
    return None if damaged is None else f"damaged (the checksum of its record {damaged} is wrong)"
