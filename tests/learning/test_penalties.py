"""Values, gradients, weights and edge cases of every penalty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
import torch
from samples import batch_of, prepared
from torch import Tensor

from frhsic_core.conditional import eipm
from frhsic_core.joint import HSICLoss, distance_correlation, hsic
from frhsic_core.kernels import (
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplacian,
    Linear,
    MultiScale,
    median_bandwidth,
)
from frhsic_core.learning import (
    ADV,
    FREM,
    FRHSIC,
    LAFTR,
    DCor,
    MMDBinned,
    Penalty,
    RegGDP,
    make_penalty,
)
from frhsic_core.learning.data import Batch, TrainingData
from frhsic_core.learning.penalties import whiten
from frhsic_core.learning.penalties.base import BandwidthPolicy
from frhsic_core.learning.penalties.frhsic import halves
from frhsic_core.learning.penalties.mmd_binned import bin_rows

DTYPE = torch.float64
on_z = partial(FRHSIC, on="representation", estimator="normalized")


def sample(
    n: int = 40, models: int = 2, p: int = 1, d: int = 3
) -> tuple[TrainingData, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(11)
    s = torch.rand(1, n, p, generator=generator, dtype=DTYPE)
    z = torch.randn(models, n, d, generator=generator, dtype=DTYPE) + 1.5 * s[..., :1]
    y = (torch.rand(1, n, generator=generator) < 0.5).to(DTYPE)
    output = z.sum(-1) + 0.3 * torch.randn(models, n, generator=generator, dtype=DTYPE)
    return TrainingData(torch.zeros(1, n, 2, dtype=DTYPE), y, s, None, "classification"), z, output


def value(penalty: Penalty, **kwargs: object) -> Tensor:
    data, z, output = sample()
    penalty = prepared(penalty, data, models=2, d=3)
    return penalty(batch_of(data, z, output, **kwargs), refresh=True)


ALL = {
    "frhsic": lambda **k: FRHSIC(**k),
    "frhsic biased": lambda **k: on_z(estimator="biased", scale=None, bandwidth=1.0, **k),
    "frhsic standardized": lambda **k: on_z(scale="standardize", **k),
    "frhsic output": lambda **k: on_z(on="output", **k),
    "frhsic minmax": lambda **k: on_z(scale="minmax", kernel="imq", **k),
    "frhsic both": lambda **k: on_z(on="both", **k),
    "frhsic multi-scale": lambda **k: on_z(
        kernel="multi_scale", kernel_s="multi_scale", on="both", **k
    ),
    "frhsic sum": lambda **k: on_z(attributes="sum", kernel_s="laplacian", **k),
    "frem": lambda **k: FREM(**k),
    "frem squared": lambda **k: FREM(power=2, anchors=None, scale="minmax", **k),
    "reg_gdp": lambda **k: RegGDP(**k),
    "reg_gdp training": lambda **k: RegGDP(grid_range="training", **k),
    "adv mse": lambda **k: ADV(adversary="mse", **k),
    "adv hgr": lambda **k: ADV(adversary="hgr", **k),
    "laftr": lambda **k: LAFTR(**k),
    "mmd": lambda **k: MMDBinned(**k),
    "mmd means": lambda **k: MMDBinned(discrepancy="means", bins=3, **k),
    "dcov": lambda **k: DCor(form="covariance", **k),
}
UNWEIGHTED = ALL | {
    "frhsic unbiased": lambda **k: on_z(estimator="unbiased", scale=None, **k),
    "dcor": lambda **k: DCor(**k),
}


# Against the library's statistics -----------------------------------------------------------------

Oracle = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
KERNELS = {
    "gaussian": Gaussian,
    "multi_scale": MultiScale,
    "laplacian": Laplacian,
    "imq": InverseMultiquadric,
}
LAM = 7.0


def loss(estimator: str, kernel_z: Kernel | None, kernel_s: Kernel | str | None) -> Oracle:
    """Return the loss for other loops, of Z."""
    found = HSICLoss(LAM, estimator=estimator, kernel_z=kernel_z, kernel_s=kernel_s)
    return lambda z, output, s, weights: found(z, s, sample_weight=weights)


def of_columns(estimator: str) -> Oracle:
    """Return the sum of the losses of the columns of S."""
    one = loss(estimator, Gaussian(1.3), None)
    return lambda z, output, s, weights: sum(
        (one(z, output, column, weights) for column in s.split(1, dim=-1)), start=z.new_zeros(())
    )


def on_output(estimator: str) -> Oracle:
    found = HSICLoss(LAM, estimator=estimator, kernel_z=Linear(), kernel_s=Gaussian(0.4))
    return lambda z, output, s, weights: found(output.unsqueeze(-1), s, sample_weight=weights)


def recommended(z: Tensor, output: Tensor, s: Tensor, weights: Tensor | None) -> Tensor:
    share = None if weights is None else (weights / weights.sum()).expand(len(z), -1)
    on_white = loss("biased", Gaussian(1.3), Gaussian(0.4))(whiten(z, share), output, s, weights)
    return on_white + on_output("biased")(z, output, s, weights)


def standardized(z: Tensor, output: Tensor, s: Tensor, weights: Tensor | None) -> Tensor:
    share = (
        torch.full((z.shape[1],), 1 / z.shape[1], dtype=z.dtype)
        if weights is None
        else weights / weights.sum()
    )
    centered = z - (share @ z).unsqueeze(1)
    scaled = centered / ((share @ centered**2).unsqueeze(1) + 1e-6).sqrt()
    return loss("biased", Gaussian(1.3), Gaussian(0.4))(scaled, output, s, weights)


def of_z(statistic: Callable[..., Tensor], *, times: float = 1.0, **options: object) -> Oracle:
    return lambda z, output, s, weights: times * LAM * statistic(z, s, **options)


def oracles() -> Iterator[tuple[str, Penalty, Oracle]]:
    """Yield every form of a penalty that is a statistic of the library, and λ times this statistic."""
    fixed = {"scale": None, "bandwidth": 1.3, "bandwidth_s": 0.4}
    for form in ("biased", "unbiased", "normalized"):
        build = partial(on_z, estimator=form, **fixed)
        for name, kernel in KERNELS.items():
            yield f"{form} {name} on Z", build(kernel=name), loss(form, kernel(1.3), Gaussian(0.4))
            yield (
                f"{form} {name} on S",
                build(kernel_s=name),
                loss(form, Gaussian(1.3), kernel(0.4)),
            )
        several = build(kernel="multi_scale", kernel_s="multi_scale")
        yield f"{form} multi_scale on both", several, loss(form, MultiScale(1.3), MultiScale(0.4))
        medians = on_z(estimator=form, scale=None, bandwidth=BandwidthPolicy(max_points=None))
        yield f"{form} medians", medians, loss(form, None, None)
        yield f"{form} output", build(on="output"), on_output(form)
        for kind in ("product", "sum") if form != "normalized" else ():
            together = on_z(estimator=form, scale=None, bandwidth=1.3, attributes=kind)
            yield (
                f"{form} {kind}",
                together,
                loss(form, Gaussian(1.3), kind) if kind == "product" else of_columns(form),
            )
    yield "recommended", FRHSIC(bandwidth=1.3, bandwidth_s=0.4), recommended
    summed = FRHSIC(bandwidth=1.3, bandwidth_s=0.4, attributes="sum")
    yield (
        "recommended sum",
        summed,
        lambda z, f, s, w: sum(recommended(z, f, c, w) for c in s.split(1, -1)),
    )
    yield (
        "biased standardized",
        on_z(estimator="biased", **fixed | {"scale": "standardize"}),
        standardized,
    )
    for power in (1, 2):
        for anchors in (None, 9):
            rows = None if anchors is None else torch.arange(anchors)
            options = {"kernel_z": Gaussian(1.0), "bandwidth": 0.5, "power": power, "anchors": rows}
            yield (
                f"frem {power} {anchors}",
                FREM(anchors=anchors, power=power),
                of_z(eipm, **options),
            )
    yield (
        "dcov",
        DCor(form="covariance"),
        of_z(hsic, kernel_z="distance", kernel_s="distance", times=4.0),
    )
    yield "dcor", DCor(), of_z(distance_correlation, squared=True, estimator="unbiased")


ORACLES = {name: (penalty, oracle) for name, penalty, oracle in oracles()}
IN_SINGLE = ("gaussian on Z", "multi_scale on both", "medians")  # values of at most one
WEIGHTED = ("biased", "normalized", "recommended")


@pytest.mark.parametrize("policy", [1e-3, "every_batch"])
def test_one_model_has_the_bandwidth_and_value_of_several(policy: float | str) -> None:
    data, z, _ = sample(n=300, models=1, p=1)
    data = data.to(dtype=torch.float32, device="cpu")
    found = []
    for models in (1, 2):
        penalty = prepared(
            FRHSIC(bandwidth=policy, bandwidth_s=0.4, on="representation"), data, models=models, d=3
        )
        here = z.float().expand(models, -1, -1).clone().requires_grad_()
        batch = batch_of(data, here, here.sum(-1))
        assert penalty._is_lone(batch) == (models == 1)
        penalty(batch, refresh=True)
        found.append([penalty(batch)[0].item(), penalty.sigma_z[0].item()])
    assert found[0] == pytest.approx(found[1], rel=1e-3)
    # Equal rows have a distance of the size of rounding: the general form takes it for zero.
    left, right = halves(np.ones((3, 300), dtype=np.float32))
    left[-1] += 1e-6
    penalty = prepared(FRHSIC(bandwidth="every_batch"), data, models=1, d=3)
    assert penalty.lone_sigma(left, right, refresh=True) == 0.0


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize(
    ("name", "dtype", "weighted"),
    [
        (name, dtype, weighted)
        for name in ORACLES
        for dtype in (torch.float64, torch.float32)
        for weighted in (False, True)
        if (dtype == torch.float64 or name.endswith(IN_SINGLE))
        and (not weighted or name.startswith(WEIGHTED))
    ],
)
def test_value_and_gradient_are_those_of_the_statistic(
    name: str, p: int, dtype: torch.dtype, weighted: bool
) -> None:
    """One value, one gradient and one meaning of λ in the trainer and in a loop of one's own."""
    lone = name.startswith("recommended") and (
        p == 1 or "sum" in name
    )  # one model, and several blocks of rows
    n, models = (300, 1) if lone else (60, 2)
    data, z, _ = sample(n=n, models=models, p=p)
    data = data.to(dtype=dtype, device="cpu")
    weights = torch.linspace(0.0, 2.0, n, dtype=dtype) if weighted else None
    penalty, oracle = ORACLES[name]
    prepared(penalty, data, models=models, d=3)
    here, there = (z.to(dtype).clone().requires_grad_() for _ in range(2))
    batch = batch_of(data, here, 2.0 * here.sum(-1), weights=weights)
    assert not isinstance(penalty, FRHSIC) or penalty._is_lone(batch) == (lone and not weighted)
    mine = LAM * penalty(batch, refresh=True)
    other = oracle(there, 2.0 * there.sum(-1), data.s.expand(models, -1, -1), weights)
    # Both are means of n² products of at most one, or of the size of the value for the linear
    # kernel on the output, added in another order: n additions in a row, at most four such sums. In
    # single precision there is no output, and sums of blocks leave a tenth of this.
    rounding = 4 * n * torch.finfo(dtype).eps
    close = {
        "rtol": rounding * (dtype == DTYPE),
        "atol": rounding * LAM * (1.0 if dtype == DTYPE else 0.1),
    }
    torch.testing.assert_close(mine, other, **close)
    (gradient,) = torch.autograd.grad(mine.sum(), here)
    (expected,) = torch.autograd.grad(other.sum(), there)
    assert expected.abs().max() > 1e-4
    torch.testing.assert_close(gradient, expected, **close)


