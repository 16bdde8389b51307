"""Gradients of torch that the statistics write out themselves; imported where a tensor needs one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Recomputed(torch.autograd.Function):
    """A function whose values are computed again in the backward pass; see ``_arrays.recomputed``."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], *inputs: Tensor) -> Any:
        """Return the values of the function, and keep its inputs alone."""
        ctx.function = function
        ctx.save_for_backward(*inputs)
        return function(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the inputs, from values that are computed again."""
        needed = ctx.needs_input_grad[1:]
        inputs = [
            x.detach().requires_grad_(need)
            for x, need in zip(ctx.saved_tensors, needed, strict=True)
        ]
        with torch.enable_grad():
            # One number: gradients of several outputs import a computer algebra system when they
            # are asked for first.
            total = sum(
                (value * grad).sum()
                for value, grad in zip(ctx.function(*inputs), grads, strict=True)
            )
        found = iter(
            torch.autograd.grad(total, [x for x in inputs if x.requires_grad], allow_unused=True)
        )
        return None, *(next(found) if need else None for need in needed)


class KnownGradient(torch.autograd.Function):
    """Attach a gradient that is known already to a value."""

    @staticmethod
    def forward(at: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        """Return the value."""
        return value.clone()

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, ...], output: Tensor
    ) -> None:  # torch.func.grad needs it apart
        """Keep the gradient."""
        ctx.save_for_backward(inputs[2])
        ctx.shape = inputs[0].shape

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        """Return the known gradient times that of the value."""
        (gradient,) = ctx.saved_tensors
        factor = grad.view(*grad.shape, *[1] * (gradient.ndim - grad.ndim))
        return (factor * gradient).sum_to_size(ctx.shape), None, None


class Chebyshev(torch.autograd.Function):
    """The Chebyshev polynomials at numbers in [−1, 1], ``(...) -> (count, ...)``, with their derivatives."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, polynomials: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the polynomials at ``t``, one degree a row."""
        result = polynomials(t)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Return the gradient in ``t``, from the derivatives of the polynomials."""
        # T_k' = k U_(k−1), and U_k = 2 T_k + U_(k−2).
        second = ctx.saved_tensors[0].clone()
        second[1:] *= 2.0
        for degree in range(2, len(second)):
            second[degree] += second[degree - 2]
        degrees = torch.arange(1, len(second), dtype=grad.dtype, device=grad.device).unsqueeze(-1)
        return (degrees * second[:-1] * grad[1:]).sum(0), None
