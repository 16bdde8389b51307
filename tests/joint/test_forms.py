"""Every form of HSIC on every path against its definition: values and gradients, weights, masks, groups and batches."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from samples import correlated
from torch import Tensor

from frhsic_core import (
    Categorical,
    Distance,
    Gaussian,
    HSICLoss,
    InverseMultiquadric,
    Laplacian,
    Linear,
    MultiScale,
    Product,
    hsic,
    normalized_hsic,
)
from frhsic_core.joint import conditional_hsic
from frhsic_core.joint.contraction import (
    GradientTerm,
    dependence,
    gram_term,
    inner_product,
)
from frhsic_core.joint.engines import Engine, columns, dense, streamed, thin
from frhsic_core.joint.problem import Problem

FORMS = ("biased", "unbiased", "normalized")
WEIGHTS = ("none", "weights", "mask")
KERNELS = {
    "gaussian": (Gaussian(0.9), Gaussian(0.6)),
    "multi_scale": (MultiScale(1.5), Gaussian(0.8)),
    "laplacian": (Laplacian(0.8), Laplacian(1.3)),
    "laplacian and gaussian": (Gaussian(0.8), Laplacian(0.7)),
    "imq": (InverseMultiquadric(1.8), InverseMultiquadric(1.1)),
    "linear": (Linear(), Gaussian(0.6)),
    "distance": (Distance(), Gaussian(0.6)),
    "distances": (Distance(), Distance()),
}


def by_definition(
    gram_z: Tensor, gram_s: Tensor, form: str, weights: Tensor, groups: Tensor | None = None
) -> Tensor:
    """Return a form of HSIC from two Gram matrices: the mean over groups, with weights that are zero for left-out rows.

    The unbiased form is that of Song et al. (2012), equation 4, on the rows that count.
    """
    if form == "normalized":
        cross, *own = (
            by_definition(a, b, "biased", weights, groups)
            for a, b in ((gram_z, gram_s), (gram_z, gram_z), (gram_s, gram_s))
        )
        return cross / (own[0] * own[1]).sqrt()
    value = gram_z.new_zeros(())
    for group in [None] if groups is None else groups.unique():
        w = weights if group is None else weights * (groups == group)
        kept = w > 0
        p = w[kept] / w.sum()
        k, l = (gram[kept][:, kept] for gram in (gram_z, gram_s))
        n = len(k)
        if form == "unbiased" and n < 4:
            continue
        if form == "biased":
            h = torch.eye(n, dtype=k.dtype) - p
            part = p @ ((h @ k @ h.T) * (h @ l @ h.T)) @ p
        else:
            k, l = (gram * (1.0 - torch.eye(n, dtype=k.dtype)) for gram in (k, l))
            part = (
                (k * l).sum()
                + k.sum() * l.sum() / ((n - 1) * (n - 2))
                - 2.0 * (k @ l).sum() / (n - 2)
            )
            part = part / (n * (n - 3))
        value = value + w.sum() / weights.sum() * part
    return value


def rows_that_count(kind: str, n: int) -> Tensor:
    if kind == "none":
        return torch.ones(n, dtype=torch.float64)
    place = torch.arange(n)
    return (place % 3 > 0).double() if kind == "mask" else (place % 4).double() + 0.25


def options_of(form: str, kind: str, n: int) -> dict[str, Any]:
    """Return the arguments of the inner functions: probabilities, or zeros and ones for the unbiased form."""
    w = rows_that_count(kind, n)
    row_weights = None if kind == "none" else w if form == "unbiased" else w / w.sum()
    return {
        "estimator": "unbiased" if form == "unbiased" else "biased",
        "normalized": form == "normalized",
        "row_weights": row_weights,
    }


def require_same(
    found: Callable[..., Tensor | None], expected: Callable[..., Tensor], *samples: Tensor
) -> None:
    """Compare values to 1e-10 and gradients in all samples to 1e-9 of their largest entry."""
    pairs = []
    for function in (found, expected):
        at = [x.clone().requires_grad_() for x in samples]
        value = function(*at)
        assert value is not None
        pairs.append((value.detach(), torch.autograd.grad(value, at)))
    torch.testing.assert_close(pairs[0][0], pairs[1][0], rtol=1e-10, atol=0.0)
    for mine, other in zip(pairs[0][1], pairs[1][1], strict=True):
        torch.testing.assert_close(mine, other, rtol=0.0, atol=1e-9 * other.abs().max().item())


def by_engine(engine: Engine, z: Tensor, s: Tensor, **options: Any) -> Tensor | None:
    """Return the form by one engine."""
    weights = options.pop("row_weights")
    return engine.value(Problem(z, s, weights=weights, **options))


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("rows", [0, 5, 17], ids=["dense", "blocks of 5", "one block"])
def test_all_pairs(
    rows: int, kernels: str, form: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "CHUNK", rows)
    engine = streamed if rows else dense
    if kind == "weights" and form == "unbiased":
        return  # this form has no weights
    kernel_z, kernel_s = KERNELS[kernels]
    z, s = correlated(1, 17, 0.5, 2)
    options = options_of(form, kind, 17)
    require_same(
        lambda a, b: by_engine(engine, a, b, kernel_z=kernel_z, kernel_s=kernel_s, **options),
        lambda a, b: by_definition(kernel_z(a), kernel_s(b), form, rows_that_count(kind, 17)),
        z,
        s,
    )


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "kernels",
    ["gaussian", "multi_scale", "imq", "laplacian", "laplacian and gaussian", "distances"],
)
def test_thin_matrices_of_two_columns(kernels: str, form: str, kind: str) -> None:
    """Chebyshev features with their gradient, and sums along sorted columns, which have none."""
    if (kind == "weights" and form == "unbiased") or (kernels == "distances" and kind != "none"):
        return  # sums of distances have no weights
    kernel_z, kernel_s = KERNELS[kernels]
    z, s = correlated(1, 800, 0.5)
    options = options_of(form, kind, 800) | {"kernel_z": kernel_z, "kernel_s": kernel_s}
    expected = partial(dependence, **options)
    if not kernels.startswith(("laplacian", "distances")):
        require_same(partial(by_engine, thin, **options), expected, z, s)
        return
    for a, b, swapped in ((z, s, {}), (s, z, {"kernel_z": kernel_s, "kernel_s": kernel_z})):
        found = by_engine(columns, a, b, **options | swapped)
        assert found is not None
        torch.testing.assert_close(found, expected(z, s), rtol=1e-10, atol=0.0)
    weights = options.pop("row_weights")
    learning = Problem(z.clone().requires_grad_(), s, weights=weights, **options)
    assert not columns.serves(learning)
    assert thin.value(learning) is None


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("kernel", "columns"),
    [
        (Categorical(), lambda x: (3 * x).round()),
        (Gaussian(1.7), lambda x: torch.cat([x, x.flip(0)], 1)),
        (Product([Gaussian(1.0), Categorical()]), lambda x: torch.cat([x, x.flip(0).round()], 1)),
        (Gaussian(0.01), lambda x: (3 * x).round()),
        (Linear(), lambda x: torch.cat([x, x.flip(0), x.square()], 1)),
    ],
    ids=["categories", "two columns", "number and category", "few values", "linear"],
)
def test_thin_matrices_of_categories_and_a_few_columns(
    kernel: Any, columns: Any, form: str, kind: str
) -> None:
    if kind == "weights" and form == "unbiased":
        return
    z, s = correlated(1, 1200, 0.5)
    s = columns((s - s.mean()) / s.std())
    options = options_of(form, kind, 1200) | {"kernel_z": Gaussian(1.0), "kernel_s": kernel}
    found = by_engine(thin, z, s, **options)
    assert found is not None
    torch.testing.assert_close(found, dependence(z, s, **options), rtol=1e-10, atol=0.0)


@pytest.fixture(params=["dense", "by block", "without memory"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a public function as it is, and with limits so small that it goes block by block."""
    memory = sys.modules["frhsic_core._arrays"]
    if request.param == "by block":
        monkeypatch.setattr(dense, "DENSE_ROWS", 5)
    if request.param == "without memory":
        monkeypatch.setattr(memory, "_SMALL", 0)
        monkeypatch.setattr(memory, "free_memory", lambda device: 6 * 8 * 17**2 - 1)
    if request.param != "dense":
        monkeypatch.setattr(streamed, "CHUNK", 7)
        monkeypatch.setattr(
            dense, "dependence", lambda *_, **__: pytest.fail("whole matrices were computed")
        )
    return request.param