@pytest.mark.parametrize("kernel", ["gaussian", "multi_scale"])
@pytest.mark.parametrize("outlier", [False, True])
def test_the_centered_gram_matrix_of_the_attribute(kernel: str, outlier: bool) -> None:
    """From features where the rank is small, and dense where it is not; each dataset has its own bandwidths."""
    s = torch.rand(2, 600, 2, generator=torch.Generator().manual_seed(0), dtype=DTYPE)
    s[1] *= 5.0
    s[0, 0] += 1000.0 * outlier
    penalty = FRHSIC(kernel_s=kernel, attributes="sum")
    data = TrainingData(s, s[..., 0].round(), s, None, "classification")
    penalty.setup(
        data, dataset=torch.tensor([1, 0]), generators=[torch.Generator()] * 2, representation=2
    )
    assert penalty._thin != outlier
    drawn = s.flip(0)[:, 5:25]
    rows = torch.arange(5, 25) + torch.tensor([[600], [0]])
    batch = Batch(drawn, drawn[..., 0], drawn, drawn[..., 0], None, rows)
    for a, (centered, _) in enumerate(penalty._attributes(batch, None)):
        for mine, part, width in zip(centered, drawn, penalty.sigma_s[:, a], strict=True):
            gram = KERNELS[kernel](float(width))(part[:, [a]])
            expected = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
            torch.testing.assert_close(mine, expected, rtol=0, atol=1e-12)


