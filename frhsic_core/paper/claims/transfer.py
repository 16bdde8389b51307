# SHIM: transfer -> experiments.transfer.tables, experiments.mutual_information
from frhsic_core.paper.experiments.mutual_information import (
    HIGH,
    ZERO,
    information_at,
    information_lower,
    information_vanishes,
)
from frhsic_core.paper.experiments.transfer.tables import (
    heads_of,
    stored_transfer_place,
    stored_transfer_reduction,
    transfer_absent,
    transfer_place,
    transfer_reduction,
    transfer_setting,
    transfer_spread,
)

__all__ = [
    "HIGH",
    "ZERO",
    "heads_of",
    "information_at",
    "information_lower",
    "information_vanishes",
    "stored_transfer_place",
    "stored_transfer_reduction",
    "transfer_absent",
    "transfer_place",
    "transfer_reduction",
    "transfer_setting",
    "transfer_spread",
]
