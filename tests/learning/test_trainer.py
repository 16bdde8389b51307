"""The training loop: what it records, how it stops and resumes, and which input is an error."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from samples import classified
from torch import Tensor

from frhsic_core.kernels import batch_median
from frhsic_core.learning import (
    FRHSIC,
    DCor,
    EscapeWarning,
    Progress,
    Trainer,
    TrainingData,
    Unfair,
    make_penalty,
)
from frhsic_core.learning.data import random_order
from frhsic_core.learning.trainer import TrainingSettings

N = 90


def trainer(*, epochs: int = 6, **changes: object) -> Trainer:
    described = {name: changes.pop(name) for name in ("task", "sample_weight") if name in changes}
    settings = {
        "penalty": "frhsic", "lam": [0.0, 3.0], "seeds": [5, 6], "batch_size": 32, "widths": (6, 4), "device": "cpu",
        "dtype": torch.float64,
    } | changes  # fmt: skip
    return Trainer(
        TrainingData.from_arrays(*classified(21, N, d=3), **described), epochs=epochs, **settings
    )


def assert_same(first: Trainer, second: Trainer) -> None:
    pairs = zip(
        [*first.model.parameters(), *first.penalty.parameters(), *first.penalty.buffers()],
        [*second.model.parameters(), *second.penalty.parameters(), *second.penalty.buffers()],
        strict=True,
    )
    assert all(torch.equal(a, b) for a, b in pairs)
    for name in ("loss", "penalty", "metric"):
        assert torch.equal(first.history[name], second.history[name])


@pytest.mark.parametrize("method", ["frhsic", "adv", "laftr", "unfair"])
def test_resume_equals_uninterrupted(method: str) -> None:
    """Stopped after two epochs and resumed: the same bits, history included."""
    whole = trainer(penalty=method)
    whole.fit()
    resumed = trainer(penalty=method)
    resumed.fit(callback=lambda progress: progress.epoch == 2)
    assert resumed.epoch == 2
    resumed.fit()
    assert resumed.epoch == 6
    assert_same(whole, resumed)


def test_history_and_callback() -> None:
    """One row per epoch, means over all rows; the callback sees time left, and may stop."""
    seen: list[Progress] = []
    fitted = trainer(epochs=4, penalty="frhsic", lam=[0.0, 3.0])
    result = fitted.fit(callback=seen.append)
    assert [p.epoch for p in seen] == [1, 2, 3, 4]
    assert seen[-1].seconds_left == 0.0
    assert "epoch 4/4" in str(seen[-1])
    for name in ("loss", "penalty", "ratio", "metric", "bandwidth"):
        assert result.history[name].shape == (4, 2)
        assert torch.isfinite(result.history[name]).all()
    assert (result.history["loss"][-1] < result.history["loss"][0]).all()
    assert (result.history["penalty"] > 0).all()
    assert torch.isnan(trainer(epochs=1, penalty="unfair").fit().history["ratio"]).all()


def test_the_time_left_counts_the_epochs_of_this_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that resumes at epoch 2 of 6 and takes a second for an epoch has three seconds left after it."""
    resumed = trainer()
    resumed.fit(callback=lambda progress: progress.epoch == 2)
    seconds = iter(range(10))
    monkeypatch.setattr(
        "frhsic_core.learning.trainer.time.perf_counter", lambda: float(next(seconds))
    )
    seen: list[Progress] = []
    resumed.fit(callback=seen.append)
    assert [(p.epoch, p.seconds, p.seconds_left) for p in seen] == [
        (3, 1, 3),
        (4, 2, 2),
        (5, 3, 1),
        (6, 4, 0),
    ]


def test_a_result_stays_as_it_was_returned() -> None:
    """The trainer goes on; the models and the history that it returned before do not."""
    x, _, _ = classified(21, N, d=3)
    going = trainer()
    result = going.fit(callback=lambda progress: progress.epoch == 1)
    before, penalty = result.output(x), copy.deepcopy(result.penalty.state_dict())
    going.fit()
    assert going.epoch == 6
    assert torch.equal(result.output(x), before)
    assert result.history["loss"].shape == (1, 2)
    assert all(
        torch.equal(value, penalty[name]) for name, value in result.penalty.state_dict().items()
    )