def test_the_term_on_the_output_has_a_weight() -> None:
    both = value(on_z(on="both", bandwidth_s=0.4))
    output = value(on_z(on="output", bandwidth_s=0.4))
    torch.testing.assert_close(both, output + value(on_z(bandwidth_s=0.4)))
    torch.testing.assert_close(
        value(on_z(on="both", bandwidth_s=0.4, output_weight=3.0)) - both, 2.0 * output
    )
    torch.testing.assert_close(
        value(on_z(on="both", bandwidth_s=0.4, output_weight=0.0)), both - output
    )


def test_the_default_is_the_recommended_form_of_the_search() -> None:
    """The class, the protocol and the candidate that the rule chose are one form."""
    from frhsic_core.paper.experiments.variants import CANDIDATES, RECOMMENDED

    chosen = next(candidate for candidate in CANDIDATES if candidate.name == RECOMMENDED)
    default = FRHSIC().settings()
    assert default == make_penalty("frhsic").settings()
    assert default == make_penalty("frhsic", **dict(chosen.settings)).settings()


# Properties of every form -------------------------------------------------------------------------


@pytest.mark.parametrize("name", UNWEIGHTED)
def test_gradient_is_the_derivative(name: str) -> None:
    """The written-out gradients against finite differences, with the bandwidth held."""
    data, z, output = sample(n=14, models=1)
    penalty = prepared(UNWEIGHTED[name](), data, models=1, d=3)
    penalty(batch_of(data, z, output), refresh=True)

    def function(z: Tensor, output: Tensor) -> Tensor:
        return penalty(batch_of(data, z, output))

    z, output = z.clone().requires_grad_(), output.clone().requires_grad_()
    assert torch.autograd.gradcheck(function, (z, output), eps=1e-6, atol=1e-7)


