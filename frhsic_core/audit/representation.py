"""Audit a representation with measures that it was not trained on.

A small penalty means that *its* statistic is small. Dependence can remain at another bandwidth, in directions of low
variance, or in what a head makes of Z. The audit therefore measures Z in four different ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from frhsic_core.arrays import ArrayLike, as_pair, as_tensor, require_same_rows
from frhsic_core.audit.probes import linear_features, probe_r2, random_features
from frhsic_core.conditional.gdp import gdp
from frhsic_core.joint.contraction import center, inverse_root, own_product, smallest_own
from frhsic_core.joint.distance import distance_correlation
from frhsic_core.kernels import Gaussian, default_kernel, median_bandwidth

BANDWIDTHS = (0.5, 1.0, 2.0)


@dataclass(frozen=True)
class RepresentationAudit:
    """The result of :func:`audit_representation`; tensors have the batch shape and are float64 on the CPU.

    Attributes
    ----------
    normalized_hsic : Tensor
        ``(..., 3)``: normalized HSIC with σ_Z at each of ``bandwidths`` times the median distance.
    floor : Tensor
        ``(..., 3)``: the mean of that number if the rows of S are shuffled, which is what independence would give.
    distance_correlation : Tensor
        Squared, bias-corrected: about zero under independence.
    linear_r2, nonlinear_r2 : Tensor
        Cross-fitted R² of predicting S from Z; the largest over the attributes. Below zero: worse than the mean.
    gdp : Tensor or None
        GDP of the predictions, where they were given; the largest over the attributes.
    each : dict of str to Tensor
        ``linear_r2``, ``nonlinear_r2`` and ``gdp`` of every single attribute, ``(..., p)``.
    attributes : tuple of str
        Names of the attributes: the columns of a DataFrame, otherwise numbers.
    bandwidths : tuple of float
        Bandwidths in units of the median distance.
    rows : int
        Number of rows behind the kernel statistics; the probes and GDP use all rows.
    """

    normalized_hsic: Tensor
    floor: Tensor
    distance_correlation: Tensor
    linear_r2: Tensor
    nonlinear_r2: Tensor
    gdp: Tensor | None
    each: dict[str, Tensor]
    attributes: tuple[str, ...]
    bandwidths: tuple[float, ...]
    rows: int

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers under flat names, for a row (or, of a stack, rows) of a table.

        ``normalized_hsic_{factor}`` and the ``floor_{factor}`` to read it against, then the rest; with several
        attributes also each one's own, such as ``gdp[age]``.
        """
        values = {}
        for i, factor in enumerate(self.bandwidths):
            values[f"normalized_hsic_{factor:g}"] = self.normalized_hsic[..., i]
            values[f"floor_{factor:g}"] = self.floor[..., i]
        values |= {name: getattr(self, name) for name in ("distance_correlation", "linear_r2", "nonlinear_r2")}
        if self.gdp is not None:
            values["gdp"] = self.gdp
        if len(self.attributes) > 1:
            for name, measured in self.each.items():
                values |= {f"{name}[{which}]": measured[..., a] for a, which in enumerate(self.attributes)}
        return {name: value.item() if value.ndim == 0 else value.tolist() for name, value in values.items()}

    def __str__(self) -> str:
        lines = []
        table = self.as_dict()
        width = max(22, *map(len, table))
        for name, value in table.items():
            values = value if isinstance(value, list) else [value]
            lines.append(f"{name:{width}s} " + "  ".join(f"{number:7.4f}" for number in values))
        return "\n".join(lines)


