"""Check a name that a user typed against the known names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def one_of(what: str, given: str, choices: Iterable[str]) -> str:
    """Return ``given`` if it is one of ``choices``; raise a ValueError that lists the choices otherwise.

    Parameters
    ----------
    what : str
        The name of the argument or option, as the user writes it.
    given : str
        The value to check.
    choices : iterable of str
        The known values.

    Examples
    --------
    >>> one_of("variant", "text", ("text", "reference"))
    'text'
    >>> one_of("variant", "refrence", ("text", "reference"))
    Traceback (most recent call last):
    ...
    ValueError: variant is 'refrence' (did you mean 'reference'?): choose one of text, reference.
    """
    known = list(choices)
    if given in known:
        return given
    close = difflib.get_close_matches(str(given), known, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise ValueError(f"{what} is {given!r}{hint}: choose one of {', '.join(known)}.")
