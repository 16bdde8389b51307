"""FRHSIC and the methods it is compared with, as penalties with one interface, by key and protocol.

The settings of each protocol are rows of ``frhsic_core.registry.METHODS``. For the methods of the
paper they mean:

============  ==========================================
===================================================== method        ``"text"``
``"reference"`` ============  ==========================================
===================================================== encoder       SELU after both layers
SELU after the first layer only frhsic        biased; σ_S over the training rows; σ_Z     biased;
σ_S over the first 1,000 rows; σ_Z at every
              on one batch every 20 epochs                batch of epochs 0, 20, ..., frozen in
              between
frem          MMD² averaged (the appendix), Z scaled to   MMD averaged, raw Z, σ_Z = 1, γ = 0.5, 32
anchors
              [0, 1], σ_Z = 1, γ = 0.5, 32 anchors
reg_gdp       30 points over the training range of S,     30 points over the batch's range of S,
bandwidth 0.2
              bandwidth 0.2
adv           the HGR adversary of Grari et al.           an adversary that predicts S, mean squared
error laftr         four quartiles, cross-entropy               the same mmd_binned    ten
equal-width bins, kernel MMD² of every  ten quantile bins, squared distance of each bin's mean
              pair, Z scaled to [0, 1], σ_Z = 1           of Z from the batch's mean
dcor          unbiased squared distance correlation       biased squared distance covariance unfair
no penalty                                  no penalty ============
==========================================  =====================================================

``"recommended"`` differs from ``"text"`` in FRHSIC (Z whitened in the batch, a moving average of
the bandwidth, and a term on the head's output; see :class:`frhsic_core.learning.FRHSIC` for the
reasons) and in the encoder, which has no activation after its last layer. Every other method has
the form that its own authors describe.
"""

from __future__ import annotations

import inspect
from pkgutil import resolve_name
from typing import Any

from frhsic_core import registry
from frhsic_core._choices import one_of
from frhsic_core.learning.penalties.adversarial import ADV, LAFTR
from frhsic_core.learning.penalties.base import KernelPenalty, Penalty, Unfair
from frhsic_core.learning.penalties.dcor import DCor
from frhsic_core.learning.penalties.frem import FREM
from frhsic_core.learning.penalties.frhsic import FRHSIC
from frhsic_core.learning.penalties.mmd_binned import MMDBinned
from frhsic_core.learning.penalties.reg_gdp import RegGDP
from frhsic_core.learning.penalties.scaling import whiten

__all__ = [
    "ADV", "FREM", "FRHSIC", "LAFTR", "METHODS", "PROTOCOLS", "DCor", "KernelPenalty", "MMDBinned", "Penalty", "RegGDP",
    "Unfair", "architecture", "make_penalty", "whiten",
]  # fmt: skip

METHODS = tuple(registry.METHODS)
PROTOCOLS = tuple(registry.PROTOCOLS)


def make_penalty(method: str, *, protocol: str = "recommended", **settings: Any) -> Penalty:
    """Return the penalty of a method with the settings of a protocol.

    Parameters
    ----------
    method : str
        A key of ``frhsic_core.registry.METHODS``.
    protocol : {"recommended", "text", "reference"}
        Whose settings to use.
    **settings
        Arguments of the penalty class that replace those of the protocol.

    Examples
    --------
    >>> make_penalty("frhsic", protocol="reference").estimator
    'biased'
    """
    row = registry.METHODS[one_of("method", method, registry.METHODS)]
    one_of("protocol", protocol, registry.PROTOCOLS)
    build = resolve_name(row.penalty)
    known = inspect.signature(build).parameters
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(
            f"the penalty of {method!r} has no {unknown}: choose from {', '.join(known)}."
        )
    return build(**{**row.settings.get(protocol, {}), **settings})


def architecture(protocol: str) -> dict[str, Any]:
    """Return the arguments of the encoder that a protocol sets."""
    return {"activate_output": registry.PROTOCOLS[one_of("protocol", protocol, registry.PROTOCOLS)]}
