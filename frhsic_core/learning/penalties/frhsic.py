"""FRHSIC: the joint route as a penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from frhsic_core.choices import one_of
from frhsic_core.joint.contraction import (
    Frame,
    GradientTerm,
    centered_for,
    centered_gaussian,
    contraction_weights,
    correlation,
    gaussian_rows,
    gram_term,
    inner_product,
    own_product,
    smallest_own,
)
from frhsic_core.joint.fused_batch import can_fuse_batch, fused_batch_term, fused_output_term
from frhsic_core.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Product, median_bandwidth
from frhsic_core.learning.bandwidth import BandwidthPolicy
from frhsic_core.learning.data import Batch
from frhsic_core.learning.penalties.base import KernelPenalty, Setup, counted, weighted_mean

FORMS = ("biased", "unbiased", "normalized")
PLACES = ("representation", "output", "both")
ATTRIBUTES = ("joint", "product", "sum")
REFERENCES = ("product", "uniform")
KERNELS: dict[str, Callable[[Tensor], Kernel]] = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "imq": InverseMultiquadric,
}


def _attribute_bandwidth(s: Tensor, rule: str | float) -> Tensor:
    """Return σ_S of ``(..., n, p)`` as ``(...)``: a number, the median over the training rows, or the reference's."""
    if isinstance(rule, str):
        if rule == "median":
            return median_bandwidth(s, max_points=2000)
        if rule == "first_1000":
            return median_bandwidth(s[..., :1000, :]) + 1e-5
        raise ValueError(f"bandwidth_s is {rule!r}: choose 'median', 'first_1000' or a positive number.")
    if not rule > 0:
        raise ValueError(f"bandwidth_s is {rule}: it must be positive.")
    return s.new_full(s.shape[:-2], float(rule))


