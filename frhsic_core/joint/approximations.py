"""Approximate HSIC for large n: random Fourier features and Nyström landmarks.

Both replace each Gram matrix by one of low rank, K ≈ ΦΦᵀ, and HSIC by ‖Φ̃ᵀΨ̃‖²_F/n², the squared Frobenius norm of the
cross-covariance of the features. Both are linear in n and differentiable. (Exact HSIC in O(n) memory but O(n²) time is
:mod:`frhsic_core.joint.streaming`.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, RandomState, as_generator, as_pair
from frhsic_core.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Product, resolve_kernel


def random_feature_hsic(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    features: int = 256,
    random_state: RandomState = None,
) -> Tensor:
    """Return the biased HSIC with both kernels replaced by random Fourier features (Rahimi and Recht, 2007).

    A shift-invariant kernel is k(x − y) = E cos(ω·(x − y)) over its spectral law; D frequencies give the 2D columns
    cos(ω·x)/√D, sin(ω·x)/√D. The mean over the frequencies is exactly the biased HSIC; the relative standard deviation
    falls as 1/√D (at D = 256, for standard normal pairs with ρ = .5, n = 500, σ = 1: 6 % for Gaussian, 8 % for
    Laplacian, 10 % for inverse multiquadric kernels). O(nD²) time, O(nD) memory.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    kernel_z, kernel_s : Gaussian, Laplacian, InverseMultiquadric or Product of them, optional
        Default: Gaussian at the median bandwidth of each batch element.
    features : int
        D, the number of frequencies for each side; all batch elements share them.
    random_state : int, numpy.random.Generator or torch.Generator, optional
        Source of the frequencies; without one, a fixed seed, so that the answer is repeatable.

    Returns
    -------
    Tensor
        Batch shape, never negative.

    Examples
    --------
    >>> from frhsic_core.joint.hsic import hsic
    >>> z = torch.linspace(-1, 1, 50, dtype=torch.float64)
    >>> approximate, exact = random_feature_hsic(z, z**2, features=2000), hsic(z, z**2)
    >>> bool((approximate / exact - 1).abs() < 0.15)
    True
    """
    if features < 1:
        raise ValueError(f"features is {features}: at least 1 frequency is needed.")
    z, s = as_pair(z, s)
    generator = as_generator(random_state)
    if generator is None:
        generator = torch.Generator().manual_seed(0)
    phi = _fourier(z, _frequencies(resolve_kernel(kernel_z, z), z, features, generator))
    psi = _fourier(s, _frequencies(resolve_kernel(kernel_s, s), s, features, generator))
    return _cross_covariance_norm(phi, psi)


def nystrom_hsic(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    landmarks: int = 100,
    random_state: RandomState = None,
) -> Tensor:
    """Return the biased HSIC with both Gram matrices replaced by Nyström approximations from m landmark rows.

    K ≈ K_nm (K_mm + εI)⁻¹ K_mn, for every positive semi-definite kernel. It never exceeds K in the positive
    semi-definite order, so the result is at most the biased HSIC; with m = n it equals it up to ε, which is 1e-10
    (float64) or 1e-4 (float32) of the mean diagonal. Measured for standard normal pairs with ρ = .5, n = 500, σ = 1 and
    m = 50 random rows: relative error below 1e-3 for Gaussian kernels, 1e-2 for inverse multiquadric ones, 0.1 for
    Laplacian ones, whose eigenvalues fall slowly. O(nm²) time, O(nm) memory.

    Parameters
    ----------
    z, s : array_like
        ``(..., n, d)`` and ``(..., n, p)`` or ``(..., n)``.
    kernel_z, kernel_s : Kernel, optional
        Default: Gaussian at the median bandwidth of each batch element.
    landmarks : int
        m; n or more means all rows. Batch elements and both sides use the same row numbers.
    random_state : int, numpy.random.Generator or torch.Generator, optional
        Source of the landmark rows; without one, evenly spaced rows, which is a poor choice for sorted periodic data.

    Returns
    -------
    Tensor
        Batch shape, never negative.

    Examples
    --------
    >>> from frhsic_core.joint.hsic import hsic
    >>> z = torch.linspace(-1, 1, 200, dtype=torch.float64)
    >>> bool((nystrom_hsic(z, z**2, landmarks=20) / hsic(z, z**2) - 1).abs() < 1e-4)
    True
    """
    if landmarks < 1:
        raise ValueError(f"landmarks is {landmarks}: at least 1 row is needed.")
    z, s = as_pair(z, s)
    n = z.shape[-2]
    m = min(landmarks, n)
    generator = as_generator(random_state)
    if generator is None:
        index = torch.linspace(0, n - 1, m, dtype=torch.float64).round().long()
    else:
        index = torch.randperm(n, generator=generator, device=generator.device)[:m]
    index = index.to(z.device)
    return _cross_covariance_norm(
        _landmark_features(resolve_kernel(kernel_z, z), z, index),
        _landmark_features(resolve_kernel(kernel_s, s), s, index),
    )


def _cross_covariance_norm(phi: Tensor, psi: Tensor) -> Tensor:
    phi = phi - phi.mean(-2, keepdim=True)
    return (phi.mT @ psi / phi.shape[-2]).square().sum((-2, -1))


def _fourier(x: Tensor, frequencies: Tensor) -> Tensor:
    angles = x @ frequencies
    return torch.cat([angles.cos(), angles.sin()], -1) / frequencies.shape[-1] ** 0.5


def _frequencies(kernel: Kernel, x: Tensor, features: int, generator: torch.Generator) -> Tensor:
    """Draw frequencies from the kernel's spectral law, ``(..., d, features)``."""
    d = x.shape[-1]
    if isinstance(kernel, Product):
        if len(kernel.factors) != d:
            raise ValueError(
                f"x has {d} columns but Product has {len(kernel.factors)} factors: one kernel for each column."
            )
        # A product over columns has independent frequencies on them.
        parts = [
            _frequencies(factor, x[..., a : a + 1], features, generator) for a, factor in enumerate(kernel.factors)
        ]
        return torch.cat([part.expand(*x.shape[:-2], 1, features) for part in parts], -2)
    if not isinstance(kernel, Gaussian | Laplacian | InverseMultiquadric):
        raise TypeError(
            f"kernel is {kernel!r}: random Fourier features need a Gaussian, Laplacian or InverseMultiquadric kernel "
            "or a Product of them; nystrom_hsic takes any kernel."
        )
    draws = torch.randn(d, features, generator=generator, device=generator.device, dtype=torch.float64)
    if not isinstance(kernel, Gaussian):
        rows = d if isinstance(kernel, Laplacian) else 1
        other = torch.randn(rows, features, generator=generator, device=generator.device, dtype=torch.float64)
        # A ratio of normals is Cauchy, one for each coordinate of the ℓ₁ kernel. The inverse multiquadric is a mixture
        # of Gaussians whose squared inverse scale is χ²₁: one more normal factor for the whole vector.
        draws = draws / other if isinstance(kernel, Laplacian) else draws * other
    draws = draws.to(dtype=x.dtype, device=x.device)
    bandwidth = kernel.bandwidth
    if isinstance(bandwidth, Tensor):
        bandwidth = bandwidth.to(dtype=x.dtype, device=x.device)[..., None, None]
    return draws / bandwidth


def _landmark_features(kernel: Kernel, x: Tensor, index: Tensor) -> Tensor:
    """Return features Φ with ΦΦᵀ = K_nm (K_mm + εI)⁻¹ K_mn."""
    chosen = x.index_select(-2, index)
    core, cross = kernel(chosen), kernel(x, chosen)
    diagonal = core.detach().diagonal(dim1=-2, dim2=-1).mean(-1)
    # Repeated rows make K_mm singular; ε keeps the factorisation, and its gradient, finite.
    share = 1e-10 if x.dtype == torch.float64 else 1e-4
    ridge = share * torch.where(diagonal > 0, diagonal, torch.ones_like(diagonal))
    eye = torch.eye(core.shape[-1], dtype=core.dtype, device=core.device)
    factor = torch.linalg.cholesky(core + ridge[..., None, None] * eye)
    return torch.linalg.solve_triangular(factor, cross.mT, upper=False).mT