def with_fixed_bandwidth(name: str, **options: object) -> Penalty:
    """Return the penalty with σ_Z = 1: the median of a batch is that of all its rows, whatever their weights."""
    if name.startswith(("frhsic", "mmd")) and name != "frhsic biased":
        options["bandwidth"] = 1.0
    return UNWEIGHTED[name](**options)


@pytest.mark.parametrize("name", ALL)
def test_weights_are_repetitions(name: str) -> None:
    """Weight 2 is the row twice, weight 0 is no row.

    FREM leaves a row out of its own neighborhood but not its twin, so there the weights are zeros
    and ones.
    """
    data, z, output = sample(n=36)
    weights = torch.ones(36, dtype=DTYPE)
    weights[26:] = 0.0
    repeated = torch.arange(26)
    if not name.startswith("frem"):
        weights[:10] = 2.0
        repeated = torch.cat([torch.arange(10), repeated])
    penalty = prepared(with_fixed_bandwidth(name), data, models=2, d=3)
    weighted = penalty(batch_of(data, z, output, weights=weights), refresh=True)
    expected = penalty(batch_of(data, z, output, rows=repeated), refresh=True)
    torch.testing.assert_close(weighted, expected, rtol=1e-7, atol=1e-10)
    assert (weighted - penalty(batch_of(data, z, output), refresh=True)).abs().min() > 1e-5


