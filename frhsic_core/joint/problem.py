"""What an engine of HSIC is asked: two samples with kernels, row weights and a form, checked once.

:func:`read_problem` reads what a user passes, and :class:`Problem` holds it. The engines
(``joint.engines``) take a problem and check nothing again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic_core._arrays import ArrayLike, as_pair, read_mixed, row_weights
from frhsic_core.backend import gradient_wanted, is_tensor, xp
from frhsic_core.joint.contraction import inverse_root, smallest_own
from frhsic_core.kernels import (
    Kernel,
    bandwidths_of,
    from_the_mean,
    needs_torch,
    resolve_kernel,
    with_bandwidths,
    without_units,
)

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Problem:
    """HSIC of two samples, or of each element of a batch of them.

    Attributes
    ----------
    z, s : Tensor
        ``(..., n, d)`` and ``(..., n, p)``, of one dtype and on one device.
    kernel_z, kernel_s : Kernel
        Their kernels.
    weights : Tensor, optional
        ``(..., n)``: probabilities of the rows, or a mask of zeros and ones for the unbiased form.
    estimator : {"biased", "unbiased"}
        The estimator of HSIC.
    normalized : bool
        Divide by the root of the statistics of each sample with itself.
    """

    z: Tensor
    s: Tensor
    kernel_z: Any
    kernel_s: Any
    weights: Tensor | None = None
    estimator: str = "biased"
    normalized: bool = False

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.z.shape[-2]

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """The batch shape of samples, bandwidths and weights together."""
        return common_batch(self.z, self.s, self.kernel_z, self.kernel_s, self.weights)

    @cached_property
    def is_learned(self) -> bool:
        """Whether a kernel has a parameter that needs a gradient."""
        return _is_learned(self.kernel_z, self.z) or _is_learned(self.kernel_s, self.s)

    @property
    def needs_gradient(self) -> bool:
        """Whether a gradient in a sample is asked for."""
        return gradient_wanted(self.z, self.s)

    def elements(self) -> Iterator[Problem]:
        """Yield the problem of each batch element: one pair of samples."""
        weights = None
        if self.weights is not None:
            weights = self.weights.expand(*self.batch, self.rows)
        samples = elements(self.z, self.s, self.kernel_z, self.kernel_s, self.batch)
        for i, (z, s, kernel_z, kernel_s) in samples:
            own = None if weights is None else weights[i]
            yield Problem(z, s, kernel_z, kernel_s, own, self.estimator, self.normalized)

    def z_with_itself(self) -> Problem:
        """Return the problem in which Z takes the place of S."""
        return replace(self, s=self.z, kernel_s=self.kernel_z)

    def s_with_itself(self) -> Problem:
        """Return the problem in which S takes the place of Z."""
        return replace(self, z=self.s, kernel_z=self.kernel_s)

    def in_float64(self) -> Problem:
        """Return the same problem in double precision."""
        return replace(self, z=self.z.double(), s=self.s.double())


def read_problem(
    z: ArrayLike,
    s: ArrayLike,
    *,
    kernel_z: Kernel | str | None,
    kernel_s: Kernel | str | None,
    estimator: str,
    normalized: bool,
    mask: ArrayLike | None,
    sample_weight: ArrayLike | None,
    check_finite: bool,
) -> Problem:
    """Read what a user passes; parameters as in :func:`frhsic_core.hsic`."""
    s, categorical = read_mixed(s)
    least = 4 if estimator == "unbiased" else 1
    torch = needs_torch(kernel_z) or needs_torch(kernel_s)
    z, s = as_pair(z, s, check_finite=check_finite, min_rows=least, torch=torch)
    kernel_z = resolve_kernel(kernel_z, z, name="kernel_z")
    kernel_s = resolve_kernel(kernel_s, s, name="kernel_s", categorical=categorical)
    weights = row_weights(z, mask, sample_weight)
    if estimator == "unbiased" and weights is not None:
        if sample_weight is not None:
            raise ValueError(
                "sample_weight needs estimator='biased': the unbiased form exists for masks only."
            )
        weights = _kept_rows(weights, z)
    z = from_the_mean(z, kernel_z)
    s = from_the_mean(s, kernel_s)
    if normalized:
        # A ratio has no units; those of a kernel without a bandwidth would leave the range.
        z = without_units(z, kernel_z)
        s = without_units(s, kernel_s)
    return Problem(z, s, kernel_z, kernel_s, weights, estimator, normalized)


def _kept_rows(weights: Tensor, like: Tensor) -> Tensor:
    """Return one for each row that a mask keeps, which must be four, and zero for the others."""
    kept = (weights > 0).to(like)
    fewest = int(kept.sum(-1).min())
    if fewest < 4:
        raise ValueError(f"mask keeps {fewest} rows: the unbiased estimator needs at least 4.")
    return kept


# Batches ------------------------------------------------------------------------------------------


def common_batch(
    z: Tensor,
    s: Tensor,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    weights: Tensor | None = None,
) -> tuple[int, ...]:
    """Return the batch shape of all of these together; ``None`` is a kernel that is found later."""
    shapes = [_batch_of_gram(kernel_z, z), _batch_of_gram(kernel_s, s)]
    if weights is not None:
        shapes.append(weights.shape[:-1])
    return np.broadcast_shapes(*shapes)


def _batch_of_gram(kernel: Kernel | None, x: Tensor) -> tuple[int, ...]:
    """Return the batch shape of the Gram matrix of a sample."""
    if kernel is None:
        return x.shape[:-2]
    known = bandwidths_of(kernel)
    if known is None:
        return _some_entry(kernel, x).shape
    shapes = [bandwidth.shape for bandwidth in known]
    return np.broadcast_shapes(x.shape[:-2], *shapes)


def _is_learned(kernel: Kernel, x: Tensor) -> bool:
    """Return whether a kernel has a parameter that needs a gradient."""
    known = bandwidths_of(kernel)
    if known is None:
        return _some_entry(kernel, x).requires_grad
    return gradient_wanted(*known)


def _some_entry(kernel: Kernel, x: Tensor) -> Tensor:
    """Return an entry of the Gram matrix ``(...)``, for its shape and its graph.

    Two rows enter, since a network in a kernel may standardize.
    """
    return kernel(x.detach()[..., :2, :])[..., 0, 0]


def elements(
    z: Tensor, s: Tensor, kernel_z: Any, kernel_s: Any, batch: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[Tensor, Tensor, Any, Any]]]:
    """Yield the index of each batch element, and its samples and kernels."""
    if not batch:
        yield (), (z, s, kernel_z, kernel_s)
        return
    z = z.expand(*batch, *z.shape[-2:])
    s = s.expand(*batch, *s.shape[-2:])
    for i in itertools.product(*map(range, batch)):
        yield i, (z[i], s[i], _own_kernel(kernel_z, batch, i), _own_kernel(kernel_s, batch, i))


def _own_kernel(kernel: Any, batch: tuple[int, ...], i: tuple[int, ...]) -> Any:
    """Return the kernel of one batch element."""

    def own(bandwidth: float | Tensor) -> float | Tensor:
        if is_tensor(bandwidth) and bandwidth.ndim:
            return bandwidth.expand(*batch)[i]
        return bandwidth

    return with_bandwidths(kernel, own)


def over_pairs(problem: Problem, of_pair: Callable[[Problem], Tensor | None]) -> Tensor | None:
    """Return the statistic of each batch element, ``(...)``; ``None`` if one of them is.

    ``of_pair`` takes the problem of one pair of samples and returns ``None`` if it does not serve.
    The normalized form divides by the root of the statistics of each sample with itself, in three
    times the time.
    """
    smallest = smallest_own(problem.z, rows=1)
    found = []
    for pair in problem.elements():
        value = of_pair(pair)
        if value is None:
            return None
        if problem.normalized:
            own_z = of_pair(pair.z_with_itself())
            if own_z is None:
                return None
            own_s = of_pair(pair.s_with_itself())
            if own_s is None:
                return None
            value = value * inverse_root(own_z, own_s, smallest)
        found.append(value)
    if not found:
        return problem.z.new_zeros(problem.batch)
    return xp.stack(found).reshape(problem.batch).to(problem.z.dtype)