def test_the_ratio_is_that_of_the_rows_that_count() -> None:
    """Z is scaled by the rows with weight, as in a step: the others are far away and would shrink it."""
    x, y, s = classified(21, N, d=3)
    weights = torch.ones(N, dtype=torch.float64)
    weights[80:] = 0.0
    x[80:] *= 1000.0
    penalty = FRHSIC(scale="standardize", bandwidth=1.0)
    options = {"penalty": penalty, "epochs": 1, "batch_size": N, "widths": (6, 4), "device": "cpu"}
    data = TrainingData.from_arrays(x, y, s, sample_weight=weights)
    result = Trainer(data, learning_rate=1e-9, dtype=torch.float64, **options).fit()
    z = result.encode(x)[0]
    z = (z - z[:80].mean(0)) / (z[:80].var(0, correction=0) + 1e-6).sqrt()
    torch.testing.assert_close(
        result.history["ratio"], batch_median(z, None).reshape(1, 1), rtol=1e-5, atol=0
    )


def test_every_dataset_needs_variation() -> None:
    """One dataset of a stack with one class, a constant attribute or no weight is an error, whatever the others are."""
    x, y, s = (torch.stack([part, part]) for part in classified(21, N, d=3))
    weights = torch.ones(2, N)
    weights[1] = 0.0
    for given, text in (
        ((x, y * torch.tensor([[1.0], [0.0]]), s, None), "one class only"),
        ((x, y, s * torch.tensor([[1.0], [0.0]]), None), "s is constant"),
        ((x, y, s, weights), "positive for at least one"),
    ):
        with pytest.raises(ValueError, match=text):
            TrainingData.from_arrays(*given[:3], sample_weight=given[3])


@pytest.mark.parametrize(
    "weights", [None, torch.linspace(0.1, 2.0, N, dtype=torch.float64)], ids=["equal", "weighted"]
)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_history_is_that_of_all_rows(task: str, weights: Tensor | None) -> None:
    """Loss and metric of a mini-batch are weighted means, and the epoch averages its mini-batches by their length.

    The learning rate is (almost) zero, so that the model of the end is that of every mini-batch.
    """
    x, y, s = classified(21, N, d=3)
    target = y if task == "classification" else x[:, 1]
    options = {
        "seeds": 5,
        "batch_size": 40,
        "epochs": 1,
        "learning_rate": 1e-12,
        "dtype": x.dtype,
        "device": "cpu",
    }
    result = Trainer(
        TrainingData.from_arrays(x, target, s, task=task, sample_weight=weights), **options
    ).fit()
    output = result.output(x)[0]
    each = {"loss": (output - target) ** 2, "metric": (output - target) ** 2}
    if task == "classification":
        each["loss"] = torch.nn.functional.binary_cross_entropy_with_logits(
            output, target, reduction="none"
        )
        each["metric"] = ((output > 0) == (target > 0.5)).double()
    parts = random_order(torch.tensor([5]), epoch=0, n=N)[0].split(40)
    for name, values in each.items():
        means = [
            np.average(values[part], weights=None if weights is None else weights[part])
            for part in parts
        ]
        expected = np.average(means, weights=[len(part) for part in parts])
        assert result.history[name].item() == pytest.approx(expected, rel=1e-6)
    if task == "regression":
        with pytest.raises(ValueError, match="classification only"):
            result.probabilities(x)


