"""Which kernel is meant: the default, and one kernel for each attribute."""

from __future__ import annotations

from torch import Tensor

from frhsic_core.kernels import Gaussian, Kernel, Product, median_bandwidth

__all__ = ["product_kernel", "resolve_kernel"]


def resolve_kernel(kernel: Kernel | None, x: Tensor, *, check_finite: bool = True) -> Kernel:
    """Return ``kernel``, or a Gaussian at the median bandwidth of ``x`` (per batch element, detached) for ``None``.

    Examples
    --------
    >>> import torch
    >>> resolve_kernel(None, torch.tensor([[0.0], [1.0], [3.0]])).bandwidth.item()
    2.0
    """
    if kernel is None:
        return Gaussian(median_bandwidth(x, check_finite=check_finite))
    if not callable(kernel):
        raise TypeError(f"kernel is {kernel!r}: pass a kernel object such as Gaussian(1.0), or None for the default.")
    return kernel


def product_kernel(s: Tensor, *, check_finite: bool = True) -> Product:
    """Product of Gaussians over the columns of ``s``, each at its own median bandwidth.

    The paper's kernel for several attributes (its appendix on multiple sensitive attributes): a product of
    characteristic kernels is characteristic on the product space, so the joint dependence on all attributes is seen.
    """
    return Product(
        [Gaussian(median_bandwidth(s[..., a : a + 1], check_finite=check_finite)) for a in range(s.shape[-1])]
    )