@pytest.mark.parametrize(
    ("name", "weighted"), [*((name, False) for name in UNWEIGHTED), *((name, True) for name in ALL)]
)
def test_equal_opportunity_is_the_subset(name: str, weighted: bool) -> None:
    """condition="positives" equals the penalty of the rows with y = 1 alone; with too few of them it is zero."""
    data, z, output = sample(n=30)
    weights = torch.linspace(0.5, 2.0, 30, dtype=DTYPE) if weighted else None
    conditional = prepared(with_fixed_bandwidth(name, condition="positives"), data, models=2, d=3)
    plain = prepared(with_fixed_bandwidth(name), data, models=2, d=3)
    positives = data.y[0].nonzero().flatten()
    mine = conditional(batch_of(data, z, output, weights=weights), refresh=True)
    expected = plain(batch_of(data, z, output, rows=positives, weights=weights), refresh=True)
    torch.testing.assert_close(mine, expected, rtol=1e-8, atol=1e-11)
    none = TrainingData(data.x, torch.zeros_like(data.y), data.s, None, "classification")
    z = z.clone().requires_grad_()
    empty = conditional(batch_of(none, z, output, weights=weights), refresh=True)
    assert torch.equal(empty, torch.zeros_like(empty))
    if empty.requires_grad:
        gradient = torch.autograd.grad(empty.sum(), z, allow_unused=True)[0]
        assert gradient is None or torch.isfinite(gradient).all()


def test_anchors_are_those_of_the_first_rows_that_count() -> None:
    """FREM conditions at the first rows of the batch; of those, weights and condition choose and weight."""
    data, z, output = sample(n=30)
    positives = data.y[0].nonzero().flatten()
    anchors = int((positives < 12).sum())
    penalty = prepared(FREM(anchors=12, power=2, condition="positives"), data, models=2, d=3)
    expected = eipm(
        z[:, positives], data.s[:, positives].expand(2, -1, -1), kernel_z=Gaussian(1.0), bandwidth=0.5, power=2,
        anchors=torch.arange(anchors),
    )  # fmt: skip
    torch.testing.assert_close(penalty(batch_of(data, z, output), refresh=True), expected)


def test_few_positives_count_when_there_are_enough() -> None:
    """Four rows with y = 1 are enough by default and three are not; minimum_rows moves the limit."""
    data, z, output = sample(n=30)
    for count, minimum, counts in ((4, 4, True), (3, 4, False), (3, 3, True), (10, 11, False)):
        y = (torch.arange(30) < count).to(DTYPE).unsqueeze(0)
        few = TrainingData(data.x, y, data.s, None, "classification")
        for penalty in (
            on_z(minimum_rows=minimum, condition="positives"),
            ADV(minimum_rows=minimum, condition="positives"),
        ):
            found = prepared(penalty, few, models=2, d=3)(batch_of(few, z, output), refresh=True)
            assert bool((found != 0).all()) == counts


@pytest.mark.parametrize(
    "name", ["reg_gdp", "reg_gdp training", "laftr", "mmd", "mmd means", "frhsic sum"]
)
def test_several_attributes_are_added(name: str) -> None:
    """The penalty of two attributes is the sum of the penalties of each; LAFTR adds the heads of its adversary."""
    data, z, output = sample(p=2)
    penalty = prepared(with_fixed_bandwidth(name), data, models=2, d=3)
    together = penalty(batch_of(data, z, output), refresh=True)
    total = torch.zeros_like(together)
    for a in range(2):
        alone = TrainingData(data.x, data.y, data.s[..., a : a + 1], None, "classification")
        single = prepared(with_fixed_bandwidth(name), alone, models=2, d=3)
        if name == "laftr":
            head, own = single.reader.layers[-1], penalty.reader.layers[-1]
            for mine, parts in ((head.weight, own.weight), (head.bias, own.bias)):
                mine.data.copy_(parts.data[..., 4 * a : 4 * a + 4])
            for mine, theirs in zip(
                single.reader.layers[0].parameters(),
                penalty.reader.layers[0].parameters(),
                strict=True,
            ):
                mine.data.copy_(theirs.data)
        total = total + single(batch_of(alone, z, output), refresh=True)
    torch.testing.assert_close(together, total)


