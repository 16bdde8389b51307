"""Checkpoints: they belong to their data and settings, damage is noticed, and Ctrl-C never costs the old one."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from frhsic_core.kernels import Gaussian, Laplacian
from frhsic_core.learning import FRHSIC, DCor, Trainer
from frhsic_core.learning.checkpoint import read_checkpoint, write_checkpoint
from frhsic_core.learning.data import TrainingData
from frhsic_core.learning.state_file import read_state, write_state

N = 40


def sample() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(21)
    s = torch.rand(2, N, generator=generator, dtype=torch.float64)
    x = torch.randn(2, N, 3, generator=generator, dtype=torch.float64)
    y = (x[..., 0] + s > 0.5).double()
    return {"x": x, "y": y, "s": s, "sample_weight": torch.ones(2, N, dtype=torch.float64)}


def make(data: dict[str, Tensor] | None = None, **changes: Any) -> Trainer:
    settings = {
        "penalty": FRHSIC(), "lam": [0.0, 3.0], "seeds": [5, 6], "batch_size": 16, "widths": (4, 2), "device": "cpu",
        "dtype": torch.float64, "epochs": 2,
    } | changes  # fmt: skip
    return Trainer(**(sample() if data is None else data), **settings)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint after two epochs, which no test changes."""
    path = tmp_path_factory.mktemp("checkpoint") / "run.pt"
    make().fit(checkpoint=path)
    return path


def state_of(trainer: Trainer) -> list[Tensor]:
    step = trainer.step
    moments = [value for state in step.optimizer.state.values() for value in state.values()]
    tensors = [*step.model.state_dict().values(), *step.penalty.state_dict().values(), *moments, step.sums]
    numbers = torch.tensor([trainer.epoch, trainer.batch, int(trainer.escaped)])
    return [tensor.clone() for tensor in (*tensors, *trainer.history.state_dict().values(), numbers)]


# Another training -----------------------------------------------------------------------------------------------------


def test_one_other_value_is_named(written: Path) -> None:
    """One changed number in the second dataset of x, y, s or the weights; nothing else is named."""
    for name in ("x", "y", "s", "sample_weight"):
        data = sample()
        data[name][1].flatten()[7] = 1.0 - data[name][1].flatten()[7]
        with pytest.raises(ValueError, match=f"another training: {name} is float64.*but was") as caught:
            make(data).fit(checkpoint=written)
        assert str(caught.value).count("but was") == 1
    data = sample()
    del data["sample_weight"]
    with pytest.raises(ValueError, match="sample_weight is None, but was"):
        make(data).fit(checkpoint=written)