def test_weights_of_zero_drop_rows_and_equal_weights_change_nothing() -> None:
    """Sample weights reach task loss and penalty."""
    plain = trainer(epochs=2)
    plain.fit()
    equal = trainer(epochs=2, sample_weight=torch.full((N,), 3.0))
    equal.fit()
    for a, b in zip(plain.model.parameters(), equal.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    x, y, s = classified(21, N, d=3)
    weights = torch.ones(N)
    weights[60:] = 0.0
    settings = {
        "batch_size": N,
        "widths": (6, 4),
        "epochs": 5,
        "device": "cpu",
        "dtype": torch.float64,
    }
    settings |= {"penalty": FRHSIC(bandwidth=1.0, bandwidth_s=0.3), "lam": 2.0, "seeds": 1}
    weighted = Trainer(TrainingData.from_arrays(x, y, s, sample_weight=weights), **settings).fit()
    subset = Trainer(x[:60], y[:60], s[:60], **settings).fit()
    for a, b in zip(weighted.model.parameters(), subset.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)
    for penalty in (FRHSIC(estimator="unbiased"), DCor()):
        with pytest.raises(ValueError, match="weights"):
            trainer(penalty=penalty, sample_weight=weights).fit()


def test_datasets_along_the_stack() -> None:
    """(datasets, n, d) input: model i sees dataset i, for training and for encoding."""
    x, y, s = classified(21, N, d=3)
    stack = Trainer(
        torch.stack([x, -x]), torch.stack([y, y]), torch.stack([s, s]), penalty="unfair", seeds=3, epochs=2,
        batch_size=32, device="cpu", dtype=torch.float64,
    ).fit()  # fmt: skip
    assert stack.dataset == (0, 1)
    torch.testing.assert_close(stack.encode(torch.stack([x, -x]))[1], stack.encode(-x)[1])
    encoder, head = stack.lone(1)
    torch.testing.assert_close(head(encoder(-x)).squeeze(-1), stack.output(-x)[1])
    torch.testing.assert_close(
        stack.probabilities(x)[1], torch.sigmoid(head(encoder(x)).squeeze(-1))
    )
    with pytest.raises(ValueError, match="2 columns but the models were trained on 3"):
        stack.encode(torch.zeros(4, 2))


def test_the_same_numbers_in_any_container_give_the_same_model() -> None:
    """Tensors, arrays, pandas objects, checked data; a part of checked data is that of the arrays; settings as one."""
    x, y, s = classified(21, N, d=3)
    options = {"lam": [0.0, 3.0], "seeds": 5, "epochs": 2, "batch_size": 32, "widths": (6, 4)}
    kind = {"device": "cpu", "dtype": torch.float64}
    data = TrainingData.from_arrays(x, y, s, dtype=torch.float64)
    expected = Trainer(x, y, s, **kind, **options).fit().encode(x)
    for given in (
        (x.numpy(), y.numpy().astype(int), s.numpy()),
        (pd.DataFrame(x.numpy()), pd.Series(y.numpy()), pd.Series(s.numpy())),
        (data,),
    ):
        assert torch.equal(Trainer(*given, **kind, **options).fit().encode(x), expected)
    part = Trainer(data.part(torch.arange(60)), **kind, **options).fit()
    assert torch.equal(
        part.encode(x), Trainer(x[:60], y[:60], s[:60], **kind, **options).fit().encode(x)
    )
    settings = TrainingSettings(epochs=9, batch_size=32, widths=(6, 4), **kind)
    one = Trainer(
        x, y, s, lam=[0.0, 3.0], seeds=5, settings=settings, epochs=2
    )  # the value beside them counts
    assert torch.equal(one.fit().encode(x), expected)
    for options, text in (
        ({}, "y is missing"),
        ({"epoch": 3}, "there is no setting epoch"),
        ({"task": "regression"}, "belong to the data"),
        ({"settings": {"epochs": 3}}, "settings is a dict"),
    ):
        with pytest.raises(TypeError, match=text):
            Trainer(x, **options)


def test_guard_warns_once_when_z_escapes() -> None:
    """A fixed bandwidth far from Z's scale is reported, once, with the epoch and the model; λ = 0 is left in peace."""
    penalty = FRHSIC(estimator="biased", scale=None, bandwidth=0.01)
    with pytest.warns(EscapeWarning, match="bandwidths") as record:
        trainer(penalty=penalty, epochs=3).fit()
    assert len(record) == 1
    assert "1 of 2 models (1)" in str(record[0].message)
    trainer(penalty=penalty, lam=0.0, epochs=1).fit()  # warnings are errors here


@pytest.mark.parametrize("scale", [None, "standardize", "whiten"])
@pytest.mark.parametrize("policy", ["every_batch", "moving_average"])
@pytest.mark.parametrize("condition", [None, "positives"])
def test_guard_is_silent_after_a_short_last_batch(
    scale: str | None, policy: str, condition: str | None
) -> None:
    """Two rows at the end of an epoch say nothing about Z; warnings are errors here. A fixed bandwidth still warns."""
    penalty = FRHSIC(scale=scale, bandwidth=policy, condition=condition)
    history = trainer(penalty=penalty, epochs=4, batch_size=44).fit().history
    assert (history["ratio"] > 0.5).all()
    assert (history["ratio"] < 2.0).all()
    with pytest.warns(EscapeWarning, match="bandwidths"):
        trainer(
            penalty=FRHSIC(scale=scale, bandwidth=0.01, condition=condition),
            epochs=1,
            batch_size=44,
        ).fit()


def test_ratio_where_too_few_rows_count() -> None:
    """With fewer positives than the penalty needs nothing is said: NaN, no warning."""
    x, y, s = classified(21, N, d=3)
    y = torch.zeros_like(y)
    y[:2] = 1.0
    penalty = FRHSIC(condition="positives")
    history = (
        Trainer(x, y, s, penalty=penalty, epochs=1, batch_size=32, widths=(6, 4), device="cpu")
        .fit()
        .history
    )
    assert torch.isnan(history["ratio"]).all()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"lam": -1.0}, "lam is -1.0"),
        ({"lam": float("nan")}, "lam is nan"),
        ({"lam": []}, "lam is empty"),
        ({"lam": [1.0, 2.0], "seeds": [1, 2, 3]}, "lam has 2 values for 3 models"),
        ({"dataset": [0, 3]}, "dataset contains 3"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"task": "ranking"}, "task is 'ranking'"),
        ({"activation": "tanh"}, "activation is 'tanh'"),
        ({"widths": (0, 3)}, "widths is"),
        ({"protocol": "ours"}, "protocol is 'ours'"),
        ({"capture": True}, "capture=True needs CUDA"),
        ({"sample_weight": -torch.ones(N)}, "zero or positive"),
        ({"sample_weight": torch.ones(N - 1)}, f"sample_weight has {N - 1} rows but X has {N}"),
        (
            {"task": "regression", "penalty": FRHSIC(condition="positives")},
            "needs a classification task",
        ),
    ],
)
def test_bad_settings(change: dict, text: str) -> None:
    """What was given, what is needed."""
    with pytest.raises(ValueError, match=text):
        trainer(**change)


