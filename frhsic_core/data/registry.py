# SHIM: frhsic_core.data.registry -> frhsic_core.data.loading
"""Re-export the loading functions."""

from frhsic_core.data.loading import LAWS, REAL, VARIANTS, available_datasets, load_dataset, sources_of

__all__ = ["LAWS", "REAL", "VARIANTS", "available_datasets", "load_dataset", "sources_of"]