@pytest.mark.parametrize("name", ["mmd", "mmd means"])
def test_bins_count_rows_with_weight(name: str) -> None:
    """A bin with one row that counts is left out, however many rows without weight it has."""
    data, z, output = sample(n=40)
    penalty = prepared(with_fixed_bandwidth(name), data, models=2, d=3)
    weights = torch.ones(40, dtype=DTYPE)
    inside = (penalty.labels[:, 0] == 0).nonzero().flatten()
    weights[inside[1:]] = 0.0
    kept = weights.nonzero().flatten()
    weighted = penalty(batch_of(data, z, output, weights=weights), refresh=True)
    torch.testing.assert_close(
        weighted, penalty(batch_of(data, z, output, rows=kept), refresh=True)
    )


@pytest.mark.parametrize("scale", ["standardize", "whiten"])
def test_the_bandwidth_stays_when_too_few_rows_count(scale: str) -> None:
    """A batch with two positives does not change σ_Z of the model that it belongs to."""
    data, z, output = sample(n=30)
    penalty = prepared(
        on_z(scale=scale, bandwidth="every_batch", condition="positives"), data, models=2, d=3
    )
    penalty(batch_of(data, z, output), refresh=True)
    before = penalty.sigma_z.clone()
    batch = batch_of(data, 2 * z[:, :20], output[:, :20], rows=torch.arange(20))
    y = batch.y.clone()
    y[0] = (torch.arange(20) < 2).to(DTYPE)
    penalty(Batch(batch.z, batch.output, batch.s, y, None, batch.rows), refresh=True)
    assert penalty.sigma_z[0] == before[0]
    assert penalty.sigma_z[1] != before[1]


