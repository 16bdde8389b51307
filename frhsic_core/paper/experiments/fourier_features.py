# SHIM: fourier_features -> experiments.shared.fourier_features
from frhsic_core.paper.experiments.shared.fourier_features import (
    REACH,
    gaussian_features,
    mean_mmd,
    squared_mmd_at_rows,
    v_statistic_hsic,
)

__all__ = ["REACH", "gaussian_features", "mean_mmd", "squared_mmd_at_rows", "v_statistic_hsic"]
