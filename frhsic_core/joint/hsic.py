"""The Hilbert–Schmidt independence criterion: biased, unbiased, normalized, and with distances.

HSIC(Z, S) = ‖μ_ZS − μ_Z ⊗ μ_S‖² (Definition 2.1, ``def:hsic``). What a user passes becomes a problem
(``joint.problem``), and the first engine that serves computes it (``joint.engines``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frhsic_core._arrays import ArrayLike, as_pair, require_value, same_kind
from frhsic_core._choices import one_of
from frhsic_core.backend import xp
from frhsic_core.joint.contraction import ESTIMATORS
from frhsic_core.joint.engines import solve
from frhsic_core.joint.problem import read_problem
from frhsic_core.kernels import Distance, Kernel

if TYPE_CHECKING:
    from torch import Tensor

FORMS = ("biased", "unbiased", "normalized")


@same_kind
def hsic(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | str | None = None,
    kernel_s: Kernel | str | None = None,
    estimator: str = "biased",
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Tensor:
    r"""Return the Hilbert–Schmidt independence criterion of a representation and a sensitive attribute.

    Biased (a V-statistic, the paper's penalty, its equation ``eq:hsic_empirical``):

    .. math:: \widehat{\mathrm{HSIC}}_b = n^{-2}\,\mathrm{tr}(KHLH) \ge 0 .

    Unbiased (a U-statistic; Song et al., 2012), which may be negative and has mean zero under independence:

    .. math:: \widehat{\mathrm{HSIC}}_u = \frac{1}{n(n-3)}\Big[\mathrm{tr}(\tilde K\tilde L)
        + \frac{\mathbf 1^\top\tilde K\mathbf 1\,\mathbf 1^\top\tilde L\mathbf 1}{(n-1)(n-2)}
        - \frac{2}{n-2}\mathbf 1^\top\tilde K\tilde L\mathbf 1\Big],\quad \tilde K = K - \mathrm{diag}(K).

    Two columns of numbers, such as a score and an age, take O(n r²) time and O(n) memory, where r is the numerical rank
    of the Gram matrices, a few tens at bandwidths near the median; so do categories and a few columns. Laplacian
    kernels and distances of one column take O(n log² n). The relative error is below 1e-10 (see
    ``joint.engines``, which lists all ways and when they serve).

    Otherwise O(n²(d + p)) time, with O(n²) memory up to 4,096 rows. Above that, or where whole matrices do not fit into
    memory, the sum over all pairs goes block by block in O(n) memory; on a GPU with Triton fused kernels do it. Kernels
    whose bandwidth is a tensor that requires a gradient need whole matrices, O(n²) memory, for every n.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``. A table ``s`` may have columns of text or categories beside
        numeric ones, such as sex and age.
    kernel_z, kernel_s : Kernel or str, optional
        A kernel, or its name: ``"gaussian"``, ``"laplacian"``, ``"imq"``, ``"multi_scale"``, ``"linear"``,
        ``"distance"`` or ``"categorical"``, at the median bandwidth of each batch element, detached; or ``"product"``,
        the product over the columns of Gaussians at their own median bandwidths. ``None`` is Gaussian; for a table with
        categories it is the product over its columns of Gaussians and of :class:`~frhsic_core.kernels.Categorical`.
    estimator : {"biased", "unbiased"}
        See above; the unbiased form needs four rows.
    mask : array_like of bool, optional
        ``(..., n)``: use these rows only (``y == 1`` gives the equal-opportunity form). Default bandwidths are still
        those of all rows.
    sample_weight : array_like, optional
        ``(..., n)``, non-negative: HSIC of the weighted empirical distribution (biased form only).
    check_finite : bool
        Look for NaN, infinities and numbers beyond the range of the dtype, before and after.

    Returns
    -------
    Tensor, array or float
        Shape ``(...)``. With kernels that have a bandwidth the result does not depend on the units of ``z`` and ``s``.

    Notes
    -----
    Implements Definition 2.1 and the statistic of Theorem 4.7 (``thm:hsic_gdp``). Introduced in the chapter "Kernels
    and HSIC".

    Examples
    --------
    >>> round(hsic([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]), 4)
    0.1186
    >>> hsic([0.0, 1.0, 2.0, 3.0], [5.0, 5.0, 5.0, 5.0])
    0.0
    """
    one_of("estimator", estimator, ESTIMATORS)
    options: dict[str, Any] = {
        "kernel_z": kernel_z,
        "kernel_s": kernel_s,
        "mask": mask,
        "sample_weight": sample_weight,
    }
    return criterion(z, s, estimator=estimator, check_finite=check_finite, **options)


def criterion(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | str | None,
    kernel_s: Kernel | str | None,
    estimator: str = "biased",
    normalized: bool = False,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    check_finite: bool = True,
) -> Tensor:
    """Return HSIC or its normalized form by the first engine that serves; parameters as in :func:`hsic`."""
    problem = read_problem(
        z,
        s,
        kernel_z=kernel_z,
        kernel_s=kernel_s,
        estimator=estimator,
        normalized=normalized,
        mask=mask,
        sample_weight=sample_weight,
        check_finite=check_finite,
    )
    value = solve(problem)
    assert value is not None  # the last engine serves every problem
    value = _in_range(value.to(problem.z.dtype), estimator, normalized)
    if not check_finite:
        return value
    return require_value(value, "normalized_hsic" if normalized else "hsic")


def _in_range(value: Tensor, estimator: str, normalized: bool) -> Tensor:
    """Return the value, without what rounding has put beyond the range of its form."""
    if normalized:
        return value.clamp(-1.0 if estimator == "unbiased" else 0.0, 1.0)
    if estimator == "unbiased":
        return value
    return value.clamp_min(0.0)


@same_kind
def normalized_hsic(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | str | None = None,
    kernel_s: Kernel | str | None = None,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Tensor:
    r"""Return the normalized HSIC in [0, 1], a correlation of the two centered Gram matrices (also called CKA).

    .. math:: \frac{\mathrm{HSIC}_b(Z,S)}{\sqrt{\mathrm{HSIC}_b(Z,Z)\,\mathrm{HSIC}_b(S,S)}},\qquad
        0 \text{ if either is constant.}

    Three times the cost of :func:`hsic`, and without the fused kernels of a GPU. Parameters as there; always the biased
    form.

    Examples
    --------
    >>> round(normalized_hsic([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0]), 6)
    1.0
    """
    options: dict[str, Any] = {
        "kernel_z": kernel_z,
        "kernel_s": kernel_s,
        "mask": mask,
        "sample_weight": sample_weight,
    }
    return criterion(z, s, normalized=True, **options)


@same_kind
def distance_correlation(
    z: ArrayLike,
    s: ArrayLike,
    *,
    squared: bool = False,
    estimator: str = "biased",
) -> Tensor:
    """Return the distance correlation, dCor² = dCov²(z, s) / √(dCov²(z, z)·dCov²(s, s)), in [0, 1].

    The distance covariance of Székely, Rizzo and Bakirov (2007) is dCov² = 4·HSIC for the kernel
    (‖x‖ + ‖y‖ − ‖x − y‖)/2 (Sejdinovic et al., 2013): ``4 * hsic(z, s, kernel_z="distance", kernel_s="distance")``. So
    this is normalized HSIC without a bandwidth to choose. Rescaling the representation does not change it.

    With a_ij = ‖z_i − z_j‖, b_ij = ‖s_i − s_j‖ and A, B their centred forms, dCov² is n⁻² Σ_ij A_ij B_ij (biased), or
    Σ_{i≠j} A_ij B_ij / (n(n − 3)) with U-centred A and B (unbiased; Székely and Rizzo, 2014).

    ``squared=False`` is the usual, rooted correlation; several libraries call the square by the same name.
    ``squared=True, estimator="unbiased"`` is the bias-corrected form: about zero under independence for any dimension,
    where the biased one tends to one as d grows with n fixed.

    Two samples of one column take O(n log n) time and O(n) memory, exactly (Huo and Székely, 2016). Others, and samples
    that need a gradient, take O(n²(d + p)) time, with O(n²) memory up to 4,096 rows and O(n) above. Differentiable; the
    root has gradient zero where its value is zero.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    squared : bool
        Return dCor². The unbiased form exists squared only.
    estimator : {"biased", "unbiased"}
        The unbiased form needs at least four rows and lies in [−1, 1].

    Returns
    -------
    Tensor, array or float
        Batch shape; zero when either argument is constant.

    Examples
    --------
    >>> round(distance_correlation([0.0, 1.0, 2.0], [0.0, 1.0, 4.0]), 4)
    0.9657
    >>> round(distance_correlation([1, 2, 3, 4], [2, 4, 6, 8]), 4)
    1.0
    """
    one_of("estimator", estimator, ESTIMATORS)
    if estimator == "unbiased" and not squared:
        raise ValueError(
            "estimator='unbiased' with squared=False: the unbiased estimate may be negative and has no root; "
            "pass squared=True, or estimator='biased'."
        )
    z, s = as_pair(z, s)  # distances between categories have no meaning
    ratio = criterion(
        z, s, kernel_z=Distance(), kernel_s=Distance(), estimator=estimator, normalized=True
    )
    if squared:
        return ratio
    # A plain root has the gradient NaN at zero.
    positive = ratio > 0
    root = xp.where(positive, ratio, xp.ones_like(ratio)).sqrt()
    return xp.where(positive, root, xp.zeros_like(root))