@pytest.mark.parametrize("kind", [*WEIGHTS, "both"])
@pytest.mark.parametrize("form", FORMS)
def test_public_functions(form: str, kind: str, path: str) -> None:
    """A mask is the subset of its rows, and weights are those of the rows kept, up to a factor."""
    z, s = correlated(1, 17, 0.5, 2)
    w = rows_that_count("none" if kind == "none" else "weights", 17)
    mask = rows_that_count("mask", 17).bool()
    rows: dict[str, Any] = {}
    if kind in ("weights", "both"):
        rows["sample_weight"] = 3.0 * w
    else:
        w = torch.ones_like(w)
    if kind in ("mask", "both"):
        rows["mask"] = mask.int().numpy() if kind == "both" else mask
        w = w * mask
    kernels = {"kernel_z": Gaussian(0.9), "kernel_s": InverseMultiquadric(0.6)}
    calls = [HSICLoss(1.0, estimator=form, **kernels)]
    calls.append(
        partial(normalized_hsic, **kernels)
        if form == "normalized"
        else partial(hsic, estimator=form, **kernels)
    )
    for call in calls:
        if form == "unbiased" and "sample_weight" in rows:
            with pytest.raises(ValueError, match="sample_weight needs estimator='biased'"):
                call(z, s, **rows)
            continue
        require_same(
            lambda a, b, call=call: call(a, b, **rows),
            lambda a, b: by_definition(kernels["kernel_z"](a), kernels["kernel_s"](b), form, w),
            z,
            s,
        )


