"""One training step of a stack: a mini-batch for each model, an adversary, encoder and head.

A step reads and writes tensors that live as long as the stack, and nothing else. On CUDA it can
therefore be captured in a graph once and replayed, which costs one launch instead of a few hundred.
"""

from __future__ import annotations

import gc
import inspect
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from frhsic_core.joint.contraction import GradientTerm
from frhsic_core.learning.data import Batch, TrainingData
from frhsic_core.learning.penalties import Penalty
from frhsic_core.learning.stack import ModelStack


class Adam(torch.optim.Adam):
    """Adam of torch, without the compiler.

    Torch would load its compiler for it, which takes longer than a small fit.
    """

    def __init__(self, weights: list[torch.nn.Parameter], rate: float) -> None:
        super().__init__(weights, lr=rate, fused=True, capturable=weights[0].is_cuda)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of weights."""
        inspect.unwrap(torch.optim.Adam.add_param_group)(self, param_group)

    step = torch.no_grad()(inspect.unwrap(torch.optim.Adam.step))


class Step:
    """The training step of a stack, with everything that it changes.

    The trainer calls :meth:`begin_epoch` and then ``step(number, epoch=...)`` for each mini-batch
    of the epoch.

    Parameters
    ----------
    data : TrainingData
        The datasets.
    model : ModelStack
        Initialized networks on the device of the data.
    penalty : Penalty
        A penalty that was set up for these data.
    lam, dataset : Tensor
        λ and index of the dataset of each model, ``(models,)``.
    batch_size : int
        Number of samples in a full mini-batch, at most n.
    learning_rate : float
        Learning rate of Adam.
    capture : bool
        Whether the step is captured in a CUDA graph.

    Attributes
    ----------
    optimizer, adversary_optimizer : Adam
        Optimizer of encoders and heads, and that of the adversaries (None without an adversary).
    sums : Tensor
        Task loss, penalty and metric of the current epoch, summed over its samples, ``(3,
        models)``.
    """

    def __init__(
        self,
        data: TrainingData,
        model: ModelStack,
        penalty: Penalty,
        *,
        lam: Tensor,
        dataset: Tensor,
        batch_size: int,
        learning_rate: float,
        capture: bool,
    ) -> None:
        self.data = data
        self.model = model
        self.penalty = penalty
        self.lam = lam
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.capture = capture
        self.device = lam.device
        # Adam works on each weight by itself, so one Adam over the stack equals one for each model.
        self.optimizer = Adam(list(model.parameters()), learning_rate)
        self.adversary_optimizer: Adam | None = None
        adversary = [weight for weight in penalty.parameters() if weight.requires_grad]
        if adversary:
            self.adversary_optimizer = Adam(adversary, learning_rate)
        # The datasets are stored one after another; a model's rows begin at `_first`.
        self._first = (dataset * data.n).unsqueeze(-1)
        self._x = data.x.flatten(0, 1)
        self._y = data.y.flatten(0, 1)
        self._s: Tensor | None = None
        if data.s is not None:
            self._s = data.s.flatten(0, 1)
        self._sample_weight: Tensor | None = None
        if data.sample_weight is not None:
            self._sample_weight = data.sample_weight.flatten(0, 1)
        # A captured step can read device memory only: the order of the epoch, and where in it the
        # mini-batch begins.
        self._order = torch.zeros(len(lam), data.n, dtype=torch.int64, device=self.device)
        self._start = torch.zeros((), dtype=torch.int64, device=self.device)
        self._n = data.n
        self._number = 0
        self._reported_sigma: Tensor | None = None
        # Of the penalty. An adversary waits for each of its steps anyway.
        self._stream: torch.cuda.Stream | None = None
        if self.device.type == "cuda" and not adversary:
            self._stream = torch.cuda.Stream(self.device)
        self.sums = torch.zeros(3, len(lam), dtype=data.x.dtype, device=self.device)
        self.recapture()

    @property
    def steps_per_epoch(self) -> int:
        """Number of mini-batches in an epoch, including a short last one."""
        return -(-self._n // self.batch_size)

    def length(self, number: int) -> int:
        """Return the number of samples in mini-batch ``number`` of an epoch."""
        return min(self.batch_size, self._n - number * self.batch_size)

    def begin_epoch(self, order: Tensor) -> None:
        """Set the order of the samples, ``(models, n)``, and start at the first mini-batch."""
        torch.add(order, self._first, out=self._order)
        self._start.zero_()
        self.sums.zero_()

    def __call__(self, number: int, *, epoch: int) -> None:
        """Train all models on mini-batch ``number``.

        The policy of the penalty decides whether σ_Z is renewed first.
        """
        policy = self.penalty.policy
        length = self.length(number)
        refresh = False
        self._number = number
        self._reported_sigma = None
        if policy is not None:
            refresh = policy.refreshes(epoch, number)
            is_short = length < self.batch_size
            if is_short and policy.refreshes(epoch + 1, 0):
                # The bandwidth of a short mini-batch is noisy and is replaced at the next step: do
                # not report it.
                self._reported_sigma = self.penalty.get_buffer("sigma_z").clone()
        self._run(length, refresh)

    def recapture(self) -> None:
        """Forget captured graphs, which is needed after the optimizer has got new tensors."""
        self._run: Callable[[int, bool], None] = self._step
        if self.capture:
            self._run = CapturedSteps(self._step, self.device)

    @property
    def capture_failed(self) -> bool:
        """Whether a capture was tried and failed, so that the step runs eagerly."""
        return isinstance(self._run, CapturedSteps) and self._run.failed

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the following steps, also of captured ones."""
        groups = list(self.optimizer.param_groups)
        if self.adversary_optimizer is not None:
            groups += self.adversary_optimizer.param_groups
        for group in groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            elif self.device.type == "cuda":
                # A captured step reads it from the device.
                group["lr"] = torch.tensor(rate, device=self.device)
                self.recapture()
            else:
                group["lr"] = rate

    def _step(self, length: int, refresh: bool) -> None:
        """Train on one mini-batch; nothing here waits for the device."""
        batch = self._batch(length)
        if self.adversary_optimizer is not None:
            loss = self.penalty.adversary_loss(batch.detach())
            _descend(loss.sum(), self.adversary_optimizer)
        values: list[Tensor] = []
        others: list[Tensor] = []
        with self._beside():
            for term in self.penalty.terms(batch, refresh=refresh):
                if not isinstance(term, GradientTerm):
                    others.append(term)
                elif term.at is batch.z or term.at is batch.output:
                    self._join(term, self._stream)
                    values.append(term.value)
                else:
                    others.append(term.differentiable())
        for known in self.penalty.output_terms(batch):
            self._join(known, None)
            values.append(known.value)
        task = self._task_loss(batch)
        total = task
        with torch.no_grad():
            metric = self._metric(batch)
        if others:
            self._wait()
        for value in others:
            total = torch.addcmul(total, self.lam, value)
            values.append(value.detach())
        # The models share no weights: the gradient of the sum over models is the gradient of each
        # model's own loss.
        _descend(total.sum(), self.optimizer)
        self._wait()
        with torch.no_grad():
            penalty = torch.zeros_like(task)
            if values:
                penalty = sum(values[1:], values[0])
            self.sums.add_(torch.stack([task, penalty, metric]), alpha=float(length))
            self._start.add_(length)

    def _join(self, term: GradientTerm, stream: torch.cuda.Stream | None) -> None:
        """Let λ times the gradient of a term be added to that of the task at the same place.

        The backward pass of the task brings its gradient there. That of the term is known, so it
        needs no graph; it may come from another stream than the task's.
        """
        # The hook must not refer to Z, which refers to its hooks: only the garbage collector would
        # free the graph.
        direction = term.direction
        scale = self.lam.view(-1, *[1] * (direction.ndim - 1))
        factor = 1.0
        if isinstance(term.coefficient, Tensor):
            scale = scale * term.coefficient
        else:
            factor = term.coefficient
        ready: torch.cuda.Event | None = None
        if stream is not None:
            ready = stream.record_event()

        def add(gradient: Tensor) -> Tensor:
            if ready is not None:
                torch.cuda.current_stream(direction.device).wait_event(ready)
            return torch.addcmul(gradient, direction, scale, value=factor)

        term.at.register_hook(add)

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """Let a GPU compute the block beside what follows it, until something waits for it."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._stream):
            yield

    def _wait(self) -> None:
        if self._stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self._stream)

    def _batch(self, length: int) -> Batch:
        if self.device.type == "cuda":
            columns = self._start + torch.arange(length, device=self.device)
            rows = self._order.index_select(1, columns)
        else:
            rows = self._order.narrow(1, self._number * self.batch_size, length)
        return self._batch_of(rows)

    def _batch_of(self, rows: Tensor) -> Batch:
        """Return the mini-batch of these rows of the flattened datasets, ``(models, m)``."""
        index = rows.reshape(-1)

        def take(values: Tensor) -> Tensor:
            return values.index_select(0, index).view(*rows.shape, *values.shape[1:])

        z, output = self.model(take(self._x))
        s = z.new_zeros(*rows.shape, 0)
        if self._s is not None:
            s = take(self._s)
        weights: Tensor | None = None
        if self._sample_weight is not None:
            weights = take(self._sample_weight)
        return Batch(z=z, output=output, s=s, y=take(self._y), weights=weights, rows=rows)

    def _task_loss(self, batch: Batch) -> Tensor:
        if self.data.task == "classification":
            each = F.binary_cross_entropy_with_logits(batch.output, batch.y, reduction="none")
        else:
            each = (batch.output - batch.y).square()
        return _mean(each, batch.weights)

    def _metric(self, batch: Batch) -> Tensor:
        if self.data.task == "classification":
            right = (batch.output > 0) == (batch.y > 0.5)
            return _mean(right.to(batch.output.dtype), batch.weights)
        return _mean((batch.output - batch.y).square(), batch.weights)

    @torch.no_grad()
    def ratio(self) -> Tensor | None:
        """Return median(|z − z'|)/σ_Z of each model over 256 samples; None without a kernel.

        It is NaN for a model with too few samples that count for the penalty.
        """
        rows = torch.linspace(0, self._n - 1, min(256, self._n), device=self.device).long()
        batch = self._batch_of(rows + self._first)
        weights, enough = self.penalty.row_weights(batch)
        ratio = self.penalty.ratio(batch.z, weights, sigma=self._reported_sigma)
        if ratio is None or enough is None:
            return ratio
        return ratio.masked_fill(~enough, torch.nan)


def _descend(loss: Tensor, optimizer: Adam) -> None:
    """Make one step along the gradient of ``loss``."""
    weights = optimizer.param_groups[0]["params"]
    gradients = torch.autograd.grad(loss, weights)
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.grad = gradient
    optimizer.step()


def _mean(values: Tensor, weights: Tensor | None) -> Tensor:
    if weights is None:
        return values.mean(-1)
    return (values * weights).sum(-1) / weights.sum(-1).clamp_min(1e-30)


# Capture ------------------------------------------------------------------------------------------


class CaptureWarning(UserWarning):
    """A step could not be captured; it runs eagerly, with the same result."""


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage now, and not inside the block.

    A trainer and its graphs refer to each other, so the garbage collector frees an old trainer. If
    that happened while another step is captured, freeing the old graph would break the capture.
    """
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class CapturedSteps:
    """Captures ``step(*key)`` in a CUDA graph once for each key and replays it.

    If a capture fails, the step runs eagerly from then on, and one warning is given. The step may
    read and write tensors that live as long as this object. It must not use host values or Python
    randomness, and must not wait for the device. The first call for a key is a real, eager step on
    a side stream: it creates the state that optimizer and libraries allocate on first use.
    """

    def __init__(self, step: Callable[..., None], device: torch.device) -> None:
        self._step = step
        self._device = device
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        self._seen: set[Hashable] = set()
        self.failed = False
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, *key: int | bool) -> None:
        if key in self._graphs:
            self._graphs[key].replay()
        elif self.failed or key not in self._seen:
            self._seen.add(key)
            self._run_on_side_stream(key)
        else:
            self._capture(key)

    def _run_on_side_stream(self, key: tuple[int | bool, ...]) -> None:
        stream = torch.cuda.Stream(self._device)
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            self._step(*key)
        torch.cuda.current_stream(self._device).wait_stream(stream)

    def _capture(self, key: tuple[int | bool, ...]) -> None:
        graph = torch.cuda.CUDAGraph()
        try:
            # A capture records the step without running it, so the replay below is this key's
            # second step.
            with _no_collection(), torch.cuda.graph(graph, pool=self._pool):
                self._step(*key)
        except RuntimeError as error:
            self.failed = True
            torch.cuda.synchronize(self._device)
            reason = str(error).splitlines()[0]
            warnings.warn(
                f"the training step could not be captured in a CUDA graph ({reason}). It runs "
                "eagerly, which gives the same result more slowly.",
                CaptureWarning,
                stacklevel=3,
            )
            self._run_on_side_stream(key)
            return
        self._graphs[key] = graph
        graph.replay()
