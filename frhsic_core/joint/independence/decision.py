"""The public test of Z ⟂ S: reads the input, chooses the computation by method and size, and returns the decision.

There are four ways to the null distribution of n·HSIC_b. *Gamma* fits two moments (Gretton et al., 2007) and is almost
free. *Spectral* uses the shape of the limit law, a weighted sum of χ²₁ variables, and the exact mean and variance over
permutations. *Permutation* is exact for every n, kernel and distribution. *Aggregated* is as exact, and looks at
several bandwidths at once.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core._arrays import (
    ArrayLike,
    RandomState,
    as_draws,
    as_pair,
    read_mixed,
    require_same_rows,
    same_kind,
)
from frhsic_core._choices import one_of
from frhsic_core.backend import is_torch, xp
from frhsic_core.joint.given import Given, read_given
from frhsic_core.joint.independence.fits import fitted_groups
from frhsic_core.joint.independence.permutation import (
    Request,
    decide,
    group_strata,
    permutation_test,
    within_kernel,
)
from frhsic_core.joint.independence.residual import residual_test
from frhsic_core.joint.problem import common_batch, elements
from frhsic_core.kernels import (
    Kernel,
    from_the_mean,
    in_own_units,
    needs_torch,
    resolve_kernel,
)

if TYPE_CHECKING:
    from torch import Tensor

_MIN_ROWS = {"gamma": 6, "spectral": 4, "permutation": 2, "aggregated": 2}


@dataclass(frozen=True)
class IndependenceTest:
    """Result of :func:`~frhsic_core.hsic_test`; tensors have the batch shape.

    Attributes
    ----------
    hsic : Tensor
        The biased HSIC (of the given or default bandwidths for ``"aggregated"``). It is exact, except with permutations
        of more than 8,192 rows whose Gram matrices do not have a small rank, such as those of ten columns, and with
        more than 512 rows and a continuous ``given``. There it is a rough value from features, and
        :func:`~frhsic_core.hsic` gives the exact one in O(n²) time.
    statistic : Tensor
        n·HSIC_b, or the aggregated statistic: the largest of the standardized statistics. With permutations of more
        than 512 rows it is that of the features, and so is ``threshold``.
    threshold : Tensor
        The level-α critical value, on the scale of ``statistic``.
    pvalue : Tensor
        Probability, under independence, of a statistic at least this large; always in float64.
    method : str
        ``"gamma"``, ``"spectral"``, ``"permutation"`` or ``"aggregated"``.
    alpha : float
        The level.
    """

    hsic: Tensor
    statistic: Tensor
    threshold: Tensor
    pvalue: Tensor
    method: str
    alpha: float

    @property
    def reject(self) -> Tensor:
        """Whether independence is rejected at level ``alpha``."""
        return self.pvalue <= self.alpha


@same_kind
def hsic_test(
    z: ArrayLike,
    s: ArrayLike,
    *,
    given: ArrayLike | None = None,
    method: str | None = None,
    kernel_z: Kernel | str | None = None,
    kernel_s: Kernel | str | None = None,
    n_permutations: int = 500,
    clusters: ArrayLike | None = None,
    random_state: RandomState = None,
    alpha: float = 0.05,
) -> IndependenceTest:
    """Test whether Z and S are independent, or independent given C.

    ``"gamma"``: gamma law with mean (κ_K − μ_K)(κ_L − μ_L), κ and μ the mean diagonal and off-diagonal entries of each
    Gram matrix (for κ = 1: 1 + μ_K μ_L − μ_K − μ_L), and variance
    2(n − 4)(n − 5)/((n − 1)(n − 2)(n − 3))·n times the off-diagonal mean of (K̃ ∘ L̃)² (Gretton et al., 2007).

    ``"spectral"``: the limit law is Σ λ_i μ_j χ²_ij, with λ, μ the eigenvalues of K̃/n, L̃/n. Its cumulants are products
    of power sums of eigenvalues, that is of traces, so none is computed. The three-moment fit of Liu, Tang and Zhang
    (2009) takes the limit's skewness, and the exact mean and variance over permutations (Kazi-Aoual et al., 1995): the
    limit's own variance is far too large for high-dimensional Z, where the diagonal of K̃ inflates it.

    ``"permutation"``: p = (1 + #{π : T_π ≥ T}) / (1 + B). Every batch element has its own permutations.

    ``"aggregated"``: the permutation test of the largest statistic over several multiples of both bandwidths, each
    standardized over the same permutations (see ``permutation``, which also proves the level). It finds dependence
    at scales at which the median bandwidth is blind.

    Permutations take O(Bn²) time at most up to 512 rows. Above, bins of rows are permuted, and the kernels are replaced
    by features, in O(n) time and memory (see ``permutation``): a column by the means of 1,024 cells if it has more
    values, and several columns by kernel values at up to 512 rows. The level stays exact; ``statistic`` and
    ``threshold`` are those of the features. From 768 rows the fits of two columns, categories and a few columns take
    O(n r²) time and O(n) memory for Gram matrices of rank r (see ``joint.factors``). Otherwise gamma
    takes O(n²) time, and spectral O(n³) up to 4,096 rows. Memory is O(n²) up to 4,096 rows and O(n) above.

    With ``given`` the hypothesis is Z ⟂ S | C, for example equalized odds (C the label) or parity given a legitimate
    factor. ``hsic`` is then Σ_c P(C = c) HSIC(Z, S | C = c) for a discrete C (see ``permutation``). The permutation
    and aggregated tests exchange S among rows of equal C: the level is exact for every n. The gamma and spectral tests
    add up the moments of the groups. For a continuous C, features of Z and S are regressed on C, and random signs of
    the products of the residuals take the place of permutations (see ``residual``): the level is asymptotic, and it
    holds where the regressions succeed. No test of this hypothesis has a level that holds for all continuous
    distributions, and power against any (Shah and Peters, 2020).

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``; n at least 6, 4, 2 and 2 for the four methods. A table
        ``s`` may have numeric and text columns, such as age and sex: see :func:`~frhsic_core.hsic`.
    given : array_like, optional
        C, ``(n,)`` or ``(n, columns)``: test Z ⟂ S | C. Words, truth values and categories are
        labels, and so are numbers with two values; several columns of labels form one group for
        each combination. Other numbers are continuous: of a label of several whole numbers pass
        categories or text. A table may have columns of both kinds: each group then has
        regressions of its own.
    method : {"gamma", "spectral", "permutation", "aggregated"}, optional
        See above. The default is ``"gamma"``, and ``"aggregated"`` with ``given``.
    kernel_z, kernel_s : Kernel or str, optional
        A kernel or its name, as in :func:`~frhsic_core.hsic`. The default is Gaussian at the median bandwidth of each
        batch element; with ``given``, at the median distance of the residuals given C.
    n_permutations : int
        B, for ``"permutation"`` and ``"aggregated"``; α(B + 1) should be a whole number or B large.
    clusters : array_like, optional
        ``(n,)``, one label for each row, for rows that are not independent, such as several records of one person or
        household. Whole clusters of equal size exchange their S, and rows keep their order within a cluster. This is
        exact if clusters are independent of each other and clusters of one size have the same distribution. A cluster
        whose size is unique stays where it is. Only with permutations.
    random_state : int, numpy.random.Generator or torch.Generator, optional
        Source of the permutations; without one, a fixed seed is used, so that the result is repeatable.
    alpha : float
        Level, in (0, 1).

    Returns
    -------
    IndependenceTest
        A constant argument has statistic 0 and p-value 1.

    Notes
    -----
    The chapter on speed shows measured levels and power of all methods, from ``frhsic run levels_and_power``. The gamma
    fit is a little liberal for heavy tails and for small samples: use another method there.

    Permutation tests are exact if rows (or clusters) are independent and identically distributed, and if the kernels
    do not depend on the order of the rows. A default bandwidth comes from 1,000 evenly spaced rows at most. Where bins
    are permuted, these rows are exchanged among themselves, so this holds there as well; with ``clusters`` it holds up
    to the sampling error of a median.

    Examples
    --------
    >>> import torch
    >>> z = torch.linspace(-1, 1, 60, dtype=torch.float64)
    >>> result = hsic_test(z, z**2)
    >>> bool(result.reject), bool(result.statistic > result.threshold)
    (True, True)
    >>> [bool(hsic_test(z, torch.cos(8 * z), method=method).reject) for method in ("permutation", "aggregated")]
    [False, True]

    Two scores that depend on the label only are dependent, but not given the label:

    >>> label = torch.arange(60) % 2
    >>> noise = torch.randn(2, 60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> bool(hsic_test(label + 0.1 * noise[0], label + 0.1 * noise[1]).reject)
    True
    >>> bool(hsic_test(label + 0.1 * noise[0], label + 0.1 * noise[1], given=label).reject)
    False
    """
    if method is None:
        method = "gamma" if given is None else "aggregated"
    one_of("method", method, _MIN_ROWS)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}: a level lies strictly between 0 and 1, such as 0.05.")
    permuted = method in ("permutation", "aggregated")
    if permuted and n_permutations < 1:
        raise ValueError(
            f"n_permutations is {n_permutations}: use at least 1; 200 or more are usual."
        )
    if clusters is not None and not permuted:
        raise ValueError(
            f"clusters needs permutations: use method='aggregated' or 'permutation', not {method!r}."
        )
    if given is not None:
        require_same_rows(z, given, names=("z", "given"))
    s, categorical = read_mixed(s)
    torch = needs_torch(kernel_z) or needs_torch(kernel_s)
    z, s = as_pair(z, s, min_rows=_MIN_ROWS[method], torch=torch)
    if clusters is not None:
        clusters = clusters.cpu().numpy() if is_torch(clusters) else np.asarray(clusters)
        if clusters.shape != z.shape[-2:-1]:
            raise ValueError(
                f"clusters has shape {clusters.shape}: one label for each of the {z.shape[-2]} rows is needed."
            )
    dtype = z.dtype
    with _without_gradient(z):
        # A p-value must not depend on the precision of the training loop that asks for it.
        z, s = z.double(), s.double()
        draws = as_draws(random_state, like=z)
        request = Request(method, n_permutations, draws, alpha, clusters)
        # With ``given`` a default bandwidth is found later, within groups or of residuals.
        if given is None or kernel_z is not None:
            kernel_z = resolve_kernel(kernel_z, z, name="kernel_z")
        if given is None or kernel_s is not None or categorical:
            kernel_s = resolve_kernel(kernel_s, s, name="kernel_s", categorical=categorical)
        z, factor_z = in_own_units(from_the_mean(z, kernel_z), kernel_z)
        s, factor_s = in_own_units(from_the_mean(s, kernel_s), kernel_s)
        n, batch = z.shape[-2], common_batch(z, s, kernel_z, kernel_s)
        stacked = (
            is_torch(given)
            and batch
            and given.shape[: len(batch)] == batch
            and given.ndim > len(batch)
        )
        shared = None if given is None or stacked else read_given(given, n)
        found = []
        for i, sample in elements(z, s, kernel_z, kernel_s, batch):
            own = read_given(given[i], n) if is_torch(given) and stacked else shared
            found.append(_one(*sample, own, request))
        every = xp.stack(found, -1).reshape(4, *batch) if found else z.new_empty(4, *batch)
        units = (factor_z * factor_s).expand(batch)
        every[0] *= units
        if method != "aggregated":  # whose statistic is standardized
            every[1:3] *= units
    value, statistic, threshold = every[:3].to(dtype).unbind()
    return IndependenceTest(value, statistic, threshold, every[3], method, alpha)


def _without_gradient(z: Tensor) -> Any:
    """Return the context in which nothing is recorded for a gradient."""
    if not is_torch(z):
        return nullcontext()
    import torch

    return torch.no_grad()


def _one(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    given: Given | None,
    request: Request,
) -> Tensor:
    """Return the test of one sample ``(n, d)`` and ``(n, p)``; without ``given`` all rows are one group."""
    n = len(z)
    if given is not None and not given.discrete:
        if request.clusters is not None:
            raise ValueError(
                "clusters needs a discrete given: exchange is possible between rows of equal given only."
            )
        return residual_test(z, s, given, kernel_z, kernel_s, request)
    groups = [xp.arange(n, like=z)] if given is None else given.groups(like=z)
    fitted = request.method in ("gamma", "spectral")
    strata = [] if fitted and given is None else group_strata(groups, n, request.clusters, like=z)
    z, kernel_z = within_kernel(kernel_z, z, groups)
    s, kernel_s = within_kernel(kernel_s, s, groups)
    sample = z, s, kernel_z, kernel_s, groups
    if fitted:
        statistic, *rest = fitted_groups(*sample, method=request.method, alpha=request.alpha)
        return decide(statistic / n, statistic, *rest)
    return permutation_test(*sample, strata, request)
