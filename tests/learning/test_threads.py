"""The number of CPU threads: one for small work, restored afterwards in every case."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from samples import classified

from frhsic_core.learning import FairClassifier, Trainer
from frhsic_core.learning.stack import ELEMENTS_PER_THREAD, _libraries, cpu_threads
from frhsic_core.learning.step import Step

OUTSIDE = 3
SAMPLE = tuple(part.numpy() for part in classified(0, 200, d=3))


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    """Set the number of threads as if this machine had three cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(OUTSIDE)
    yield
    torch.set_num_threads(before)


def trainer(**changes: Any) -> Trainer:
    return Trainer(
        *SAMPLE, **{"epochs": 2, "batch_size": 64, "widths": (8, 2), "device": "cpu", **changes}
    )


def watch(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of threads in every training step."""
    run = Step.__call__
    seen: list[int] = []

    def watched(step: Step, number: int, *, epoch: int) -> None:
        seen.append(torch.get_num_threads())
        run(step, number, epoch=epoch)

    monkeypatch.setattr(Step, "__call__", watched)
    return seen


@pytest.mark.parametrize(
    ("elements", "count"),
    [(0, 1), (ELEMENTS_PER_THREAD, 1), (2 * ELEMENTS_PER_THREAD, 2), (10**12, OUTSIDE)],
)
def test_the_number_grows_with_the_work_up_to_the_one_in_force(elements: int, count: int) -> None:
    def of_products() -> set[int]:
        return {
            one["num_threads"]
            for one in _libraries().info()
            if one.get("threading_layer") == "pthreads"
        }

    with _libraries().limit(limits=OUTSIDE, user_api="blas"):
        with cpu_threads(elements) as given:
            assert given == torch.get_num_threads() == count
            assert of_products() <= {count}
        assert of_products() <= {torch.get_num_threads()} == {OUTSIDE}


def test_training_uses_one_thread_for_small_work_and_more_for_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = watch(monkeypatch)
    trainer().fit()
    assert set(seen) == {1}
    assert torch.get_num_threads() == OUTSIDE
    seen.clear()
    monkeypatch.setattr("frhsic_core.learning.stack.ELEMENTS_PER_THREAD", 64 * 64)
    trainer(seeds=[0, 1], lam=1.0).fit()
    assert set(seen) == {2}


@pytest.mark.filterwarnings("ignore::frhsic_core.learning.FitWarning")
@pytest.mark.parametrize("lam", [0.5, "auto"])
def test_an_estimator_restores_the_number(
    lam: float | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watch(monkeypatch)
    x, y, s = SAMPLE
    model = FairClassifier(
        lam, epochs=2, device="cpu", random_state=0, selection={"n_permutations": 19}
    )
    model.fit(x, y, sensitive_features=s)
    assert set(seen) == {1}
    assert torch.get_num_threads() == OUTSIDE
    model.predict(x)
    assert torch.get_num_threads() == OUTSIDE


def test_nested_blocks_restore_each_their_own() -> None:
    with cpu_threads(2 * ELEMENTS_PER_THREAD):
        with cpu_threads(0):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with pytest.raises(ValueError, match="inside"), cpu_threads(0):
            raise ValueError("inside")
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == OUTSIDE


def test_fits_in_several_python_threads() -> None:
    """Overlapping blocks leave neither this thread nor a later one with a single CPU thread."""
    entered = threading.Barrier(2)
    after: list[int] = []

    def work(first: bool) -> None:
        if not first:
            entered.wait()  # the other one has set its number before this thread reads one
        with cpu_threads(0):
            if first:
                entered.wait()
            assert torch.get_num_threads() == 1
            if first:
                other.join()  # the first to enter is the last to leave
        after.append(torch.get_num_threads())

    other = threading.Thread(target=work, args=(False,))
    one = threading.Thread(target=work, args=(True,))
    other.start()
    one.start()
    one.join()
    later = threading.Thread(target=lambda: after.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert after == [OUTSIDE] * 3
    assert torch.get_num_threads() == OUTSIDE
