"""Files of tensors and plain values that are used only if they are undamaged, such as saved estimators.

A file has one line of text with the number and the SHA-256 of the bytes that follow, and these are what ``torch.save``
writes. This part is our own, because ``torch.load`` takes most flipped bits for data, and a pickle can run code.
"""

from __future__ import annotations

import hashlib
import io
import os
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
    head = _first_line(content)
    write_atomically(path, lambda file: file.write(head + b"\n" + content))


def read_state(path: str | os.PathLike[str], *, what: str, advice: str) -> dict[str, Any]:
    """Read a file of :func:`write_state` with ``weights_only=True``, so that a file from elsewhere cannot run code.

    Parameters
    ----------
    path : path
        The file.
    what, advice : str
        What the file should be, and what to do if it is not, for the messages.

    Raises
    ------
    ValueError
        The file is of another kind, truncated, damaged or of another format.
    """
    head, _, content = Path(path).read_bytes().partition(b"\n")
    words = head.split(b" ")
    if words[0] != _FIRST_WORD:
        raise ValueError(f"{path} is not {what}: {advice}.")
    if len(words) == 3 and words[1].isdigit() and int(words[1]) > len(content):
        raise ValueError(f"{path} is truncated ({len(content)} of {int(words[1])} bytes): {advice}.")
    if head != _first_line(content):
        raise ValueError(f"{path} is damaged (its checksum is wrong): {advice}.")
    try:
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds of errors for the archives of others
        # Not chained, because torch's own message advises to read the file as a pickle, which would run its code.
        raise ValueError(f"{path} is not {what} ({type(error).__name__}): {advice}.") from None
    found = state.get("format") if isinstance(state, dict) else None
    if found != FORMAT:
        raise ValueError(f"{path} has format {found}, but this version of frhsic-core reads format {FORMAT}: {advice}.")
    return state


def _first_line(content: bytes) -> bytes:
    return b"%s %d %s" % (_FIRST_WORD, len(content), hashlib.sha256(content).hexdigest().encode())
