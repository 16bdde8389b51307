"""λ, seeds and datasets of a stack, brought to one length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["stack_settings"]


def stack_settings(lam: Any, seeds: Any, dataset: Any, *, datasets: int) -> tuple[list[float], list[int], list[int]]:
    """Bring λ, seeds and datasets to one length; single values serve every model.

    Parameters
    ----------
    lam, seeds, dataset : number or sequence
        One value, or one for each model; ``dataset=None`` is the only dataset, or one model for each.
    datasets : int
        How many there are.

    Examples
    --------
    >>> stack_settings([0.0, 1.0], 7, None, datasets=1)
    ([0.0, 1.0], [7, 7], [0, 0])
    """

    def listed(value: Any) -> list[Any]:
        value = value.tolist() if hasattr(value, "tolist") else value
        return list(value) if isinstance(value, Sequence) else [value]

    lams, seed_list = [float(v) for v in listed(lam)], [int(v) for v in listed(seeds)]
    which = listed(dataset) if dataset is not None else ([0] if datasets == 1 else list(range(datasets)))
    if not lams or not seed_list or not which:
        raise ValueError("lam, seeds or dataset is empty: at least one model is needed.")
    models = max(len(lams), len(seed_list), len(which))
    lengths = {"lam": len(lams), "seeds": len(seed_list), "dataset": len(which)}
    for name, length in lengths.items():
        if length not in (1, models):
            raise ValueError(f"{name} has {length} values for {models} models: give one, or one for each model.")
    if any(not value >= 0 or value == float("inf") for value in lams):
        raise ValueError(f"lam is {lam}: every value must be zero or positive, and finite.")
    if any(not 0 <= int(value) < datasets for value in which):
        raise ValueError(f"dataset holds {max(which, key=abs)}: there are {datasets} datasets, numbered from 0.")

    def spread(values: list[Any]) -> list[Any]:
        return values * models if len(values) == 1 else values

    return spread(lams), spread(seed_list), [int(v) for v in spread(which)]
