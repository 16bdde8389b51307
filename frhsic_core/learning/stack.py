"""A stack of models is one module: networks, trained stacks, settings and threads.

Weights have shape ``(models, in, out)`` and a forward pass is one batched matrix product for each
layer. A stack of 125 models therefore needs as few kernel launches as one model. A single model is
a stack of one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from numbers import Real
from typing import Any, cast

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor, nn
from torch.nn import functional as F

from frhsic_core._arrays import ArrayLike, as_tensor
from frhsic_core._choices import one_of
from frhsic_core.learning.rules import require_lambdas

CHUNK = 8192  # samples that are predicted at a time
# The course of a training, one row for each epoch and one column for each model, float64. `loss`
# (task loss), `penalty` (without λ) and `metric` (accuracy, or mean squared error) are means over
# the epoch's mini-batches. `ratio` = median(|z − z'|)/σ_Z and `bandwidth` = σ_Z are measured at the
# end of the epoch; they are NaN without a kernel on Z.
History = dict[str, Tensor]
COLUMNS = ("loss", "penalty", "ratio", "metric", "bandwidth")
ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], type[nn.Module]]] = {
    "selu": (F.selu, nn.SELU),
    "relu": (F.relu, nn.ReLU),
}


def seeded_generators(seeds: Sequence[int]) -> list[torch.Generator]:
    """Return one CPU generator for each seed, in the state after ``torch.manual_seed(seed)``."""
    return [torch.Generator().manual_seed(int(seed)) for seed in seeds]


class StackedLinear(nn.Module):
    """One affine map for each model, ``(models, n, in) -> (models, n, out)``.

    Examples
    --------
    >>> layer = StackedLinear(3, 4, 2)
    >>> layer.initialize(seeded_generators([0, 1, 2]))
    >>> tuple(layer(torch.zeros(3, 5, 4)).shape)
    (3, 5, 2)
    """

    def __init__(
        self, models: int, n_in: int, n_out: int, *, dtype: torch.dtype = torch.float32
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(models, n_in, n_out, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(models, 1, n_out, dtype=dtype))

    @torch.no_grad()
    def initialize(self, generators: Sequence[torch.Generator]) -> None:
        """Draw each model's weights from its generator, exactly as ``nn.Linear`` would."""
        models, n_in, n_out = self.weight.shape
        for i, generator in zip(range(models), generators, strict=True):
            weight = torch.empty(n_out, n_in, dtype=self.weight.dtype)
            nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
            bound = 1.0 / math.sqrt(n_in)
            bias = torch.empty(n_out, dtype=self.bias.dtype)
            bias.uniform_(-bound, bound, generator=generator)
            self.weight[i].copy_(weight.T)
            self.bias[i, 0].copy_(bias)

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)

    def lone(self, i: int) -> nn.Linear:
        """Return model ``i`` as a plain ``nn.Linear``."""
        _, n_in, n_out = self.weight.shape
        # On the device "meta" no weights are drawn, which would change PyTorch's global random
        # state.
        layer = nn.Linear(n_in, n_out, device="meta")
        weight = self.weight[i].T.detach()
        layer.weight = nn.Parameter(weight.clone(memory_format=torch.contiguous_format))
        layer.bias = nn.Parameter(self.bias[i, 0].detach().clone())
        return layer


