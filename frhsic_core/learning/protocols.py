"""The methods by name, in three settings: recommended here, as the paper's text says, as its released code does.

============  ==========================================  =====================================================
method        ``"text"``                                  ``"reference"``
============  ==========================================  =====================================================
encoder       SELU after both layers                      SELU after the first layer only
frhsic        biased; σ_S over the training rows; σ_Z     biased; σ_S over the first 1,000 rows; σ_Z at every
              on one batch every 20 epochs                batch of epochs 0, 20, ..., frozen in between
frem          MMD² averaged (the appendix), Z scaled to   MMD averaged, raw Z, σ_Z = 1, γ = 0.5, 32 anchors
              [0, 1], σ_Z = 1, γ = 0.5, 32 anchors
reg_gdp       30 points over the training range of S,     30 points over the batch's range of S, bandwidth 0.2
              bandwidth 0.2
adv           the HGR adversary of Grari et al.           an adversary that predicts S, mean squared error
laftr         four quartiles, cross-entropy               the same
mmd_binned    ten equal-width bins, kernel MMD² of every  ten quantile bins, squared distance of each bin's mean
              pair, Z scaled to [0, 1], σ_Z = 1           of Z from the batch's mean
dcor          unbiased squared distance correlation       biased squared distance covariance
unfair        no penalty                                  no penalty
============  ==========================================  =====================================================

``"recommended"`` differs from the text in FRHSIC (normalised, Z whitened in the batch, the bandwidth a moving
average; see :class:`frhsic_core.learning.FRHSIC` for why) and in the encoder's end (the reference's); the rest is each
method in the form its own authors describe.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from frhsic_core.learning.penalties import (
    ADV,
    FREM,
    FRHSIC,
    LAFTR,
    DCor,
    MMDBinned,
    Penalty,
    RegGDP,
    Unfair,
)

__all__ = ["METHODS", "PROTOCOLS", "architecture", "make_penalty"]

PROTOCOLS = ("recommended", "text", "reference")

_SETTINGS: dict[str, tuple[Callable[..., Penalty], dict[str, dict[str, Any]]]] = {
    "unfair": (Unfair, {}),
    "frhsic": (
        FRHSIC,
        {
            "text": {"estimator": "biased", "scale": None, "bandwidth": "every_20_epochs"},
            "reference": {
                "estimator": "biased",
                "scale": None,
                "bandwidth": "reference",
                "bandwidth_s": "first_1000",
            },
        },
    ),
    "frem": (FREM, {"text": {"power": 2, "scale": "minmax"}}),
    "reg_gdp": (RegGDP, {"text": {"grid_range": "training"}}),
    "adv": (ADV, {"text": {"adversary": "hgr"}, "reference": {"adversary": "mse"}}),
    "laftr": (LAFTR, {}),
    "mmd_binned": (
        MMDBinned,
        {
            "text": {"bins": 10, "edges": "width", "scale": "minmax", "bandwidth": 1.0},
            "reference": {"bins": 10, "edges": "quantile", "discrepancy": "means"},
        },
    ),
    "dcor": (DCor, {"reference": {"form": "covariance"}}),
}
METHODS = tuple(_SETTINGS)


def make_penalty(method: str, *, protocol: str = "recommended", **settings: Any) -> Penalty:
    """Return the penalty of a method in the settings of a protocol; ``settings`` override single ones.

    Examples
    --------
    >>> make_penalty("frhsic", protocol="reference").estimator
    'biased'
    """
    if method not in _SETTINGS:
        raise ValueError(f"method is {method!r}: choose one of {', '.join(map(repr, METHODS))}.")
    _require_protocol(protocol)
    build, chosen = _SETTINGS[method]
    known = inspect.signature(build).parameters
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(f"the penalty of {method!r} has no {unknown}: choose from {', '.join(known)}.")
    return build(**{**chosen.get(protocol, {}), **settings})


def architecture(protocol: str) -> dict[str, Any]:
    """Return what a protocol says about the encoder."""
    _require_protocol(protocol)
    return {"activate_output": protocol == "text"}


def _require_protocol(protocol: str) -> None:
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol is {protocol!r}: choose 'recommended', 'text' or 'reference'.")
