"""Calls of the joint route, of kernels, bounds and laws, in each form and size, give the numbers on record.

The record holds calls in Python under the number of rows, each with its values and its gradient in Z. A call is added
with an empty list.
"""

from __future__ import annotations

from dataclasses import astuple, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from records import Records

from frhsic_core import _arrays, bounds, joint, kernels, laws
from frhsic_core.bounds import hsic as bounds_hsic
from frhsic_core.joint import contraction, factors, given, independence, information
from frhsic_core.laws import _finite, _mercer, _quadrature, formulas
from frhsic_core.learning.penalties import scaling
from frhsic_core.paper.experiments import mutual_information as components

LAWS = (_finite, formulas, _mercer, _quadrature, laws)
MODULES = (
    _arrays,
    kernels,
    bounds,
    *LAWS,
    contraction,
    scaling,
    factors,
    given,
    independence,
    joint,
)


def names(n: int) -> dict[str, Any]:
    """Return the library and a sample: Z, S, C, a label, weights and clusters; the last columns have ties."""
    rng = np.random.default_rng(n)
    z, s, c, weight = (
        rng.normal(size=(n, 3)),
        rng.normal(size=(n, 2)),
        rng.normal(size=n),
        rng.uniform(0.5, 2.0, n),
    )
    z[:, 0] += 0.5 * s[:, 0] + c
    z[:, 2], s[:, 1] = (z[:, 2] + s[:, 1]).round(), (s[:, 1] + 0.5 * c).round()
    data = {
        "z": z,
        "s": s,
        "c": c,
        "label": np.digitize(c, [-0.5, 0.5]),
        "weight": weight,
        "pairs": np.arange(n) // 2,
    }
    library = {name: one for module in MODULES for name, one in vars(module).items()}
    return (
        library
        | {
            "torch": torch,
            "np": np,
            "Fraction": Fraction,
            "components": components,
            "HSICLoss": joint.HSICLoss,
            # Words are labels, whole numbers are numbers.
            "group": data["label"].astype(str),
            "pair_variance": bounds_hsic.pair_variance,
            "pair_slack": bounds_hsic.pair_slack,
            "information": information,
        }
        | {name: torch.as_tensor(x) for name, x in data.items()}
    )


def numbers(call: str, known: dict[str, Any]) -> list[float]:
    """Return the numbers that a call gives, then the size of its gradient in Z and its product with Z."""
    z = known["z"].clone().requires_grad_()
    found = eval(call, known | {"z": z})
    parts = (
        astuple(found) if is_dataclass(found) else found if isinstance(found, tuple) else [found]
    )
    parts = [
        float(x) if isinstance(x, Fraction) else x
        for x in parts
        if not isinstance(x, str | tuple | None)
    ]
    tensors = [torch.as_tensor(x, dtype=torch.float64).flatten() for x in parts]
    if isinstance(found, torch.Tensor) and found.requires_grad:
        (gradient,) = torch.autograd.grad(found.sum(), z)
        tensors += [gradient.norm()[None], (gradient * z).sum()[None]]
    return [float(f"{x:.15g}") for x in torch.cat(tensors).tolist()]


SLOW = [pytest.param(n, marks=[pytest.mark.slow, pytest.mark.recorded]) for n in (900, 1500)]


@pytest.mark.parametrize("n", [40, 300, *SLOW])
def test_calls_give_the_recorded_numbers(n: int, recorded: Records) -> None:
    known = names(n)
    # Sums of n² products in float64 and float32, with what cancels in a centered sum; features leave out a millionth.
    # Laws are right to about 1e-12.
    recorded(
        {call: numbers(call, known) for call in recorded.read()[str(n)]},
        part=str(n),
        rel=lambda call: 2e-3 if "float()" in call else 1e-10 if "Pair(" in call else 1e-5,
        abs_=1e-12,
    )
