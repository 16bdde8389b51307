# SHIM: theory -> claims.stored
from frhsic_core.paper.claims.stored import (
    WORTH_SAYING,
    certificates,
    exact_hsic_limit,
    recorded,
)

__all__ = ["WORTH_SAYING", "certificates", "exact_hsic_limit", "recorded"]