@torch.no_grad()
def audit_representation(
    z: ArrayLike,
    s: ArrayLike,
    *,
    predictions: ArrayLike | None = None,
    bandwidths: Sequence[float] = BANDWIDTHS,
    features: int = 300,
    folds: int = 5,
    max_rows: int = 2000,
    chunk: int = 8,
    random_state: int = 0,
) -> RepresentationAudit:
    """Measure how strongly Z depends on S, with kernel statistics, probes and the predictions.

    Normalized HSIC at three bandwidths; the bias-corrected distance correlation; the cross-fitted R² of a linear ridge
    and of a ridge on random Fourier features; GDP. O(r²d) for r = ``max_rows`` and O(nF²) for F features, for each
    model; models are taken ``chunk`` at a time.

    Parameters
    ----------
    z : array_like
        ``(..., n, d)`` or ``(n,)``: representations, logits or probabilities of one model or of a stack. Use rows that
        the models were not trained on.
    s : array_like
        ``(n,)``, ``(n, p)`` for all models, or with the leading dimensions of ``z``. No attribute may be constant.
    predictions : array_like, optional
        ``(..., n)``: probabilities (or real predictions) for GDP with sample weights and Silverman's bandwidth. With
        several attributes the largest GDP is reported.
    bandwidths : sequence of float
        Bandwidths of the kernel on Z, in units of the median distance of its rows. S has its default kernel.
    features, folds : int
        Number of random features, and of parts for cross-fitting.
    max_rows : int
        Number of evenly spaced rows for the statistics that need a Gram matrix.
    chunk : int
        Number of models that are computed at a time.
    random_state : int
        Seed of the random features and the folds, the same for every model.

    Returns
    -------
    RepresentationAudit
        Zero HSIC and R² for a constant Z.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> s = torch.randn(600, generator=generator, dtype=torch.float64)
    >>> z = torch.stack([s**2, torch.randn(600, generator=generator, dtype=torch.float64)], dim=-1)
    >>> audit = audit_representation(z, s)
    >>> bool(audit.linear_r2 < 0.05), bool(audit.normalized_hsic[1] > 3 * audit.floor[1])
    (True, True)
    """
    for other, name in ((z, "z"), (s, "s")):
        require_same_rows(other, predictions, names=(name, "predictions"))
    given = s
    z, s = as_pair(z, s, min_rows=2 * folds)
    names = _attribute_names(given, s.shape[-1])
    constant = (s == s[..., :1, :]).all(-2).reshape(-1, s.shape[-1]).any(0)
    if bool(constant.any()):
        which = names[int(constant.nonzero()[0])]
        raise ValueError(f"s is constant (column {which}): nothing can depend on it. Drop this column.")
    z = z.double() if z.device.type != "mps" else z
    s = s.to(z)
    batch = z.shape[:-2]
    n, d = z.shape[-2:]
    s = s.expand(*batch, *s.shape[-2:]).reshape(-1, n, s.shape[-1])
    z = z.reshape(-1, n, d)
    f = None
    if predictions is not None:
        f = as_tensor(predictions, name="predictions").to(z)
        if f.shape[-1:] != (n,) and f.shape[-2:] != (n, 1):
            raise ValueError(
                f"predictions has shape {tuple(f.shape)}: pass one number for each of the {n} rows. Of two class "
                "probabilities pass the second, predict_proba(X)[:, 1]."
            )
        f = (f.squeeze(-1) if f.ndim > len(batch) + 1 else f).expand(*batch, n).reshape(-1, n)
    keep = torch.linspace(0, n - 1, min(n, max_rows), device=z.device).round().long()
    parts: list[list[Tensor]] = []
    for block in torch.arange(len(z)).split(chunk):
        zb = z[block]
        sb = s[block]
        values = _kernel_statistics(zb[:, keep], sb[:, keep], tuple(bandwidths))
        values += [distance_correlation(zb[:, keep], sb[:, keep], squared=True, estimator="unbiased")]
        values += [probe_r2(linear_features(zb), sb, folds=folds, seed=random_state, each=True)]
        values += [
            probe_r2(
                random_features(zb, features=features, seed=random_state), sb, folds=folds, seed=random_state, each=True
            )
        ]
        if f is not None:
            values += [torch.stack([gdp(f[block], sb[..., a]) for a in range(sb.shape[-1])], dim=-1)]
        parts.append([value.double().cpu() for value in values])
    joined = [torch.cat(column).reshape((*batch, *column[0].shape[1:])) for column in zip(*parts, strict=True)]
    each = dict(zip(("linear_r2", "nonlinear_r2", "gdp"), joined[3:], strict=False))
    return RepresentationAudit(
        normalized_hsic=joined[0],
        floor=joined[1],
        distance_correlation=joined[2],
        linear_r2=each["linear_r2"].amax(-1),
        nonlinear_r2=each["nonlinear_r2"].amax(-1),
        gdp=each["gdp"].amax(-1) if f is not None else None,
        each=each,
        attributes=names,
        bandwidths=tuple(float(b) for b in bandwidths),
        rows=len(keep),
    )


def _attribute_names(s: ArrayLike, attributes: int) -> tuple[str, ...]:
    columns = getattr(s, "columns", None)
    if columns is not None:
        return tuple(map(str, columns))
    name = getattr(s, "name", None)
    return (str(name),) if attributes == 1 and name is not None else tuple(map(str, range(attributes)))


def _kernel_statistics(z: Tensor, s: Tensor, factors: tuple[float, ...]) -> list[Tensor]:
    """Return normalized HSIC and its exact mean over permutations of the rows, ``(models, factors)`` each."""
    n = z.shape[-2]
    sigma = median_bandwidth(z, check_finite=False)
    gram_s = default_kernel(s, check_finite=False)(s)
    centered_s = center(gram_s)
    own_s = own_product(gram_s, centered_s)
    smallest = smallest_own(z, rows=n)
    values = []
    floors = []
    for factor in factors:
        gram_z = Gaussian(factor * sigma)(z)
        centered_z = center(gram_z)
        root = inverse_root(own_product(gram_z, centered_z), own_s, smallest)
        values.append((centered_z * centered_s).sum((-2, -1)) * root)
        floors.append(_trace(centered_z) * _trace(centered_s) * root / (n - 1))
    return [torch.stack(values, -1), torch.stack(floors, -1)]


def _trace(gram: Tensor) -> Tensor:
    return gram.diagonal(dim1=-2, dim2=-1).sum(-1)
