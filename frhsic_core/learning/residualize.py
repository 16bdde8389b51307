"""A cheap rival: remove the part of X that S predicts, then train without a penalty."""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair
from frhsic_core.choices import one_of
from frhsic_core.kernels import Gaussian, median_bandwidth

FORMS = ("linear", "kernel")


class Residualizer:
    r"""Subtracts Ê[X | S] from X, with a regression that is fitted on the training part only.

    .. math:: x_i \mapsto x_i - \hat m(s_i),\qquad \hat m \text{ linear in } s
        \text{ (least squares), or kernel ridge with a Gaussian kernel.}

    This removes the dependence of the mean of X on S (linearly, or at the resolution of the bandwidth) and nothing
    else. Higher moments remain, and an encoder can use them. The cost is O(np²) for least squares, and O(c³ + nc) for
    kernel ridge with c centers, which are evenly spaced over the training samples in the order of S.

    Parameters
    ----------
    form : {"linear", "kernel"}
        Regression of X on S.
    ridge : float
        Penalty of the kernel ridge, relative to the number of centers.
    centers : int
        Number of centers of the kernel ridge (Nyström).

    Examples
    --------
    >>> s = torch.linspace(0, 1, 50)
    >>> x = torch.stack([2 * s, 1 - s], dim=-1)
    >>> bool(Residualizer().fit(x, s).transform(x, s).abs().max() < 1e-5)
    True
    """

    def __init__(self, form: str = "linear", *, ridge: float = 1e-3, centers: int = 200) -> None:
        one_of("form", form, FORMS)
        if not ridge > 0 or centers < 1:
            raise ValueError(f"ridge is {ridge} and centers is {centers}: both must be positive.")
        self.form = form
        self.ridge = ridge
        self.centers = centers
        self._coefficients: Tensor | None = None

    def fit(self, x: ArrayLike, s: ArrayLike) -> Residualizer:
        """Fit on training samples ``x (..., n, d)`` and ``s (..., n, p)`` or ``(..., n)`` of one or more splits."""
        x, s = as_pair(x, s, names=("X", "s"), min_rows=2)
        if self.form == "kernel":
            rank = s[..., 0].argsort(dim=-1, stable=True)
            place = torch.linspace(0, s.shape[-2] - 1, min(self.centers, s.shape[-2]), device=s.device).round().long()
            index = rank[..., place].unsqueeze(-1).expand(*s.shape[:-2], len(place), s.shape[-1])
            self._center_points = s.gather(-2, index)
            self._kernel = Gaussian(median_bandwidth(self._center_points))
        design = self._design(s)
        gram = design.mT.double() @ design.double() / s.shape[-2]
        width = gram.shape[-1]
        # Ties among the centers make the Gram matrix singular; the ridge is what makes the solution unique.
        penalty = torch.full((width,), self.ridge / width if self.form == "kernel" else 1e-12, dtype=gram.dtype)
        penalty[0] = 0.0  # the mean is never shrunk
        target = design.mT.double() @ x.double() / s.shape[-2]
        scale = gram.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None]
        solution = torch.linalg.lstsq(gram + scale * torch.diag(penalty.to(gram.device)), target, driver=None).solution
        self._coefficients = solution.to(x.dtype)
        return self

    def transform(self, x: ArrayLike, s: ArrayLike) -> Tensor:
        """Return X minus the part that S predicts."""
        if self._coefficients is None:
            raise RuntimeError("this Residualizer is not fitted: call fit(X, s) on the training part first.")
        x, s = as_pair(x, s, names=("X", "s"))
        return x - self._design(s) @ self._coefficients.to(x)

    def fit_transform(self, x: ArrayLike, s: ArrayLike) -> Tensor:
        """Fit, then transform the same samples."""
        return self.fit(x, s).transform(x, s)

    def _design(self, s: Tensor) -> Tensor:
        ones = torch.ones_like(s[..., :1])
        if self.form == "linear":
            return torch.cat([ones, s], dim=-1)
        return torch.cat([ones, self._kernel(s, self._center_points.to(s))], dim=-1)