class StackedMLP(nn.Module):
    """A stack of multilayer perceptrons with widths ``(in, ..., out)``.

    Parameters
    ----------
    models : int
        Number of models.
    widths : sequence of int
        Input width, hidden widths, output width.
    activation : {"selu", "relu"}
        Activation between the layers.
    activate_output : bool
        Whether the activation is also applied after the last layer.

    Examples
    --------
    >>> net = StackedMLP(2, (4, 50, 50))
    >>> net.initialize(seeded_generators([42, 43]))
    >>> _ = torch.manual_seed(42)
    >>> bool((nn.Linear(4, 50).weight.T == net.layers[0].weight[0]).all())
    True
    """

    def __init__(
        self,
        models: int,
        widths: Sequence[int],
        *,
        activation: str = "selu",
        activate_output: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        one_of("activation", activation, ACTIVATIONS)
        if len(widths) < 2 or min(widths) < 1:
            raise ValueError(
                f"widths is {tuple(widths)}: give at least an input and an output width, all "
                "positive."
            )
        self.widths = tuple(widths)
        self.activation = activation
        self.activate_output = activate_output
        self.layers = nn.ModuleList(
            StackedLinear(models, a, b, dtype=dtype) for a, b in pairwise(widths)
        )

    def initialize(self, generators: Sequence[torch.Generator]) -> None:
        """Draw each model's weights as PyTorch would, each from its own generator."""
        for layer in self.layers:
            cast(StackedLinear, layer).initialize(generators)

    def forward(self, x: Tensor) -> Tensor:
        function, _ = ACTIVATIONS[self.activation]
        last = len(self.layers) - 1
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i < last or self.activate_output:
                x = function(x)
        return x

    def lone(self, i: int) -> nn.Sequential:
        """Return model ``i`` as a plain ``nn.Sequential``."""
        _, activation = ACTIVATIONS[self.activation]
        last = len(self.layers) - 1
        modules: list[nn.Module] = []
        for j, layer in enumerate(self.layers):
            modules.append(cast(StackedLinear, layer).lone(i))
            if j < last or self.activate_output:
                modules.append(activation())
        return nn.Sequential(*modules)


class ModelStack(nn.Module):
    """The encoders h and linear heads f of a stack: ``z = h(x)`` and ``output = f(z)``.

    Parameters
    ----------
    models : int
        Number of models.
    n_features : int
        Number of columns of X.
    widths : sequence of int
        Width of each layer of the encoder. The last width is the dimension of Z.
    activation, activate_output
        As in :class:`StackedMLP`. The encoder of the paper's text ends in SELU, that of its code
        does not.
    """

    def __init__(
        self,
        models: int,
        n_features: int,
        *,
        widths: Sequence[int] = (50, 50),
        activation: str = "selu",
        activate_output: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.encoder = StackedMLP(
            models,
            (n_features, *widths),
            activation=activation,
            activate_output=activate_output,
            dtype=dtype,
        )
        self.head = StackedLinear(models, widths[-1], 1, dtype=dtype)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.encoder.widths[0]

    def initialize(self, seeds: Sequence[int]) -> list[torch.Generator]:
        """Initialize encoder and head, and return the generators for an adversary to continue."""
        generators = seeded_generators(seeds)
        self.encoder.initialize(generators)
        self.head.initialize(generators)
        return generators

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return Z ``(models, n, d)`` and the head's output ``(models, n)``, logits of classes."""
        z = self.encoder(x)
        return z, self.head(z).squeeze(-1)


@dataclass
class TrainedStack:
    """A stack of trained models that encodes and predicts.

    Parameters
    ----------
    model : ModelStack
        Encoders and heads.
    history : dict of Tensor
        ``loss``, ``penalty``, ``ratio``, ``metric`` and ``bandwidth`` of every epoch and model,
        ``(epochs, models)``.
    lam : Tensor
        λ of each model.
    seeds, dataset : tuple of int
        Seed and dataset of each model.
    task : {"classification", "regression"}
        The task of the training.
    penalty : nn.Module
        The penalty in its final state (bandwidths, adversary).
    """

    model: ModelStack
    history: History
    lam: Tensor
    seeds: tuple[int, ...]
    dataset: tuple[int, ...]
    task: str
    penalty: nn.Module = field(repr=False)

    @property
    def models(self) -> int:
        """Number of models."""
        return len(self.seeds)

    @torch.no_grad()
    def forward(self, x: ArrayLike) -> tuple[Tensor, Tensor]:
        """Return Z ``(models, n, d)`` and the head's output ``(models, n)`` on the models' device.

        ``x`` is ``(n, d)`` for every model, or ``(datasets, n, d)``; a model sees the dataset that
        it was trained on.
        """
        first = next(self.model.parameters())
        x = as_tensor(x, name="X").to(dtype=first.dtype, device=first.device)
        if x.ndim == 3:
            which = torch.tensor(self.dataset, device=first.device)
        else:
            x = x.unsqueeze(0)
            which = torch.zeros(self.models, dtype=torch.int64, device=first.device)
        if x.shape[-1] != self.model.n_features:
            raise ValueError(
                f"X has {x.shape[-1]} columns but the models were trained on "
                f"{self.model.n_features}: pass the same columns."
            )
        representations = []
        outputs = []
        largest = self.models * x.shape[1] * max(self.model.encoder.widths)
        with cpu_threads(largest):
            for block in x.split(CHUNK, dim=1):
                z, output = self.model(block[which])
                representations.append(z)
                outputs.append(output)
        return torch.cat(representations, dim=1), torch.cat(outputs, dim=1)

    def encode(self, x: ArrayLike) -> Tensor:
        """Return Z of every model, ``(models, n, d)``."""
        z, _ = self.forward(x)
        return z

    def output(self, x: ArrayLike) -> Tensor:
        """Return logits (classification) or predictions (regression), ``(models, n)``."""
        _, output = self.forward(x)
        return output

    def probabilities(self, x: ArrayLike) -> Tensor:
        """Return the probabilities of class 1, ``(models, n)``, for a classification."""
        if self.task != "classification":
            raise ValueError(
                "probabilities() exists for classification only: use output() for a regression."
            )
        return torch.sigmoid(self.output(x))

    def lone(self, i: int = 0) -> tuple[nn.Sequential, nn.Linear]:
        """Return encoder and head of model ``i`` as plain PyTorch modules."""
        return self.model.encoder.lone(i), self.model.head.lone(i)


def require_count(name: str, value: Any, *, alternative: str = "") -> None:
    """Raise ``ValueError`` unless the value is a positive whole number.

    ``alternative`` is shown in the message.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or value < 1 or value % 1 != 0:
        raise ValueError(f"{name} is {value!r}: it must be a positive whole number{alternative}.")


def stack_settings(
    lam: Any, seeds: Any, dataset: Any, *, datasets: int
) -> tuple[list[float], list[int], list[int]]:
    """Return λ, seed and dataset of each model; a single value is repeated for every model.

    Parameters
    ----------
    lam, seeds, dataset : number or sequence
        One value, or one for each model. ``dataset=None`` gives model i dataset i, or all models
        the only one.
    datasets : int
        Number of datasets.

    Examples
    --------
    >>> stack_settings([0.0, 1.0], 7, None, datasets=1)
    ([0.0, 1.0], [7, 7], [0, 0])
    """
    if dataset is None:
        dataset = 0 if datasets == 1 else range(datasets)
    settings = {"lam": _listed(lam), "seeds": _listed(seeds), "dataset": _listed(dataset)}
    models = max(len(values) for values in settings.values())
    for name, values in settings.items():
        if not values:
            raise ValueError(f"{name} is empty: at least one model is needed.")
        if len(values) not in (1, models):
            raise ValueError(
                f"{name} has {len(values)} values for {models} models: give one, or one for each "
                "model."
            )
    lams = require_lambdas(settings["lam"], given=lam)
    numbers = [int(seed) for seed in settings["seeds"]]
    which = [int(value) for value in settings["dataset"]]
    if any(not 0 <= index < datasets for index in which):
        raise ValueError(
            f"dataset contains {max(which, key=abs)}: there are {datasets} datasets, and the first "
            "one is number 0."
        )
    return _spread(lams, models), _spread(numbers, models), _spread(which, models)


def _listed(value: Any) -> list[Any]:
    """Return a list of the values of a sequence, an array or a tensor, or of one value."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    return [value]


def _spread(values: list[Any], models: int) -> list[Any]:
    """Return one value for each model; a single one is repeated."""
    if len(values) == 1:
        return values * models
    return values


# Threads ------------------------------------------------------------------------------------------

# On two cores that other programs used too, two threads were slower than one for every step with
# fewer than two million elements. On idle cores a second thread may pay earlier.
ELEMENTS_PER_THREAD = 1 << 20

_lock = threading.Lock()
_inside = threading.local()
_running = 0  # threads of this process that are inside of a block
_outside = 1  # the setting before the first of them entered
_limits: list[Any] = []  # of the threads of NumPy's products, while a block runs
_libraries = cache(ThreadpoolController)  # looking for them takes as long as a step


@contextmanager
def cpu_threads(elements: int) -> Iterator[int]:
    """Let torch use one CPU thread inside the block, or more if the work is large.

    Afterwards, torch has the number of threads that it had before.

    Torch divides every operation among its threads, and they wait for each other at its end. For
    the small tensors of a training step the waiting takes longer than the work, by far if another
    program uses one of the cores. Products of NumPy have no more threads than torch has in the
    first block that was entered and not left.

    The number never rises above the one in force, so ``torch.set_num_threads`` and
    ``OMP_NUM_THREADS`` are still upper limits. Blocks may be nested, may run in several Python
    threads at a time, and may be left by any exception.

    Parameters
    ----------
    elements : int
        Number of elements of the largest tensor that one operation of the block computes.

    Examples
    --------
    >>> before = torch.get_num_threads()
    >>> with cpu_threads(1000) as count:
    ...     count, torch.get_num_threads()
    (1, 1)
    >>> torch.get_num_threads() == before
    True
    """
    global _running, _outside
    before = torch.get_num_threads()
    depth = getattr(_inside, "depth", 0)
    with _lock:
        if _running == 0:
            _outside = before
        if depth == 0:
            # A new Python thread starts with the number that another one has set for its own block:
            # look past it.
            before = max(before, _outside)
        count = min(before, max(1, elements // ELEMENTS_PER_THREAD))
        if _running == 0:
            most = {}
            for library in _libraries().info():
                if library["user_api"] == "blas":
                    most[library["prefix"]] = min(count, library["num_threads"])
            _limits.append(_libraries().limit(limits=most))
        if depth == 0:
            _running += 1
    _inside.depth = depth + 1
    torch.set_num_threads(count)
    try:
        yield count
    finally:
        _inside.depth = depth
        with _lock:
            if depth == 0:
                _running -= 1
                if _running == 0:
                    _limits.pop().restore_original_limits()
            torch.set_num_threads(before)
