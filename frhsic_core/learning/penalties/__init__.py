"""FRHSIC and the methods it is compared with, as penalties with one interface.

The settings of each protocol are rows of ``frhsic_core.registry.METHODS``. For the methods of the
paper ``"text"`` and ``"reference"`` mean:

encoder
    *text:* SELU after both layers. *reference:* SELU after the first layer only.
frhsic
    Biased HSIC in both. *text:* σ_S over the training rows, σ_Z on one batch every 20 epochs.
    *reference:* σ_S over the first 1,000 rows, σ_Z at every batch of epochs 0, 20, ..., frozen in
    between.
frem
    σ_Z = 1, γ = 0.5 and 32 anchors in both. *text:* MMD² averaged (the appendix), Z scaled to
    [0, 1]. *reference:* MMD averaged, raw Z.
reg_gdp
    30 points and bandwidth 0.2 in both. *text:* over the training range of S. *reference:* over the
    range of S in the batch.
adv
    *text:* the HGR adversary of Grari et al. *reference:* an adversary that predicts S, mean
    squared error.
laftr
    Four quartiles and cross-entropy in both.
mmd_binned
    *text:* ten equal-width bins, kernel MMD² of every pair, Z scaled to [0, 1], σ_Z = 1.
    *reference:* ten quantile bins, squared distance of each bin's mean of Z from the batch's mean.
dcor
    *text:* unbiased squared distance correlation. *reference:* biased squared distance covariance.
unfair
    No penalty.

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
    "ADV",
    "FREM",
    "FRHSIC",
    "LAFTR",
    "METHODS",
    "PROTOCOLS",
    "DCor",
    "KernelPenalty",
    "MMDBinned",
    "Penalty",
    "RegGDP",
    "Unfair",
    "architecture",
    "make_penalty",
    "whiten",
]

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
    one_of("method", method, registry.METHODS)
    one_of("protocol", protocol, registry.PROTOCOLS)
    row = registry.METHODS[method]
    build = resolve_name(row.penalty)
    known = inspect.signature(build).parameters
    unknown = [name for name in settings if name not in known]
    if unknown:
        raise ValueError(
            f"the penalty of {method!r} has no {unknown}: choose from {', '.join(known)}."
        )
    of_protocol = row.settings.get(protocol, {})
    return build(**{**of_protocol, **settings})


def architecture(protocol: str) -> dict[str, Any]:
    """Return the arguments of the encoder that a protocol sets."""
    one_of("protocol", protocol, registry.PROTOCOLS)
    return {"activate_output": registry.PROTOCOLS[protocol]}