def laplacian(sigma: Tensor) -> Laplacian:
    return Laplacian(sigma)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"lam": [0.0, 4.0]}, r"lam\[1\] is 4.0, but was 3.0"),
        ({"lam": [0.0, 3.0, 3.0], "seeds": 5, "dataset": [0, 1, 1]}, r"lam is \[0.0, 3.0, 3.0\], but was"),
        ({"seeds": [5, 7]}, r"seeds\[1\] is 7, but was 6"),
        ({"dataset": [0, 0]}, r"dataset\[1\] is 0, but was 1"),
        ({"batch_size": 20}, "batch_size is 20, but was 16"),
        ({"learning_rate": 2e-3}, "learning_rate is 0.002, but was 0.001"),
        ({"activation": "relu"}, "activation is relu, but was selu"),
        ({"protocol": "text", "penalty": FRHSIC()}, "activate_output is True, but was False"),
        ({"widths": (5, 2)}, r"widths\[1\] is 5, but was 4"),
        ({"task": "regression"}, "task is regression, but was classification"),
        ({"dtype": torch.float32}, "x is float32"),
        ({"penalty": FRHSIC(estimator="normalized")}, "penalty.estimator is 'normalized', but was 'biased'"),
        ({"penalty": FRHSIC(bandwidth=1.5)}, "penalty.policy is FixedBandwidth"),
        ({"penalty": FRHSIC(kernel=Gaussian)}, "penalty.kernel is frhsic_core.kernels.Gaussian, but was 'gaussian'"),
        ({"penalty": FRHSIC(kernel=laplacian)}, "penalty.kernel is .*laplacian, but was"),
        ({"penalty": DCor(form="covariance")}, "penalty is DCor, but was FRHSIC"),
    ],
)
def test_another_setting_is_named(written: Path, change: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make(**change).fit(checkpoint=written)


def test_more_epochs_are_no_other_training(written: Path) -> None:
    path = written.with_name("longer.pt")
    path.write_bytes(written.read_bytes())
    longer, whole = make(epochs=4), make(epochs=4)
    longer.fit(checkpoint=path)
    whole.fit()
    assert all(torch.equal(a, b) for a, b in zip(state_of(longer), state_of(whole), strict=True))


@pytest.mark.cuda
def test_the_fingerprint_on_cuda_is_that_of_the_cpu() -> None:
    here = TrainingData.from_arrays(**sample())
    assert here.to(dtype=torch.float32, device="cuda").fingerprint == here.fingerprint


# Damage ---------------------------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_noticed(written: Path, tmp_path: Path) -> None:
    trainer = make()
    read_checkpoint(written, trainer)
    expected = state_of(trainer)
    whole = written.read_bytes()
    path = tmp_path / "flipped.pt"
    for bit in torch.randperm(8 * len(whole), generator=torch.Generator().manual_seed(0))[:300].tolist():
        data = bytearray(whole)
        data[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"flipped.pt is (not a checkpoint|damaged|truncated)"):
            read_checkpoint(path, trainer)
        assert all(torch.equal(a, b) for a, b in zip(expected, state_of(trainer), strict=True)), bit


def test_each_damage_has_a_message(written: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    whole = written.read_bytes()
    for content, text in (
        (b"", "not a checkpoint"),
        (b"a,b\n1,2\n", "not a checkpoint"),
        (whole[: len(whole) // 2], "truncated"),
        (whole[:-1], "truncated"),
        (whole[:3000] + b"\0" * 64 + whole[3064:], "damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{text}.*delete it to start again"):
            make().fit(checkpoint=path)
    for state, text in (
        ({"model": torch.ones(2), "format": 1}, "format 1, but this version"),
        ({"code": Path}, r"not a checkpoint \(UnpicklingError\)"),
    ):
        write_state(path, state)
        with pytest.raises(ValueError, match=text):
            make().fit(checkpoint=path)


def test_a_missing_key_is_named(written: Path, tmp_path: Path) -> None:
    state = read_state(written, what="", advice="")
    del state["format"]
    assert len(state) == 10
    for name in state:
        write_state(tmp_path / "run.pt", {key: value for key, value in state.items() if key != name})
        with pytest.raises(ValueError, match=f"has no {name}:"):
            make().fit(checkpoint=tmp_path / "run.pt")


# Interrupted writes ---------------------------------------------------------------------------------------------------


class Failing:
    """A file whose first write stores a part and then fails; later writes succeed, as after Ctrl-C."""

    def __init__(self, file: Any, error: BaseException) -> None:
        self.file = file
        self.error = error
        self.failed = False

    def __enter__(self) -> Failing:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: Any) -> None:
        if self.failed:
            self.file.write(data)
            return
        self.failed = True
        self.file.write(bytes(data)[:100])
        raise self.error


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise error

    return function


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("No space left on device")])
@pytest.mark.parametrize("point", ["torch.save", "mkstemp", "write", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(
    point: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes out as it is, the old checkpoint stays, and nothing else is left in the folder."""
    path = tmp_path / "run.pt"
    trainer = make()
    trainer.fit(checkpoint=path)
    before = path.read_bytes()
    if point == "torch.save":
        monkeypatch.setattr(torch.serialization, "_save", raising(error))
    elif point == "write":
        fdopen = os.fdopen
        monkeypatch.setattr(os, "fdopen", lambda *args: Failing(fdopen(*args), error))
    else:
        monkeypatch.setattr(tempfile if point == "mkstemp" else os, point, raising(error))
    with pytest.raises(type(error)) as caught:
        write_checkpoint(path, trainer)
    assert caught.value is error
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.pt"]
    read_checkpoint(path, make())


@pytest.mark.parametrize("signals", [1, 2])
def test_ctrl_c_while_a_checkpoint_is_written(signals: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: the write is finished and the training stops. Twice: KeyboardInterrupt, and the old file stays."""
    path = tmp_path / "run.pt"
    make(epochs=1).fit(checkpoint=path)
    before = path.read_bytes()
    fsync = os.fsync

    def interrupted(handle: int) -> None:
        monkeypatch.setattr(os, "fsync", fsync)
        for _ in range(signals):
            os.kill(os.getpid(), signal.SIGINT)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", interrupted)
    trainer = make(epochs=4)
    if signals == 1:
        assert trainer.fit(checkpoint=path, checkpoint_every=1).interrupted
        assert trainer.epoch == 2
        assert path.read_bytes() != before
    else:
        with pytest.raises(KeyboardInterrupt):
            trainer.fit(checkpoint=path, checkpoint_every=1)
        assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.pt"]
    whole, resumed = make(epochs=4), make(epochs=4)
    whole.fit()
    resumed.fit(checkpoint=path)
    assert all(torch.equal(a, b) for a, b in zip(state_of(whole), state_of(resumed), strict=True))
