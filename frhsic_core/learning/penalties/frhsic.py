"""FRHSIC: the joint route as a penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from frhsic_core.joint.centring import contraction_weights
from frhsic_core.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Product, median_bandwidth
from frhsic_core.learning.bandwidth import BandwidthPolicy
from frhsic_core.learning.batches import Batch, TrainingData
from frhsic_core.learning.penalties.base import KernelPenalty, counted
from frhsic_core.learning.penalties.gram import (
    Pull,
    centred_for,
    centred_gaussian,
    correlation,
    gaussian_rows,
    gram_term,
    inner_product,
    vanishing,
)
from frhsic_core.learning.penalties.uniform import uniform_weights

__all__ = ["FRHSIC"]

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
    """σ_S of ``(..., n, p)`` as ``(...)``: a number, the median over the training rows, or the reference's."""
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
    r"""HSIC between Z and S on the mini-batch (the paper's ``eq:frhsic_objective``), in every form tried here.

    .. math:: \mathrm{HSIC}(Z,S) = \sum_{ij} k(z_i,z_j)\,A_{ij},\qquad A = \text{centred } L \text{ over } m^2 .

    O(m²d) time and O(m²) memory for a batch of m rows; the gradient is written out, not traced.

    Parameters
    ----------
    estimator : {"normalized", "biased", "unbiased"}
        The paper's is ``"biased"``: its floor of order 1/m shrinks when Z collapses, so a large λ rewards collapse.
        ``"unbiased"`` has no floor. ``"normalized"`` (default) is a correlation: neither rescaling nor shrinking Z
        lowers it.
    on : {"representation", "output", "both"}
        Z; or the head's output with a linear kernel on it, which is the fixed-head form (Theorem 4.3); or their sum.
    kernel : {"gaussian", "laplacian", "imq"} or callable
        Kernel on Z; a callable takes σ_Z ``(models,)`` and returns a kernel.
    kernel_s : {"gaussian", "laplacian", "imq"}
        Kernel on S.
    bandwidth : BandwidthPolicy, str or float
        Policy for σ_Z; by default a moving average of the batches' medians.
    bandwidth_s : float, "median" or "first_1000"
        σ_S, fixed: a number, the median over (2,000 evenly spaced) training rows, the reference's first 1,000 rows.
    attributes : {"joint", "product", "sum"}
        Several attributes: one Gaussian on the vector, a product of Gaussians, or a sum of criteria.
    scale : {"whiten", "standardise", None, "minmax"}
        Scaling of Z in the batch. Whitening with a moving average is the default because of ten splits of Adult at
        λ = 500: standardised Z often left its kernel's sight or became constant, the unbiased form left the attribute
        to a probe, whitened Z with the bandwidth of every single batch became constant, and this did none of these (the
        chapter on the bandwidth trap counts them). It asks for batches of several times as many rows as Z has columns,
        and for a Z no wider than what X holds: else the directions left over, blown up, keep the attribute.
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
            if value not in allowed:
                raise ValueError(f"{name} is {value!r}: choose one of {', '.join(map(repr, allowed))}.")
        if isinstance(kernel, str) and kernel not in KERNELS:
            raise ValueError(f"kernel is {kernel!r}: choose one of {', '.join(map(repr, KERNELS))} or a callable.")
        if estimator == "unbiased" and reference == "uniform":
            raise ValueError("reference='uniform' weights the rows, and the unbiased form has no weights: use another.")
        self.estimator = estimator
        self.on = on
        self.kernel = kernel
        self.kernel_s = kernel_s
        self.bandwidth_s = bandwidth_s
        self.attributes = attributes
        self.reference = reference

    def setup(
        self, data: TrainingData, *, dataset: Tensor, generators: Sequence[torch.Generator], representation: int
    ) -> None:
        super().setup(data, dataset=dataset, generators=generators, representation=representation)
        assert data.s is not None
        if self.estimator == "unbiased" and self.weighted:
            raise ValueError("estimator='unbiased' has no form with sample weights: use 'biased' or 'normalized'.")
        columns = [data.s] if self.attributes == "joint" else list(data.s.split(1, dim=-1))
        sigma = torch.stack([_attribute_bandwidth(column, self.bandwidth_s) for column in columns], dim=-1)
        self.register_buffer("sigma_s", sigma.to(data.x.dtype)[dataset])
        if self.attributes != "product":
            rows = [gaussian_rows(column, sigma[:, a].to(column)) for a, column in enumerate(columns)]
            self.register_buffer("attribute_rows", torch.stack(rows).flatten(1, 2), persistent=False)
        if self.reference == "uniform":
            self.register_buffer("density_weight", uniform_weights(data.s).flatten(0, 1), persistent=False)

    def terms(self, batch: Batch, *, refresh: bool = False) -> list[Pull | Tensor]:
        weights, enough = self.row_weights(batch)
        terms: list[Pull | Tensor] = []
        z, rows = batch.z, batch.z.shape[-2]
        if self.estimator == "unbiased" and rows < 4:
            return [0.0 * batch.output.sum(-1)]  # fewer than four rows define no unbiased estimate
        if self.on != "output" or refresh:
            z = self.scaled(z, weights)
            kernel_z = self._kernel_z(self.renew(z, refresh=refresh, enough=enough))
        factor = 1.0 / (rows * rows) if self.estimator == "biased" and weights is None else 1.0
        for centred, own in self._attributes(batch, weights):
            if self.on != "output":
                function = inner_product(centred) if own is None else correlation(centred, own, row_weights=weights)
                terms.append(gram_term(z, kernel_z, function, factor=factor))
            if self.on != "representation":
                terms.append(factor * self._on_output(batch.output, centred, own, weights))
        return counted(terms, enough)

    def row_weights(self, batch: Batch) -> tuple[Tensor | None, Tensor | None]:
        weights, enough = super().row_weights(batch)
        if self.reference == "uniform":
            rare = self.density_weight[batch.rows]
            weights = rare if weights is None else rare * weights
            weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-30)
        return weights, enough

    def _attributes(self, batch: Batch, weights: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
        """For each criterion, A with HSIC ∝ ⟨K, A⟩, and ⟨L, A⟩ where the normalised form needs it."""
        s, rows = batch.s, batch.rows
        columns = s.split(1, dim=-1) if self.attributes == "sum" else [s]
        for a, column in enumerate(columns):
            plain = weights is None and self.kernel_s == "gaussian"
            if plain and self.estimator != "unbiased" and self.attributes != "product":
                own_rows = self.attribute_rows[a].index_select(0, rows.reshape(-1))
                centred = centred_gaussian(own_rows.view(*rows.shape, -1))
            else:
                kernels = [KERNELS[self.kernel_s](self.sigma_s[:, b]) for b in range(self.sigma_s.shape[1])]
                gram = Product(kernels)(s) if self.attributes == "product" else kernels[a](column)
                centred = self._centred(gram, weights)
            if self.estimator != "normalized":
                yield centred, None
            elif weights is None:  # centring is a projection: ⟨L, A⟩ = |A|²
                yield centred, (centred * centred).sum((-2, -1))
            else:
                yield centred, (gram * centred).sum((-2, -1))

    def _centred(self, gram: Tensor, weights: Tensor | None) -> Tensor:
        if self.estimator != "unbiased":
            return centred_for(gram, row_weights=weights)
        mask = None if weights is None else (weights > 0).to(gram.dtype)
        return contraction_weights(gram, estimator="unbiased", weights=mask)

    def _kernel_z(self, sigma: Tensor) -> Kernel:
        return KERNELS[self.kernel](sigma) if isinstance(self.kernel, str) else self.kernel(sigma)

    def _on_output(self, output: Tensor, centred: Tensor, own: Tensor | None, weights: Tensor | None) -> Tensor:
        """HSIC of the scalar output with a linear kernel, f'Af; the normalised form divides by Var(f)·√HSIC(S, S)."""
        mean = output.mean(-1, keepdim=True) if weights is None else (weights * output).sum(-1, keepdim=True)
        f = output - mean
        cross = (f * (centred @ f.unsqueeze(-1)).squeeze(-1)).sum(-1)
        if own is None:
            return cross
        variance = (f * f).sum(-1) if weights is None else (weights * f * f).sum(-1)
        smallest = vanishing(f, rows=f.shape[-1], row_weights=weights)
        alive = ((variance > smallest**0.5) & (own > smallest)).to(f.dtype)
        return alive * cross / (variance.clamp_min(smallest**0.5) * own.clamp_min(smallest).sqrt())