def test_rounding_is_not_dependence() -> None:
    """A Z that differs by less than its kernel resolves has no correlation, whatever its rows depend on."""
    data, _, output = sample(n=100)
    s = data.s.float()
    data = TrainingData(data.x.float(), data.y.float(), s, None, "classification")
    z = (5e-4 * (s > 0.5).float()).expand(2, -1, 3).contiguous()
    gram = Gaussian(1.0)(z)
    assert 0 < (gram.amax() - gram.amin()) < 1e-6
    penalty = prepared(on_z(scale=None, bandwidth=1.0), data, models=2, d=3)
    assert torch.equal(penalty(batch_of(data, z, output.float()), refresh=True), torch.zeros(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", UNWEIGHTED)
def test_gradients_are_never_nan(name: str, dtype: torch.dtype) -> None:
    """Repeated rows, a constant Z, a Z far away, two rows, one row."""
    generator = torch.Generator().manual_seed(4)
    s = torch.randint(20, 60, (1, 24, 1), generator=generator).to(dtype)
    y = (torch.rand(1, 24, generator=generator) < 0.5).to(dtype)
    data = TrainingData(torch.zeros(1, 24, 2, dtype=dtype), y, s, None, "classification")
    base = torch.randn(24, 3, generator=generator).to(dtype)
    cases = [
        base[torch.arange(24) // 4],
        torch.zeros_like(base),
        torch.ones_like(base) * 1e4,
        base * 1e4 + 1e5,
        base * 1e-6,
    ]
    penalty = prepared(UNWEIGHTED[name](), data, models=1, d=3)
    for rows in (torch.arange(24), torch.arange(2), torch.arange(1)):
        for z in cases:
            z = z.unsqueeze(0).clone().requires_grad_()
            output = z.sum(-1)
            result = penalty(batch_of(data, z, output, rows=rows), refresh=True)
            assert torch.isfinite(result).all(), (name, rows.shape, z[0, :2])
            gradient = torch.autograd.grad(result.sum(), z)[0]
            assert torch.isfinite(gradient).all(), (name, rows.shape, z[0, :2])


def test_attribute_bandwidths() -> None:
    """The text's over the training rows, the reference's over the first thousand plus 1e-5."""
    generator = torch.Generator().manual_seed(2)
    s = torch.rand(2, 1500, 1, generator=generator, dtype=DTYPE)
    data = TrainingData(
        torch.zeros(2, 1500, 1, dtype=DTYPE), torch.zeros(2, 1500), s, None, "regression"
    )
    for rule, expected in (
        ("median", median_bandwidth(s, max_points=1500)),
        ("first_1000", median_bandwidth(s[:, :1000]) + 1e-5),
        (0.7, torch.full((2,), 0.7, dtype=DTYPE)),
    ):
        penalty = on_z(bandwidth_s=rule)
        penalty.setup(data, dataset=torch.tensor([1, 0, 1]), generators=[], representation=3)
        torch.testing.assert_close(penalty.sigma_s[:, 0], expected[[1, 0, 1]])


def test_bins_agree_with_numpy() -> None:
    """Quantile and equal-width bins, with ties, as numpy cuts them."""
    s = torch.tensor([[20.0, 20, 20, 21, 35, 35, 50, 51, 52, 90]], dtype=DTYPE).unsqueeze(-1)
    values = s[0, :, 0].numpy()
    for bins in (2, 4, 5):
        edges = np.quantile(values, np.arange(1, bins) / bins)
        assert (
            bin_rows(s, bins=bins)[0, :, 0].tolist()
            == np.searchsorted(edges, values, side="left").tolist()
        )
        edges = np.linspace(20, 90, bins + 1)[1:-1]
        assert (
            bin_rows(s, bins=bins, edges="width")[0, :, 0].tolist()
            == np.searchsorted(edges, values).tolist()
        )


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: on_z(estimator="best"), "estimator is 'best'"),
        (lambda: on_z(on="z"), "on is 'z'"),
        (lambda: on_z(kernel="rbf"), "kernel is 'rbf'"),
        (lambda: on_z(scale="l2"), "scale is 'l2'"),
        (lambda: on_z(condition="y"), "condition is 'y'"),
        (lambda: DCor(condition="labels"), "condition is 'labels'"),
        (lambda: FRHSIC(categorical=[0]), "categorical needs"),
        (lambda: FRHSIC(estimator="unbiased", condition="controls"), "unbiased"),
        (lambda: value(FRHSIC(condition="controls")), "control_features"),
        (lambda: on_z(bandwidth="sometimes"), "bandwidth is 'sometimes'"),
        (lambda: on_z(bandwidth=0.0), r"bandwidth is 0\.0"),
        *(
            (partial(value, on_z(bandwidth_s=rule)), "bandwidth_s is")
            for rule in (0.0, -0.5, float("nan"))
        ),
        (lambda: FREM(power=3), "power is 3"),
        (lambda: FREM(anchors=0), "anchors is 0"),
        (lambda: FREM(smoothing=0.0), "smoothing is 0.0"),
        (lambda: RegGDP(grid_range="all"), "grid_range is 'all'"),
        (lambda: ADV(adversary="gan"), "adversary is 'gan'"),
        (lambda: MMDBinned(discrepancy="wasserstein"), "discrepancy is 'wasserstein'"),
        (lambda: DCor(form="signed"), "form is 'signed'"),
        (lambda: value(LAFTR(bins=1)), "bins is 1"),
        (lambda: value(MMDBinned(edges="even")), "edges is 'even'"),
        (lambda: value(on_z(bandwidth_s="mean")), "bandwidth_s is 'mean'"),
        (lambda: make_penalty("fair"), "method is 'fair'"),
        (lambda: make_penalty("frhsic", protocol="paper"), "protocol is 'paper'"),
        (lambda: make_penalty("dcor", power=2), r"no \['power'\]"),
    ],
)
def test_errors_name_what_was_given(make: object, text: str) -> None:
    """Every choice that does not exist is refused with what was given."""
    with pytest.raises(ValueError, match=text):
        make()
