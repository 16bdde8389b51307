"""Take the part of the scores that control features explain out of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import SplineTransformer

from frhsic_core.audit.columns import Column

Array = NDArray[np.float64]

FIT_ROWS = 100_000
FOLDS = 5
_KNOTS = 6
_BLOCK = 100_000


def design(controls: Sequence[Column], rows: NDArray[np.intp]) -> list[tuple[Array, bool]]:
    """Return each control feature at the given rows, and whether it has categories."""
    return [(column.values[rows], bool(column.categories)) for column in controls]


class _Basis:
    """Cubic splines of numeric controls and indicators of categories; effects of several controls are added."""

    def __init__(self, parts: list[tuple[Array, bool]]) -> None:
        self.parts: list[SplineTransformer | Array] = []
        for values, nominal in parts:
            distinct = np.unique(values)
            if nominal or len(distinct) <= 2 * _KNOTS:
                self.parts.append(distinct)
                continue
            knots = np.unique(np.quantile(values, np.linspace(0, 1, _KNOTS)))
            spline = SplineTransformer(
                knots=knots[:, None], degree=3 if len(knots) > 2 else 1, extrapolation="constant"
            )
            self.parts.append(spline.fit(values[:, None]))

    def __call__(self, parts: list[tuple[Array, bool]]) -> Array:
        columns = []
        for basis, (values, _) in zip(self.parts, parts, strict=True):
            if isinstance(basis, np.ndarray):
                columns.append((values[:, None] == basis).astype(np.float64))
            else:
                columns.append(basis.transform(values[:, None]))
        return np.concatenate(columns, axis=1)


def residuals(f: Array, controls: list[tuple[Array, bool]], *, weight: Array | None = None, seed: int = 0) -> Array:
    """Return f − E[f | controls], cross-fitted: each row is predicted by a fit that did not see it.

    The fit is additive: cubic splines with 6 knots for a number, indicators for categories, and a small ridge. It uses
    at most 100,000 rows, and the memory for more rows is bounded.

    Parameters
    ----------
    f : array
        ``(n,)``.
    controls : list
        Values ``(n,)`` of each control, and whether they are codes of categories.
    weight : array, optional
        ``(n,)``.
    seed : int
        Seed of the folds.

    Examples
    --------
    >>> c = np.linspace(-1, 1, 400)
    >>> float(np.abs(residuals(c**2, [(c, False)])).max()) < 0.02
    True
    """
    n = len(f)
    generator = np.random.default_rng(seed)
    fold = generator.permutation(n) % FOLDS
    left = np.empty(n)
    for k in range(FOLDS):
        train = np.flatnonzero(fold != k)
        if len(train) > FIT_ROWS:
            train = np.sort(generator.choice(train, FIT_ROWS, replace=False))
        parts = [(values[train], nominal) for values, nominal in controls]
        basis = _Basis(parts)
        model = RidgeCV(alphas=(1e-3, 1e-1, 10.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # collinear columns are what the ridge is for
            model.fit(basis(parts), f[train], sample_weight=None if weight is None else weight[train])
        test = np.flatnonzero(fold == k)
        for start in range(0, len(test), _BLOCK):
            rows = test[start : start + _BLOCK]
            left[rows] = f[rows] - model.predict(basis([(values[rows], nominal) for values, nominal in controls]))
    return left