class FRHSIC(KernelPenalty):
    r"""HSIC between Z and S on the mini-batch, the paper's ``eq:frhsic_objective``, and its variants.

    .. math:: \mathrm{HSIC}(Z,S) = \sum_{ij} k(z_i,z_j)\,A_{ij},\qquad A = \text{centered } L \text{ over } m^2 .

    O(m²d) time and O(m²) memory for a batch of m rows; the gradient is written out.

    With the same settings this is :class:`frhsic_core.HSICLoss`, value and gradient, so λ means the same in both: a
    loss ``task + lam * FRHSIC`` here is ``task + HSICLoss(lam)`` there. Only the defaults differ. ``HSICLoss`` is the
    paper's biased form on Z as it is, with both bandwidths from each batch. ``FRHSIC`` is the normalized form on
    whitened Z, with σ_S from the training data. The biased form is smaller by √(HSIC(Z,Z)·HSIC(S,S)), and the same
    effect needs a λ that is larger by the inverse, about 10 to 60 for a normal Z of 1 to 50 dimensions.
    ``FRHSIC(estimator="biased", scale=None, bandwidth=EveryBatch(max_points=None))`` is ``HSICLoss`` with σ_S fixed.

    Parameters
    ----------
    estimator : {"normalized", "biased", "unbiased"}
        The paper uses ``"biased"``. Its floor of order 1/m shrinks when Z collapses, so a large λ rewards collapse.
        ``"unbiased"`` has no floor. ``"normalized"`` (default) is a correlation, which neither rescaling nor shrinking
        Z lowers.
    on : {"representation", "output", "both"}
        Penalize Z; or the head's output with a linear kernel, the fixed-head form (Theorem 4.3); or their sum.
    kernel : {"gaussian", "laplacian", "imq"} or callable
        Kernel on Z; a callable takes σ_Z ``(models,)`` and returns a kernel.
    kernel_s : {"gaussian", "laplacian", "imq"}
        Kernel on S.
    bandwidth : BandwidthPolicy, str or float
        Policy for σ_Z; by default a moving average of the batches' medians.
    bandwidth_s : float, "median" or "first_1000"
        σ_S, fixed: a number, the median over (2,000 evenly spaced) training rows, or that of the first 1,000 rows plus
        1e-5 as in the released code.
    attributes : {"joint", "product", "sum"}
        For several attributes: one Gaussian on the vector, a product of Gaussians, or a sum of criteria.
    scale : {"whiten", "standardize", None, "minmax"}
        Scaling of Z in the batch. The default, whitening with a moving average, was chosen on ten splits of Adult at
        λ = 500. With standardized Z the median distance often left [1/3, 3] bandwidths, or Z collapsed. With the
        unbiased form a probe could still predict S. Whitened Z with the bandwidth of every single batch collapsed. The
        default did none of these (see the chapter on the bandwidth trap). It needs batches of several times as many
        rows as Z has columns, and a Z with no more dimensions than X can fill; otherwise the remaining directions,
        which are scaled up, keep the attribute.
    reference : {"product", "uniform"}
        Compare with P_Z ⊗ P_S, or, by weighting rows with the inverse density of S, with P_Z ⊗ Unif(S): rare values of
        S then count as much as common ones (the paper's minority-protection remark).
    condition, minimum_rows
        Equal opportunity; see ``Penalty``.
    """

    key = "frhsic"
    sigma_s: Tensor
    attribute_rows: Tensor
    density_weight: Tensor

    def __init__(
        self,
        *,
        estimator: str = "normalized",
        on: str = "representation",
        kernel: str | Callable[[Tensor], Kernel] = "gaussian",
        kernel_s: str = "gaussian",
        bandwidth: BandwidthPolicy | str | float = "moving_average",
        bandwidth_s: str | float = "median",
        attributes: str = "joint",
        scale: str | None = "whiten",
        reference: str = "product",
        condition: str | None = None,
        minimum_rows: int = 4,
    ) -> None:
        super().__init__(bandwidth=bandwidth, scale=scale, condition=condition, minimum_rows=minimum_rows)
        for name, value, allowed in (
            ("estimator", estimator, FORMS),
            ("on", on, PLACES),
            ("attributes", attributes, ATTRIBUTES),
            ("reference", reference, REFERENCES),
            ("kernel_s", kernel_s, tuple(KERNELS)),
        ):
            one_of(name, value, allowed)
        if isinstance(kernel, str) and kernel not in KERNELS:
            raise ValueError(f"kernel is {kernel!r}: choose one of {', '.join(map(repr, KERNELS))} or a callable.")
        if estimator == "unbiased" and reference == "uniform":
            raise ValueError(
                "reference='uniform' weights the rows, and estimator='unbiased' has no weights: use 'biased' or "
                "'normalized'."
            )
        self.estimator = estimator
        self.on = on
        self.kernel = kernel
        self.kernel_s = kernel_s
        self.bandwidth_s = bandwidth_s
        self.attributes = attributes
        self.reference = reference

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        s = setup.s
        if self.estimator == "unbiased" and self.weighted:
            raise ValueError("estimator='unbiased' has no form with sample weights: use 'biased' or 'normalized'.")
        columns = [s] if self.attributes == "joint" else list(s.split(1, dim=-1))
        sigma = torch.stack([_attribute_bandwidth(column, self.bandwidth_s) for column in columns], dim=-1)
        self.register_buffer("sigma_s", sigma.to(setup.data.x.dtype)[setup.dataset])
        if self.attributes != "product":
            rows = [gaussian_rows(column, sigma[:, a].to(column)) for a, column in enumerate(columns)]
            self.register_buffer("attribute_rows", torch.stack(rows).flatten(1, 2), persistent=False)
        if self.reference == "uniform":
            self.register_buffer("density_weight", uniform_weights(s).flatten(0, 1), persistent=False)

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[GradientTerm | Tensor]:
        weights, enough = self.row_weights(batch)
        terms: list[GradientTerm | Tensor] = []
        z = batch.z
        rows = z.shape[-2]
        if self.estimator == "unbiased" and rows < 4:
            return [0.0 * batch.output.sum(-1)]  # fewer than four rows define no unbiased estimate
        fused = self._fuses(z, weights)
        if self.on != "output" or refresh:
            # A frame's way back is that of a function of distances, which these two kernels are.
            frame = self.frame(z, weights) if self.kernel in ("gaussian", "imq") else None
            z = self.scaled(z, weights) if frame is None else frame.u
            known = None
            if frame is not None and frame.back is not None and not fused and self.on != "output":
                known = frame.exponents
            kernel_z = self._kernel_z(self.renew(z, refresh=refresh, enough=enough, exponents=known))
        factor = 1.0 / (rows * rows) if self.estimator == "biased" and weights is None else 1.0
        if fused and self.on != "output":
            assert frame is not None
            return self._fused_terms(batch, frame, factor)
        for centered, own in self._attributes(batch, weights):
            if self.on != "output":
                function = inner_product(centered) if own is None else correlation(centered, own, row_weights=weights)
                terms.append(gram_term(frame or z, kernel_z, function, factor=factor))
            if self.on != "representation":
                terms.append(factor * self._on_output(batch.output, centered, own, weights))
        return counted(terms, enough)

    def row_weights(self, batch: Batch) -> tuple[Tensor | None, Tensor | None]:
        weights, enough = super().row_weights(batch)
        if self.reference == "uniform":
            rare = self.density_weight[batch.rows]
            weights = rare if weights is None else rare * weights
            weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-30)
        return weights, enough

    def _fuses(self, z: Tensor, weights: Tensor | None) -> bool:
        """Return whether the fused kernels compute this penalty: equal weights, and Gaussian kernels on both sides."""
        gaussian = self.kernel == self.kernel_s == "gaussian" and self.attributes != "product"
        return weights is None and gaussian and self.estimator != "unbiased" and can_fuse_batch(z)

    def _fused_terms(self, batch: Batch, frame: Frame, factor: float) -> list[GradientTerm | Tensor]:
        terms: list[GradientTerm | Tensor] = []
        options: dict[str, Any] = {"normalized": self.estimator == "normalized", "factor": factor}
        for a in range(len(self.attribute_rows)):
            rows = self._rows_of_attribute(a, batch.rows)
            rows = rows[..., : rows.shape[-1] // 2 - 2]  # the first of the two halves, without what was added to it
            term, own = fused_batch_term(frame, rows, self.sigma_z, **options)
            terms.append(term)
            if self.on == "both":
                terms.append(fused_output_term(batch.output, rows, own, **options))
        return terms

    def _rows_of_attribute(self, a: int, rows: Tensor) -> Tensor:
        return self.attribute_rows[a].index_select(0, rows.reshape(-1)).view(*rows.shape, -1)

    def _attributes(self, batch: Batch, weights: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield, for each criterion, A with HSIC ∝ ⟨K, A⟩, and ⟨L, A⟩ where the normalized form needs it."""
        s = batch.s
        rows = batch.rows
        columns = s.split(1, dim=-1) if self.attributes == "sum" else [s]
        for a, column in enumerate(columns):
            plain = weights is None and self.kernel_s == "gaussian"
            if plain and self.estimator != "unbiased" and self.attributes != "product":
                centered = centered_gaussian(self._rows_of_attribute(a, rows))
                gram = centered  # with equal weights, only the centered matrix enters the normalized form
            else:
                kernels = [KERNELS[self.kernel_s](self.sigma_s[:, b]) for b in range(self.sigma_s.shape[1])]
                gram = Product(kernels)(s) if self.attributes == "product" else kernels[a](column)
                centered = self._centered(gram, weights)
            if self.estimator != "normalized":
                yield centered, None
            else:
                yield centered, own_product(gram, centered, row_weights=weights)

    def _centered(self, gram: Tensor, weights: Tensor | None) -> Tensor:
        if self.estimator != "unbiased":
            return centered_for(gram, row_weights=weights)
        mask = None if weights is None else (weights > 0).to(gram.dtype)
        return contraction_weights(gram, estimator="unbiased", weights=mask)

    def _kernel_z(self, sigma: Tensor) -> Kernel:
        return KERNELS[self.kernel](sigma) if isinstance(self.kernel, str) else self.kernel(sigma)

    def _on_output(self, output: Tensor, centered: Tensor, own: Tensor | None, weights: Tensor | None) -> Tensor:
        """Return HSIC of the output with a linear kernel, f'Af; the normalized form divides by Var(f)·√HSIC(S, S)."""
        f = output - weighted_mean(output, weights).unsqueeze(-1)
        cross = (f * (centered @ f.unsqueeze(-1)).squeeze(-1)).sum(-1)
        if own is None:
            return cross
        # In the units of `own`: a sum where all rows count the same, else a weighted mean.
        variance = (f * f).sum(-1) if weights is None else weighted_mean(f * f, weights)
        smallest = smallest_own(f, rows=f.shape[-1], row_weights=weights)
        varies = ((variance > smallest**0.5) & (own > smallest)).to(f.dtype)
        return varies * cross / (variance.clamp_min(smallest**0.5) * own.clamp_min(smallest).sqrt())


def uniform_weights(s: Tensor, *, bins: int = 20, largest: float = 20.0) -> Tensor:
    """Return weights ``(..., n)`` with mean one, inverse to a histogram density of S ``(..., n, p)``.

    Under them the marginal of S is uniform over its occupied cells, so that HSIC compares with P_Z ⊗ Unif(S). Each
    attribute is cut into ``bins`` equal-width cells (p > 1: their product). Weights are at most ``largest`` times the
    mean, because a handful of rows would otherwise make up the whole penalty. O(np).

    Examples
    --------
    >>> uniform_weights(torch.tensor([[0.0], [0.0], [0.0], [1.0]]), bins=2)
    tensor([0.6667, 0.6667, 0.6667, 2.0000])
    """
    low = s.amin(-2, keepdim=True)
    high = s.amax(-2, keepdim=True)
    cell = ((s - low) / (high - low).clamp_min(torch.finfo(s.dtype).tiny) * bins).long().clamp_(0, bins - 1)
    place = torch.zeros_like(cell[..., 0])
    for a in range(s.shape[-1]):
        place = place * bins + cell[..., a]
    flat = place.reshape(-1, place.shape[-1])
    weights = torch.empty(flat.shape, dtype=s.dtype, device=s.device)
    for i, row in enumerate(flat):
        _, inverse, counts = row.unique(return_inverse=True, return_counts=True)
        weights[i] = (1.0 / counts.to(s.dtype))[inverse]
    weights = weights.reshape(place.shape)
    weights = weights / weights.mean(-1, keepdim=True)
    weights = weights.clamp_max(largest)
    return weights / weights.mean(-1, keepdim=True)
