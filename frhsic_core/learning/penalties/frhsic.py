"""FRHSIC: the joint route as a penalty."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from frhsic_core._choices import one_of
from frhsic_core.joint.contraction import (
    Frame,
    GradientTerm,
    centered_product,
    contraction_weights,
    correlation,
    gram_term,
    inner_product,
    output_term,
    own_product,
    unit_factor,
)
from frhsic_core.joint.factors import factor
from frhsic_core.joint.fused import can_fuse_batch, fused_batch_term, fused_output_term
from frhsic_core.kernels import (
    Categorical,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    MultiScale,
    Product,
    median_bandwidth,
)
from frhsic_core.learning.data import Batch
from frhsic_core.learning.penalties.base import BandwidthPolicy, KernelPenalty, Setup, counted
from frhsic_core.learning.penalties.conditional import CONDITIONS, conditional_terms, prepare_given
from frhsic_core.learning.penalties.scaling import lone_whitening

FORMS = ("biased", "unbiased", "normalized")
PLACES = ("representation", "output", "both")
ATTRIBUTES = ("joint", "product", "sum")
LARGEST_RANK = 64  # of features of S: with more of them the exponentials are as fast
BLOCK = 128  # rows of a block of pairs: it stays in the cache of a core
KERNELS: dict[str, Callable[[Tensor], Kernel]] = {
    "gaussian": Gaussian,
    "multi_scale": MultiScale,
    "laplacian": Laplacian,
    "imq": InverseMultiquadric,
}


def _attribute_bandwidth(s: Tensor, rule: str | float) -> Tensor:
    """Return σ_S of ``(..., n, p)`` as ``(...)``, by a rule or as a number."""
    if isinstance(rule, str):
        if rule == "median":
            return median_bandwidth(s, max_points=2000)
        if rule == "first_1000":
            return median_bandwidth(s[..., :1000, :]) + 1e-5
        raise ValueError(
            f"bandwidth_s is {rule!r}: choose 'median', 'first_1000' or a positive number."
        )
    if not rule > 0:
        raise ValueError(f"bandwidth_s is {rule}: it must be positive.")
    return s.new_full(s.shape[:-2], float(rule))


class FRHSIC(KernelPenalty):
    r"""HSIC between Z and S on the mini-batch, the paper's ``eq:frhsic_objective``, and variants.

    .. math:: \mathrm{HSIC}(Z,S) = \sum_{ij} k(z_i,z_j)\,A_{ij},\qquad
        A = \text{centered } L \text{ over } m^2 .

    O(m²d) time and O(m²) memory for a batch of m rows; the gradient is written out.

    The default is the **recommended form**, whitened FRHSIC: the biased HSIC of Z, whitened in the
    batch, with a moving average of the bandwidth, plus the biased HSIC of the head's output with a
    linear kernel. The chapter on variants shows how it was chosen. The encoder should have a
    low-dimensional Z, such as 4. The paper's own forms are ``protocol="text"`` and ``"reference"``
    of ``make_penalty``.

    λ means the same here, in :class:`frhsic_core.HSICLoss` and in the estimators. A loss ``task +
    lam * FRHSIC()`` is

    ``task + HSICLoss(lam)(whiten(z), s) + HSICLoss(lam, kernel_z=Linear())(output, s)``

    up to the bandwidths, which ``HSICLoss`` takes from each batch; with the same bandwidths value
    and gradient agree.

    Parameters
    ----------
    estimator : {"biased", "unbiased", "normalized"}
        The paper and the default use ``"biased"``. Its floor of order 1/m shrinks when Z collapses,
        which whitening prevents. ``"unbiased"`` has no floor. ``"normalized"`` is a correlation,
        which neither rescaling nor shrinking Z or the output lowers; it is larger, and needs a
        smaller λ.
    on : {"representation", "output", "both"}
        Penalize Z; or the head's output with a linear kernel, the fixed-head form (Theorem 4.3); or
        both.
    output_weight : float
        Weight of the term on the head's output, relative to the term on Z, if ``on`` is ``"both"``.
    kernel, kernel_s : {"gaussian", "multi_scale", "laplacian", "imq"}
        Kernels on Z and on S. ``"multi_scale"`` is the mean of the Gaussians at 2, 1, ½ and ¼ of
        the bandwidth (:class:`frhsic_core.kernels.MultiScale`).
    bandwidth : BandwidthPolicy, str or float
        Policy for σ_Z; by default a moving average of the batches' medians.
    bandwidth_s : float, "median" or "first_1000"
        σ_S, fixed: a number, the median over (2,000 evenly spaced) training rows, or that of the
        first 1,000 rows plus 1e-5 as in the released code.
    attributes : {"joint", "product", "sum"}
        For several attributes: one Gaussian on the vector, a product of Gaussians, or a sum of
        criteria.
    scale : {"whiten", "standardize", None, "minmax"}
        Scaling of Z in the batch. The chapter on the bandwidth trap compares them. Whitening needs
        batches of several times as many rows as Z has columns, and a Z with no more dimensions than
        X can fill; otherwise the remaining directions, which are scaled up, keep the attribute.
    condition, minimum_rows
        ``"positives"`` (equal opportunity), ``"labels"`` (equalized odds) or ``"controls"`` (given
        control features); see ``Penalty`` and ``learning.penalties.conditional``. Groups of a batch
        with fewer than ``minimum_rows`` rows count as zero.
    categorical : sequence of int
        Columns of S that are codes of categories: their kernel is 1 for equal codes and 0
        otherwise. With ``attributes="product"`` age and sex are penalized together.
    """

    key = "frhsic"
    conditions = (None, "positives", *CONDITIONS)
    categorical: tuple[int, ...] = ()
    sigma_s: Tensor
    attribute_rows: Tensor

    def __init__(
        self,
        *,
        estimator: str = "biased",
        on: str = "both",
        output_weight: float = 1.0,
        kernel: str = "gaussian",
        kernel_s: str = "gaussian",
        bandwidth: BandwidthPolicy | str | float = "moving_average",
        bandwidth_s: str | float = "median",
        attributes: str = "joint",
        scale: str | None = "whiten",
        condition: str | None = None,
        minimum_rows: int = 4,
        categorical: Sequence[int] = (),
    ) -> None:
        super().__init__(
            bandwidth=bandwidth, scale=scale, condition=condition, minimum_rows=minimum_rows
        )
        one_of("estimator", estimator, FORMS)
        one_of("on", on, PLACES)
        one_of("attributes", attributes, ATTRIBUTES)
        one_of("kernel", kernel, tuple(KERNELS))
        one_of("kernel_s", kernel_s, tuple(KERNELS))
        if estimator == "unbiased" and condition in CONDITIONS:
            raise ValueError(
                f"estimator='unbiased' has no form with condition={condition!r}: use 'biased' or "
                "'normalized'."
            )
        if not 0 <= output_weight < float("inf"):
            raise ValueError(f"output_weight is {output_weight}: it must be zero or positive.")
        self.estimator = estimator
        self.on = on
        self.output_weight = float(output_weight)
        self.kernel = kernel
        self.kernel_s = kernel_s
        self.bandwidth_s = bandwidth_s
        self.attributes = attributes
        # Not set otherwise, so that the recorded settings of other penalties stay as they are.
        if categorical:
            if attributes == "joint":
                raise ValueError(
                    "categorical needs attributes='product' or 'sum': one kernel for each column."
                )
            self.categorical = tuple(int(a) for a in categorical)

    def prepare(self, setup: Setup) -> None:
        super().prepare(setup)
        s = setup.s
        if self.estimator == "unbiased" and self.weighted:
            raise ValueError(
                "estimator='unbiased' has no form with sample weights: use 'biased' or "
                "'normalized'."
            )
        columns = [s]
        if self.attributes != "joint":
            columns = list(s.split(1, dim=-1))
        widths = [_attribute_bandwidth(column, self.bandwidth_s) for column in columns]
        sigma = torch.stack(widths, dim=-1)
        self.register_buffer("sigma_s", sigma.to(setup.data.x.dtype)[setup.dataset])
        self._thin = False
        if self.attributes != "product":
            self._keep_rows(torch.cat(columns), sigma.mT.flatten(), criteria=len(columns))
        self._given = None
        if self.condition in CONDITIONS:
            self._given = prepare_given(self.condition, setup.data)

    def _keep_rows(self, samples: Tensor, widths: Tensor, *, criteria: int) -> None:
        """Keep what a step reads of S, ``(criteria, rows of all datasets, columns)``.

        It is features where they are few. Otherwise it is S in units in which a Gaussian kernel is
        2^(−|s − s'|²/2), as the fused kernels need it.
        """
        rows = self._features(samples, widths)
        self._thin = rows is not None
        if rows is None:
            centered = samples - samples.mean(-2, keepdim=True)
            rows = centered * (math.log2(math.e) ** 0.5 / widths[:, None, None])
        rows = rows.to(samples).reshape(criteria, -1, rows.shape[-1])
        self.register_buffer("attribute_rows", rows, persistent=False)

    def _features(self, samples: Tensor, widths: Tensor) -> Tensor | None:
        """Return Φ of single columns of S, ``(..., n, rank)``, with L = ΦΦᵀ but for constants.

        On a CPU a product of thin matrices takes a third of the time of a matrix of exponentials.
        ``None`` where no step would use it.
        """
        special = self.weighted or self.categorical or self.condition
        plain = not special and self.estimator != "unbiased"
        smooth = samples.shape[-1] == 1 and self.kernel_s in ("gaussian", "multi_scale")
        if samples.device.type != "cpu" or not plain or not smooth:
            return None
        found: list[Tensor] = []
        for s, width in zip(samples.double(), widths.tolist(), strict=True):
            thin = factor(KERNELS[self.kernel_s](width), s)
            if thin is None or not 0 < thin.rank <= 2 * LARGEST_RANK:
                return None
            features = torch.cat([thin(part).to(samples.dtype) for part in s.split(2**13)])
            size = features.square().amax(0)
            counts = size > 0.1 * torch.finfo(samples.dtype).eps * size.amax()
            found.append(features[:, counts].mT)
        # The features of a row side by side.
        rows = pad_sequence(found, batch_first=True).mT.contiguous()
        if rows.shape[-1] > LARGEST_RANK:
            return None
        return rows

    # The terms of a step, in the way that is fastest for the batch ------------------------------

    def terms(self, batch: Batch, *, refresh: bool = False) -> Iterable[GradientTerm | Tensor]:
        return self._way(batch)(batch, refresh=refresh)

    def _way(self, batch: Batch) -> Callable[..., Iterable[GradientTerm | Tensor]]:
        """Return the method that computes the terms of this batch."""
        if self.estimator == "unbiased" and batch.z.shape[-2] < 4:
            return self._no_terms
        if self._given is not None:
            return self._conditional_terms
        if self._fuses(batch):
            return self._fused_terms
        if self._is_lone(batch):
            return self._lone_terms
        return self._plain_terms

    def _no_terms(self, batch: Batch, *, refresh: bool) -> list[GradientTerm | Tensor]:
        """Return zero: fewer than four rows define no unbiased estimate."""
        return [0.0 * batch.output.sum(-1)]

    def _plain_terms(self, batch: Batch, *, refresh: bool) -> list[GradientTerm | Tensor]:
        """Return the terms for any kernels, weights and number of models."""
        weights, enough = self.row_weights(batch)
        z: Frame | Tensor = batch.z
        if self.on != "output" or refresh:
            z, kernel_z = self._scaled_with_kernel(batch.z, weights, enough, refresh=refresh)
        scale = 1.0
        if self.estimator != "normalized":
            scale = unit_factor(batch.z.shape[-2], self.estimator, weights)
        terms: list[GradientTerm | Tensor] = []
        for centered, own in self._attributes(batch, weights):
            if self.on != "output":
                function = inner_product(centered)
                if own is not None:
                    function = correlation(centered, own, row_weights=weights)
                terms.append(gram_term(z, kernel_z, function, factor=scale))
            if self.on != "representation":
                on_output = output_term(
                    batch.output,
                    centered,
                    own,
                    row_weights=weights,
                    factor=scale * self._share_of_output,
                )
                terms.append(on_output)
        return counted(terms, enough)

    def _scaled_with_kernel(
        self, z: Tensor, weights: Tensor | None, enough: Tensor | None, *, refresh: bool
    ) -> tuple[Frame | Tensor, Kernel]:
        """Return scaled Z and its kernel; ``refresh`` renews the bandwidth first."""
        kernel = KERNELS[self.kernel]
        if self.kernel not in ("gaussian", "imq"):
            scaled = self.scaled(z, weights)
            return scaled, kernel(self.renew(scaled, refresh=refresh, enough=enough))
        # A frame returns gradients of functions of distances, which these two kernels are.
        frame = self.frame(z, weights)
        known: Tensor | None = None
        if frame.back and self.on != "output":
            known = frame.exponents
        sigma = self.renew(frame.u, refresh=refresh, enough=enough, exponents=known)
        return frame, kernel(sigma)

    @property
    def _share_of_output(self) -> float:
        """The weight of the term on the head's output."""
        return self.output_weight if self.on == "both" else 1.0

    def _conditional_terms(self, batch: Batch, *, refresh: bool) -> list[GradientTerm | Tensor]:
        """Return the terms given the labels or the control features."""
        assert self._given is not None
        weights, enough = self.row_weights(batch)
        scaled_z: tuple[Tensor, Kernel] | None = None
        if self.on != "output" or refresh:
            scaled = self.scaled(batch.z, weights)
            sigma = self.renew(scaled, refresh=refresh, enough=enough)
            scaled_z = scaled, KERNELS[self.kernel](sigma)
        if self.on == "output":
            scaled_z = None  # it was scaled for the bandwidth alone
        output: Tensor | None = None
        if self.on != "representation":
            output = batch.output
        return conditional_terms(
            self._given(batch, weights, minimum_rows=self.minimum_rows),
            self._grams(batch),
            scaled_z,
            output,
            normalized=self.estimator == "normalized",
            output_weight=self._share_of_output,
        )

    # Fused kernels on a GPU ----------------------------------------------------------------------

    def _fuses(self, batch: Batch) -> bool:
        """Return whether the fused kernels compute this penalty.

        They are for equal weights, and for Gaussian kernels on both sides.
        """
        if not batch.z.is_cuda or self._thin:
            return False
        if batch.weights is not None or self.condition is not None:
            return False
        if self.on == "output" or self.estimator == "unbiased":
            return False
        if self.attributes == "product" or self.categorical:
            return False
        gaussian = self.kernel == self.kernel_s == "gaussian"
        return gaussian and can_fuse_batch(batch.z)

    def output_terms(self, batch: Batch) -> list[GradientTerm]:
        if self.on != "both" or self.estimator != "biased" or not self._fuses(batch):
            return []
        unused = batch.output.new_empty(len(batch.z))
        return [self._fused_output(batch, a, unused) for a in range(len(self.attribute_rows))]

    def _fused_terms(self, batch: Batch, *, refresh: bool) -> Iterator[GradientTerm]:
        """Yield the terms without those of ``output_terms``.

        The normalized form of the output's term needs what that of Z computes, so it is here.
        """
        normalized = self.estimator == "normalized"
        frame = self.frame(batch.z, None)
        self.renew(frame.u, refresh=refresh)
        for a in range(len(self.attribute_rows)):
            term, own = fused_batch_term(
                frame,
                self._rows_of_attribute(a, batch.rows),
                self.sigma_z,
                normalized=normalized,
                factor=self._fused_factor(batch),
            )
            yield term
            if self.on == "both" and normalized:
                yield self._fused_output(batch, a, own)

    def _fused_output(self, batch: Batch, a: int, own: Tensor) -> GradientTerm:
        return fused_output_term(
            batch.output,
            self._rows_of_attribute(a, batch.rows),
            own,
            normalized=self.estimator == "normalized",
            factor=self._fused_factor(batch) * self.output_weight,
        )

    def _fused_factor(self, batch: Batch) -> float:
        if self.estimator == "normalized":
            return 1.0
        return unit_factor(batch.z.shape[-2], self.estimator, None)

    # One model on a CPU --------------------------------------------------------------------------

    def _is_lone(self, batch: Batch) -> bool:
        """Return whether this is a step of one model on a CPU in the recommended form of Z."""
        if len(batch.z) != 1 or not self._thin or batch.weights is not None:
            return False
        if self.on == "output" or self.estimator != "biased":
            return False
        if self.scale != "whiten" or self.kernel != "gaussian":
            return False
        trains = batch.z.requires_grad and torch.is_grad_enabled()
        return trains and batch.z.device.type == "cpu"

    @np.errstate(all="ignore")  # of a training that diverges; torch does not warn either
    def _lone_terms(self, batch: Batch, *, refresh: bool) -> list[GradientTerm | Tensor]:
        """Return the terms of one model on a CPU, where a step is many calls on small arrays.

        A call of NumPy takes a fraction of the time of one of torch. Rows of samples are columns of
        arrays here, and the features of several criteria stand below each other, so that their sum
        is one criterion. If σ_Z is so small that the rounding of |z_i − z_j|² would count, the
        terms are the plain ones.
        """
        z = batch.z.detach().numpy()[0]
        white, back = lone_whitening(z)
        left, right = halves(white)
        sigma = self.lone_sigma(left, right, refresh=refresh)
        if not sigma**2 > 1e4 * np.finfo(z.dtype).eps * right[-1].max():
            return self._plain_terms(batch, refresh=refresh)
        self.sigma_z.numpy()[0] = sigma
        features = self._lone_features(batch)
        terms: list[GradientTerm | Tensor] = [
            _lone_term_of_z(batch.z, left, right, back, features, sigma)
        ]
        if self.on != "representation":
            terms.append(_lone_term_of_output(batch.output, features, self.output_weight))
        return terms

    def _lone_features(self, batch: Batch) -> NDArray[Any]:
        """Return the centered features of S of all criteria, ``(features, m)``."""
        rows = batch.rows.numpy()[0]
        chosen = self.attribute_rows.numpy().take(rows, 1)
        features = chosen.swapaxes(1, 2).reshape(-1, len(rows))
        features -= np.add.reduce(features, 1, keepdims=True) / len(rows)
        return features

    # S in a mini-batch ---------------------------------------------------------------------------

    def _rows_of_attribute(self, a: int, rows: Tensor) -> Tensor:
        """Return what a step reads of criterion ``a`` for these rows, ``(models, m, columns)``."""
        chosen = self.attribute_rows[a].index_select(0, rows.reshape(-1))
        return chosen.view(*rows.shape, -1)

    def _attributes(
        self, batch: Batch, weights: Tensor | None
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield for each criterion A with HSIC ∝ ⟨K, A⟩, and ⟨L, A⟩ if the form is normalized."""
        for a, column in enumerate(self._columns(batch)):
            if self._thin and weights is None:
                centered = centered_product(self._rows_of_attribute(a, batch.rows))
                # With equal weights, only the centered matrix enters the normalized form.
                gram = centered
            else:
                gram = self._gram(column, a)
                centered = self._centered(gram, weights)
            own = None
            if self.estimator == "normalized":
                own = own_product(gram, centered, row_weights=weights)
            yield centered, own

    def _columns(self, batch: Batch) -> Sequence[Tensor]:
        """Return S of each criterion."""
        if self.attributes == "sum":
            return batch.s.split(1, dim=-1)
        return [batch.s]

    def _gram(self, column: Tensor, a: int) -> Tensor:
        """Return the Gram matrix of criterion ``a``: of its own column, or of all of them."""
        kind = KERNELS[self.kernel_s]
        kernels: list[Kernel] = [kind(sigma) for sigma in self.sigma_s.unbind(1)]
        for b in self.categorical:
            kernels[b] = Categorical()
        if self.attributes == "product":
            return Product(kernels)(column)
        return kernels[a](column)

    def _grams(self, batch: Batch) -> Iterator[Tensor]:
        for a, column in enumerate(self._columns(batch)):
            yield self._gram(column, a)

    def _centered(self, gram: Tensor, weights: Tensor | None) -> Tensor:
        if self.estimator != "unbiased":
            return contraction_weights(gram, row_weights=weights)
        mask: Tensor | None = None
        if weights is not None:
            mask = (weights > 0).to(gram.dtype)
        return contraction_weights(gram, estimator="unbiased", row_weights=mask)


# One model on a CPU -------------------------------------------------------------------------------


def halves(v: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return L and R with LᵀR = |v_i − v_j|²/2 for columns v: −[v, |v|², −½] and [v, −½, |v|²]."""
    right = np.full((len(v) + 2, v.shape[1]), -0.5, v.dtype)
    right[:-2] = v
    np.einsum("ij,ij->j", v, v, out=right[-1])
    left = -right
    left[-2] = left[-1]
    left[-1] = 0.5
    return left, right


def _lone_term_of_z(
    z: Tensor,
    left: NDArray[Any],
    right: NDArray[Any],
    back: Callable[[NDArray[Any]], NDArray[Any]],
    features: NDArray[Any],
    sigma: float,
) -> GradientTerm:
    """Return biased HSIC of whitened Z, from its halves, and of S, from its features."""
    m = features.shape[1]
    sums = pair_sums(left * (-math.log2(math.e) / sigma**2), right, features)
    mass = -2.0 * sums[-1]  # of the row of −½
    gradient = back(sums[:-1] - mass * right[:-2])
    direction = gradient.T.astype(right.dtype, order="C")
    value = torch.from_numpy(np.add.reduce(mass, keepdims=True) / m**2)
    return GradientTerm(value, z, torch.from_numpy(direction[None]), 2.0 / (m * sigma) ** 2)


def _lone_term_of_output(output: Tensor, features: NDArray[Any], weight: float) -> GradientTerm:
    """Return ``weight`` times the biased HSIC of the output, with a linear kernel, and of S."""
    f = output.detach().numpy()[0]
    m = len(f)
    along = features @ (f - np.add.reduce(f) / m)
    factor = weight / m**2
    value = torch.from_numpy(np.add.reduce(along * along, keepdims=True) * factor)
    direction = torch.from_numpy((along @ features)[None])
    return GradientTerm(value, output, direction, 2.0 * factor)


def pair_sums(left: NDArray[Any], right: NDArray[Any], features: NDArray[Any]) -> NDArray[Any]:
    """Return R·(ΦᵀΦ ∘ 2^(LᵀR)) without the last row of R.

    L and R are those of :func:`halves` times a negative number. The matrix is symmetric: it is
    computed in blocks that stay in a core's cache, and those below the diagonal are not. Exponents
    are clamped as in :func:`frhsic_core.kernels.exponential`, if any can be that small.
    """
    lowest = 0.5 * math.log2(np.finfo(right.dtype).tiny)
    clamps = not 4.0 * left[-1, 0] * right[-1].max() > lowest
    rows = right[:-1]
    copy = features.copy()  # of a matrix and itself, NumPy takes a slower product
    sums = np.zeros_like(rows)
    parts = [slice(first, first + BLOCK) for first in range(0, left.shape[1], BLOCK)]
    for a, one in enumerate(parts):
        for other in parts[a:]:
            slope = left[:, one].T @ right[:, other]
            if clamps:
                slope.clip(lowest, 0.0, out=slope)
            torch.from_numpy(slope).exp2_()
            slope *= features[:, one].T @ copy[:, other]
            sums[:, other] += rows[:, one] @ slope
            if other is not one:
                sums[:, one] += rows[:, other] @ slope.T
    return sums