@pytest.mark.parametrize(
    ("spoil", "error", "text"),
    [
        (lambda x, y, s: (x, y + 1, s), ValueError, "values other than 0 and 1"),
        (lambda x, y, s: (x, y, s[:-1]), ValueError, f"s has {N - 1} rows but X has {N}"),
        (lambda x, y, s: (x, y[:-1], s), ValueError, f"y has {N - 1} rows but X has {N}"),
        (lambda x, y, s: (x * torch.nan, y, s), ValueError, "X has 270 NaN"),
        (
            lambda x, y, s: (x, y, torch.where(s > 0.5, torch.inf, s)),
            ValueError,
            "s has .* NaN or infinite",
        ),
        (
            lambda x, y, s: (np.array([["a"] * 3] * N), y, s),
            ValueError,
            "'X_0' has words, such as 'a', where numbers are needed",
        ),
        (lambda x, y, s: (x, y, ["old"] * N), ValueError, "'s' has words"),
        (lambda x, y, s: (x, y, None), ValueError, "needs the sensitive attribute"),
        (lambda x, y, s: (x[0, 0], y, s), ValueError, "X has shape"),
        (lambda x, y, s: (x[:, :0], y, s), ValueError, "at least one row and one column"),
    ],
)
def test_bad_data(spoil: object, error: type, text: str) -> None:
    """NaN, text, constants and rows that do not match are refused before training."""
    with pytest.raises(error, match=text):
        Trainer(*spoil(*classified(21, N, d=3)), device="cpu")


def test_unfair_needs_no_attribute_and_penalties_are_copied() -> None:
    """penalty='unfair' trains without s; the same penalty object serves several trainers."""
    x, y, s = classified(21, N, d=3)
    Trainer(x, y, penalty=Unfair(), epochs=1, device="cpu").fit()
    penalty = make_penalty("adv")
    first = Trainer(x, y, s, penalty=penalty, epochs=1, seeds=[0, 1], device="cpu")
    second = Trainer(x, y, s, penalty=penalty, epochs=1, device="cpu")
    first.fit()
    second.fit()
    assert not list(penalty.parameters())


def test_the_learning_rate_falls_linearly() -> None:
    """Each epoch has its own rate, also after an interruption; the default does not decay."""
    rates: list[float] = []
    fitted = trainer(epochs=4, learning_rate=0.01, decay=True)

    def look(progress: object) -> bool:
        rates.append(fitted.step.optimizer.param_groups[0]["lr"])
        return len(rates) == 2

    fitted.fit(callback=look)
    fitted.fit(callback=look)
    assert rates == pytest.approx([0.01, 0.0075, 0.005, 0.0025])
    whole, plain = (
        trainer(epochs=4, learning_rate=0.01, decay=True),
        trainer(epochs=4, learning_rate=0.01),
    )
    whole.fit()
    plain.fit()
    assert_same(whole, fitted)
    assert plain.step.optimizer.param_groups[0]["lr"] == 0.01