@pytest.mark.parametrize("kind", [*WEIGHTS, "both"])
@pytest.mark.parametrize("form", ["biased", "normalized"])
def test_groups(form: str, kind: str) -> None:
    z, s = correlated(1, 19, 0.5, 2)
    labels = torch.tensor([3, 1, 7] * 5 + [3, 3, 1, 9])  # one group has a single row
    words = labels.numpy().astype(str)  # numbers of several values are no labels
    kernel_z, kernel_s = Gaussian(1.2), Gaussian(0.7)
    w = rows_that_count("none" if kind == "mask" else kind if kind != "both" else "weights", 19)
    rows: dict[str, Any] = {} if kind in ("none", "mask") else {"sample_weight": w}
    if kind in ("mask", "both"):
        mask = rows_that_count("mask", 19)
        w, rows["mask"] = w * mask, mask
    options = {"kernel_z": kernel_z, "kernel_s": kernel_s, "estimator": form}
    require_same(
        lambda a: conditional_hsic(a, s, words, **options, **rows),
        lambda a: by_definition(kernel_z(a), kernel_s(s), form, w, labels),
        z,
    )


@pytest.mark.parametrize("form", FORMS)
def test_batches_are_loops(form: str, path: str) -> None:
    """Also where one sample has no batch dimension, and where bandwidths and masks differ along the batch."""
    z = torch.randn(2, 3, 17, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    s = torch.randn(3, 17, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    sigma = torch.tensor([[0.5, 1.0, 2.0], [0.7, 1.4, 2.8]], dtype=torch.float64)
    mask = torch.rand(2, 3, 17, generator=torch.Generator().manual_seed(3)) < 0.7
    call: Callable[..., Tensor] = (
        normalized_hsic if form == "normalized" else partial(hsic, estimator=form)
    )
    together = call(z, s, kernel_z=Gaussian(sigma), kernel_s=Gaussian(0.8), mask=mask)
    one_sample = call(z[0, 0], s[0], kernel_z=Gaussian(sigma), kernel_s=Gaussian(0.8), mask=mask)
    assert together.shape == one_sample.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            grams = Gaussian(sigma[i, j])(z[i, j]), Gaussian(0.8)(s[j])
            torch.testing.assert_close(
                together[i, j], by_definition(*grams, form, mask[i, j].double())
            )
            grams = Gaussian(sigma[i, j])(z[0, 0]), Gaussian(0.8)(s[0])
            torch.testing.assert_close(
                one_sample[i, j], by_definition(*grams, form, mask[i, j].double())
            )
    product = Product([Gaussian(sigma), Categorical()])
    code = s.expand(2, 3, 17, 1).round()
    together = call(s, torch.cat([z[..., :1], code], -1), kernel_z=Gaussian(1.0), kernel_s=product)
    alone = Product([Gaussian(2.8), Categorical()])(torch.cat([z[1, 2, :, :1], code[1, 2]], -1))
    torch.testing.assert_close(
        together[1, 2],
        by_definition(Gaussian(1.0)(s[2]), alone, form, torch.ones(17, dtype=torch.float64)),
    )


LEARNED: dict[str, Callable[[Tensor], Any]] = {
    "laplacian": Laplacian,
    "product": lambda b: Product([Gaussian(b)]),
    "multi_scale": MultiScale,
    "function of a user, for several rows": lambda b: (
        lambda x, y=None: Gaussian(b)(x, y) if len(x) > 1 else None
    ),
}


@pytest.mark.parametrize("form", [*FORMS, "given"])
@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.parametrize(("n", "largest"), [(300, 4096), (30, 5)], ids=["thin", "streamed"])
def test_learned_bandwidths_have_their_gradient(
    n: int, largest: int, kind: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dense, "DENSE_ROWS", largest)
    monkeypatch.setattr(sys.modules["frhsic_core.joint.factors"], "THIN_ROWS", 300)
    z, s = (
        (5.0 * x).round() / 5.0 for x in correlated(1, n, 0.5)
    )  # few values: products of kernels have a small rank
    labels = torch.arange(n) % 2
    make = LEARNED[kind]

    # Given labels the kernel on Z is fixed: the gradient is then in the bandwidth on S alone.
    learned = (
        [torch.tensor(0.6).double()]
        if form == "given"
        else [torch.tensor(width).double() for width in (0.6, 0.9)]
    )

    def found(b: Tensor, *a: Tensor) -> Tensor:
        kernels = {"kernel_z": make(*a) if a else Gaussian(0.9), "kernel_s": make(b)}
        if form == "given":
            return conditional_hsic(z, s, labels, **kernels)
        return (
            normalized_hsic(z, s, **kernels)
            if form == "normalized"
            else hsic(z, s, estimator=form, **kernels)
        )

    def expected(b: Tensor, *a: Tensor) -> Tensor:
        grams = (make(*a) if a else Gaussian(0.9))(z), make(b)(s)
        rows = torch.ones(n, dtype=torch.float64)
        return (
            by_definition(*grams, form, rows)
            if a
            else by_definition(*grams, "biased", rows, labels)
        )

    require_same(found, expected, *learned)


def test_a_learned_bandwidth_needs_memory_for_whole_matrices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = sys.modules["frhsic_core._arrays"]
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "free_memory", lambda device: 6 * 8 * 17**2 - 1)
    with pytest.raises(MemoryError, match="learned bandwidth needs whole matrices"):
        hsic(*correlated(1, 17, 0.5), kernel_z=Gaussian(torch.tensor(1.0, requires_grad=True)))


def test_blocks_of_float32_are_added_up_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "CHUNK", 5)
    z, s = (x.float() for x in correlated(1, 17, 0.5, 2))
    found = streamed.of_pair(Problem(z, s, Gaussian(0.9), Gaussian(0.6)))
    expected = dependence(z.double(), s.double(), kernel_z=Gaussian(0.9), kernel_s=Gaussian(0.6))
    assert found.dtype == torch.float64
    # Entries are rounded to 6e-8, and HSIC is a hundredth of them.
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)


def test_a_term_times_a_number_for_each_model() -> None:
    z = correlated(1, 17, 0.5, 2)[0].repeat(2, 1, 1).requires_grad_()
    term = gram_term(z, Gaussian(0.9), inner_product(torch.ones(17, 17, dtype=torch.float64)))
    assert isinstance(term, GradientTerm)
    factor = torch.tensor([2.0, 3.0], dtype=torch.float64)
    more = term.times(factor)
    torch.testing.assert_close(more.value, factor * term.value)
    found = torch.autograd.grad(more.differentiable().sum(), z)[0]
    torch.testing.assert_close(found, factor[:, None, None] * term.gradient)
