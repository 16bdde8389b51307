"""Convert and check the input of every statistic: data in, tensors out; and keep its memory bounded.

Statistics take tensors, NumPy arrays or pandas objects. A representation ``z`` has shape ``(..., n,
d)``, a sensitive attribute ``s`` has shape ``(..., n, p)`` or ``(..., n)``; a one-dimensional ``z``
is ``(n, 1)``. Tensors in float32 and float64 keep their dtype and device (and their gradient). Half
precision (float16, bfloat16) becomes float32, and everything else becomes float64. A statistic is
computed in this dtype and returned in it.

Statistics that need whole n × n matrices ask here first whether they fit into memory.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from frhsic_core.backend import (
    Array,
    Draws,
    TorchDraws,
    as_words,
    finfo,
    gradient_wanted,
    is_tensor,
    is_torch,
    xp,
)
from frhsic_core.inputs.arrays import (
    ArrayLike,
    complex_numbers,
    is_plain,
    require_exact,
    sparse_tensor,
)
from frhsic_core.inputs.rows import RowLabelWarning as RowLabelWarning
from frhsic_core.inputs.rows import require_same_rows
from frhsic_core.inputs.rows import warn_caller as warn_caller

if TYPE_CHECKING:
    import torch
    from torch import Tensor

RandomState = Any  # None, a whole number, numpy.random.Generator or RandomState, or torch.Generator
# Above this many rows two dense float64 Gram matrices pass a quarter of a gigabyte: go block by
# block instead.
DENSE_ROWS = 4096
# Up to this many numbers (half a gigabyte in float64) nothing is asked: small calls stay as fast as
# they are.
_SMALL = 2**26
Function = TypeVar("Function", bound=Callable[..., Any])


def as_generator(random_state: RandomState) -> torch.Generator | None:
    """Return the torch generator that ``random_state`` stands for, and None for None.

    A whole number seeds a new generator. NumPy's generators give the seed of a new one by a draw,
    so that a second call with the same object continues its stream.

    Examples
    --------
    >>> import torch
    >>> torch.randint(100, (3,), generator=as_generator(0))
    tensor([44, 39, 33])
    """
    import torch

    if random_state is None or isinstance(random_state, torch.Generator):
        return random_state
    return torch.Generator().manual_seed(_seed_of(random_state))


def as_draws(random_state: RandomState, *, like: Any) -> Draws | TorchDraws:
    """Return the random numbers that ``random_state`` stands for, placed beside ``like``; None is zero."""
    if hasattr(random_state, "manual_seed"):  # a generator of torch
        return TorchDraws(random_state, like=like)
    seed = 0 if random_state is None else _seed_of(random_state)
    if is_torch(like):
        import torch

        device = like.device if random_state is None else "cpu"
        return TorchDraws(torch.Generator(device=device).manual_seed(seed), like=like)
    return Draws(seed)


def _seed_of(random_state: RandomState) -> int:
    """Return the seed that a whole number or a generator of NumPy stands for."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise TypeError(
        f"random_state is {random_state!r}: give a whole number (the result is then repeatable), a "
        "NumPy or torch generator, or None."
    )


def fix_signs(vectors: Tensor) -> Tensor:
    """Return the columns, each with the sign that makes the first of its largest entries positive.

    The sign of an eigenvector or a singular vector is the solver's choice and differs between
    processors. Entries whose sizes differ by less than a millionth count as equally large, so that
    rounding does not decide which one is first.

    Examples
    --------
    >>> import torch
    >>> fix_signs(torch.tensor([[-0.8, 0.6], [0.6, 0.8]]))
    tensor([[ 0.8000,  0.6000],
            [-0.6000,  0.8000]])
    """
    size = vectors.abs()
    first = (size >= (1.0 - 1e-6) * size.amax(-2, keepdim=True)).int().argmax(-2, keepdim=True)
    return xp.where(vectors.gather(-2, first) < 0, -vectors, vectors)


# What users of other packages type, and the answer.
_OTHER_WORDS = {
    "sensitive_features": "a statistic of samples is {0}(z, s). Metrics of predictions, such as "
    "frhsic_core.auditing.gdp_score(y_true, y_pred, sensitive_features=s), take this name.",
    "seed": "write random_state.",
    "generator": "write random_state.",
    "level": "write alpha.",
    "weights": "write sample_weight.",
    "sample_weight": "every row counts once.",
    "clusters": "rows count as independent draws. Keep one row of each cluster at random; hsic_test takes clusters.",
}


def same_kind(function: Function) -> Function:
    """Make a statistic return floats and NumPy arrays, unless one of its samples is a tensor.

    The samples are the positional arguments. Tensors without a batch dimension become floats, and
    those inside a dataclass are converted one by one.

    Examples
    --------
    >>> import torch
    >>> double = same_kind(lambda x: 2 * as_tensor(x).sum())
    >>> double([1, 2]), double(torch.ones(3))
    (6.0, tensor(6.))
    """
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def public(*args: Any, **options: Any) -> Any:
        for word in _OTHER_WORDS.keys() & options.keys() - known.keys():
            random = word in ("seed", "generator") and "random_state" not in known
            answer = (
                "nothing in it is random."
                if random
                else _OTHER_WORDS[word].format(function.__name__)
            )
            raise TypeError(f"{function.__name__} takes no {word}: {answer}")
        samples = [*args, *(options[name] for name in ("z", "s", "x") if name in options)]
        if any(is_tensor(sample) for sample in samples):
            return function(*args, **options)
        with np.errstate(all="ignore"):  # as torch does; what leaves the range is an error below
            return _plain(function(*args, **options))

    return cast(Function, public)


def _plain(result: Any) -> Any:
    if is_tensor(result):
        return result.item() if result.ndim == 0 else result.detach().cpu().numpy()
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        plain = {
            field.name: _plain(getattr(result, field.name)) for field in dataclasses.fields(result)
        }
        return dataclasses.replace(result, **plain)
    return result


def as_seed(random_state: RandomState) -> int:
    """Return the whole number that ``random_state`` stands for; a generator gives one by a draw.

    Examples
    --------
    >>> as_seed(7)
    7
    """
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return Draws(_seed_of(random_state)).below(2**31 - 1)
    if random_state is None and "torch" not in sys.modules:
        return int(np.random.default_rng().integers(2**31 - 1))
    import torch

    generator = as_generator(random_state)
    return int(
        torch.randint(2**31 - 1, (), generator=generator, device=getattr(generator, "device", None))
    )


def as_tensor(x: ArrayLike, *, name: str = "x") -> Tensor:
    """Convert ``x`` to a floating tensor without looking at its values.

    Tensors in float32 and float64 pass through untouched. Half precision becomes float32:
    distances, sums and p-values do not fit into its 8 or 11 bits. Everything else becomes float64,
    so that a test of independence does not lose digits to the type of its input; columns are read
    by :mod:`frhsic_core.inputs`. A missing value is NaN, which the statistics reject.

    Examples
    --------
    >>> as_tensor([1, 2]).dtype
    torch.float64
    """
    if is_torch(x):
        return _floating(x, name)
    import torch

    return torch.as_tensor(np.asarray(_as_words(x, name)))


def as_numbers(x: ArrayLike, *, name: str, torch: bool = False) -> Tensor:
    """Return a tensor as :func:`as_tensor` does, and anything else as an array of NumPy in float64.

    ``torch`` makes everything a tensor.
    """
    if is_torch(x):
        return _floating(x, name)
    if torch:
        return as_tensor(x, name=name)
    return cast("Tensor", _as_words(x, name))


def _as_words(x: ArrayLike, name: str) -> Array:
    """Read an array, a list, a column or a table as numbers in float64."""
    if isinstance(x, Array):
        return x.double()
    if is_plain(x):
        require_exact(x, name)
        return as_words(np.array(x, dtype=np.float64))
    from frhsic_core.inputs.columns import read_sample  # imports pandas, which few calls need

    return as_words(read_sample(x, name=name, words=False)[0])


def _floating(x: Tensor, name: str) -> Tensor:
    """Return a tensor in float32 if it is in half precision, and in float64 if it is not floating."""
    import torch

    if x.layout is not torch.strided:
        raise TypeError(sparse_tensor(name))
    if x.is_complex():
        raise TypeError(complex_numbers(name))
    if x.is_floating_point():
        return x.to(torch.promote_types(x.dtype, torch.float32))
    if x.dtype == torch.int64 and not x.is_cuda:
        require_exact(x.numpy(), name)
    return x.double()


def _require_finite(x: Tensor, name: str) -> None:
    """Raise an error for NaN, infinities and magnitudes whose sums or products leave the range of the dtype."""
    if x.numel() == 0:
        return
    # One pass and one wait for the device: NaN and infinities are passed on to the largest value.
    largest = float(xp.vector_norm(x.detach(), math.inf))
    if not math.isfinite(largest):
        bad = int((~xp.isfinite(x)).sum())
        raise ValueError(f"{name} has {bad} NaN or infinite values: drop those rows first.")
    limits = finfo(x)
    if largest > limits.max / (4 * x.shape[-1] * (x.shape[-2] if x.ndim > 1 else 1)):
        raise ValueError(
            f"{name} has values up to {largest:.1e}, too large for {x.dtype}: divide {name} by a constant first."
        )
    if 0 < largest < limits.tiny:
        raise ValueError(
            f"{name} has no value above {largest:.1e}, too small for {x.dtype}: multiply {name} by a constant first."
        )


def binary_scale(x: Tensor, *, dim: int | tuple[int, ...] = (-2, -1)) -> Tensor:
    """Return the largest power of two up to max |x| over ``dim``, which is kept with size one; one where x is zero.

    Squares leave the range of a dtype at half of its exponents. A statistic therefore divides by
    this number first. Powers of two are exact, so in the ordinary range every digit of the result
    stays the same. The result carries no gradient, and nothing waits for the device.

    Examples
    --------
    >>> import torch
    >>> binary_scale(torch.tensor([[3.0], [-5.0]])).item()
    4.0
    """
    largest = x.detach().abs().amax(dim, keepdim=True)
    mantissa, _ = xp.frexp(largest)
    return xp.where(largest > 0, largest / (2.0 * mantissa), xp.ones_like(largest))


def require_value(value: Tensor, name: str) -> Tensor:
    """Return ``value`` if it is finite; raise an error that names the statistic otherwise."""
    if not bool(xp.isfinite(value.detach()).all()):
        raise ValueError(
            f"{name} leaves the range of {value.dtype}: the values are too large. Divide them by a constant, or use "
            "kernels with bandwidths of their size, as the defaults have."
        )
    return value


def as_sample(
    x: ArrayLike,
    *,
    name: str = "z",
    min_rows: int = 1,
    check_finite: bool = True,
    torch: bool = False,
) -> Tensor:
    """Return ``x`` as a ``(..., n, d)`` tensor, or array, with at least ``min_rows`` rows and no NaN.

    Parameters
    ----------
    x : array_like
        Shape ``(n,)`` (read as ``(n, 1)``) or ``(..., n, d)``.
    name : str
        Name of the argument in error messages.
    min_rows : int
        Fewer rows than this are an error.
    check_finite : bool
        Whether to look for NaN, which reads every value and waits for a GPU; training loops switch it off.
    torch : bool
        Return a tensor whatever ``x`` is; otherwise only a tensor becomes one.
    """
    x = as_numbers(x, name=name, torch=torch)
    if x.ndim == 0:
        raise ValueError(
            f"{name} is a single number: pass one row per sample, shape (n, d) or (n,)."
        )
    if x.ndim == 1:
        x = x.unsqueeze(-1)
    if x.shape[-2] < min_rows:
        raise ValueError(f"{name} has {x.shape[-2]} rows: at least {min_rows} are needed.")
    if x.shape[-1] == 0:
        raise ValueError(f"{name} has no columns: at least one is needed.")
    if check_finite:
        _require_finite(x, name)
    return x


def spaced_rows(n: int, count: int, device: Any = None, *, like: Any = None) -> Tensor:
    """Return ``count`` evenly spaced rows of n, or all of them; the same on each device.

    They are a tensor if a device or a tensor ``like`` is given, and an array otherwise.
    """
    rows = as_words(_evenly_spaced(n - 1, min(n, count)).round().astype(np.int64))
    if device is None and not is_torch(like):
        return cast("Tensor", rows)
    import torch

    return torch.as_tensor(rows.numpy(), device=like.device if device is None else device)


def _evenly_spaced(last: int, count: int) -> np.ndarray:
    """Return numbers from 0 to ``last``, from both ends, so that they are symmetric to the last bit."""
    step = last / max(count - 1, 1)
    place = np.arange(count)
    return np.where(2 * place < count, step * place, last - step * (count - 1 - place))


def batch_shape(*tensors: Tensor, last: int = 2) -> tuple[int, ...]:
    """Return the common batch shape of tensors such as ``(..., n, d)``: all but their ``last`` dimensions.

    By NumPy: ``torch.broadcast_shapes`` imports a computer algebra system when it is called.
    """
    return np.broadcast_shapes(*(x.shape[: x.ndim - last] for x in tensors))


def as_pair(
    z: ArrayLike,
    s: ArrayLike,
    *,
    names: tuple[str, str] = ("z", "s"),
    min_rows: int = 1,
    check_finite: bool = True,
    torch: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return ``z`` as ``(..., n, d)`` and ``s`` as ``(..., n, p)`` with equal n, one dtype and one device.

    ``s`` may leave out its last dimension. Rows are matched by position; two pandas objects whose labels contradict
    that are an error (:func:`require_same_rows`). Both get the wider dtype of the two, so that no
    column loses digits to its partner. If only one of the two is a tensor, it decides the device.
    Two samples that are no tensors become arrays of NumPy, or, with ``torch``, tensors.

    Examples
    --------
    >>> z, s = as_pair([[1.0, 2.0], [3.0, 4.0]], [0, 1])
    >>> tuple(z.shape), tuple(s.shape)
    ((2, 2), (2, 1))
    """
    require_same_rows(z, s, names=names)
    z_is_tensor = is_torch(z)
    s_is_tensor = is_torch(s)
    torch = torch or z_is_tensor or s_is_tensor
    z = as_sample(z, name=names[0], min_rows=min_rows, check_finite=False, torch=torch)
    s = as_numbers(s, name=names[1], torch=torch)
    n = z.shape[-2]
    if s.ndim == z.ndim - 1 and s.shape[-1:] == (n,) and s.shape[:-1] == z.shape[:-2]:
        s = s.unsqueeze(-1)
    s = as_sample(s, name=names[1], min_rows=0, check_finite=False, torch=torch)
    if s.shape[-2] != n:
        raise ValueError(
            f"{names[1]} has {s.shape[-2]} rows but {names[0]} has {n}: both need one row per sample."
        )
    try:
        batch_shape(z, s)
    except ValueError:
        raise ValueError(
            f"{names[0]} has batch shape {tuple(z.shape[:-2])} and {names[1]} {tuple(s.shape[:-2])}: "
            "leading dimensions must be equal or broadcast."
        ) from None
    if z_is_tensor and s_is_tensor and z.device != s.device:
        raise ValueError(
            f"{names[0]} is on {z.device} and {names[1]} on {s.device}: move both to one device."
        )
    if torch:
        z, s = _alike(z, s, z.device if z_is_tensor else s.device)
    if check_finite:
        _require_finite(z, names[0])
        _require_finite(s, names[1])
    return z, s


def _alike(z: Tensor, s: Tensor, device: Any) -> tuple[Tensor, Tensor]:
    """Return two tensors on one device, in the wider dtype of both."""
    import torch

    wide = torch.promote_types(z.dtype, s.dtype)
    if device.type == "mps":  # Apple's GPUs have no float64
        wide = torch.float32
    return z.to(device=device, dtype=wide), s.to(device=device, dtype=wide)


def beside(x: ArrayLike, like: Tensor, *, name: str) -> Tensor:
    """Return numbers as a tensor on the device of ``like`` and in its dtype, or as an array if it is one."""
    if is_torch(like):
        return as_tensor(x, name=name).to(dtype=like.dtype, device=like.device)
    if is_torch(x):
        x = x.detach().cpu().double().numpy()
    return as_numbers(x, name=name)


def row_weights(
    z: Tensor, mask: ArrayLike | None, sample_weight: ArrayLike | None, *, check_finite: bool = True
) -> Tensor | None:
    """Join a mask and weights into q ``(..., n)``, which sums to one over the rows kept; ``None`` means uniform.

    A mask has booleans, or the numbers 0 and 1. A batch element whose mask keeps nothing is an
    error, or, with ``check_finite=False``, has q = 0 throughout, without waiting for the GPU.
    """
    if mask is None and sample_weight is None:
        return None
    n = z.shape[-2]
    weights = z.new_ones(())
    if sample_weight is not None:
        weights = beside(sample_weight, z, name="sample_weight")
        if weights.ndim == 0 or weights.shape[-1] != n:
            raise ValueError(
                f"sample_weight has shape {tuple(weights.shape)}: one weight for each row is needed."
            )
        if check_finite:
            _require_finite(weights, "sample_weight")
            if bool((weights < 0).any()):
                raise ValueError(
                    "sample_weight has negative values: weights must be zero or positive."
                )
    if mask is not None:
        kept = mask if is_torch(mask) and is_torch(z) else beside(mask, z, name="mask")
        # A mask of booleans is not looked at: a training step does not wait for its values.
        booleans = str(kept.dtype) == "torch.bool"
        if not booleans and not bool(((kept == 0) | (kept == 1)).all()):
            raise ValueError(
                "mask has values other than 0 and 1: pass booleans, True for the rows to keep."
            )
        if kept.ndim == 0 or kept.shape[-1] != n:
            raise ValueError(
                f"mask has shape {tuple(kept.shape)}: one value for each of the {n} rows is needed."
            )
        weights = weights * kept.to(z)
    total = weights.sum(-1, keepdim=True)
    if check_finite and bool((total == 0).any()):
        what = (
            "sample_weight sums to zero"
            if mask is None
            else "mask keeps no row with a positive weight"
        )
        raise ValueError(f"{what}: at least one is needed in every batch element.")
    return weights / xp.where(total > 0, total, xp.ones_like(total))


def read_mixed(s: ArrayLike, *, name: str = "s") -> tuple[ArrayLike, tuple[int, ...]]:
    """Return ``s`` with its categorical columns as codes, and the places of these columns.

    Words and categories are categorical. Tensors and arrays of numbers are returned as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> table, places = read_mixed(pd.DataFrame({"age": [30, 40], "sex": ["f", "m"]}))
    >>> table.to_numpy().tolist(), places
    ([[30.0, 0.0], [40.0, 1.0]], (1,))
    """
    if is_torch(s) or is_plain(s):
        return s, ()
    from frhsic_core.inputs.columns import read_sample  # imports pandas, which few calls need

    values, places = read_sample(s, name=name, words=True)
    if not hasattr(s, "iloc"):
        return values, places
    import pandas as pd

    return pd.DataFrame(values, index=s.index), places  # rows are matched with those of z


def recomputed(function: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return ``function(*inputs)``, a tuple of tensors that is computed again in the backward pass.

    Only the inputs are kept in memory. (The function of this kind in torch imports a compiler when
    it is called first.)

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> recomputed(lambda x: (x * x,), x)[0].backward()
    >>> x.grad
    tensor(6.)
    """
    if not gradient_wanted(*inputs):
        return function(*inputs)
    from frhsic_core.gradients import Recomputed

    return Recomputed.apply(function, *inputs)


def free_memory(device: torch.device) -> float:
    """Return the number of bytes that can still be allocated on ``device``; infinity where nothing is known."""
    if device.type == "cuda":
        import torch

        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(torch.cuda.mem_get_info(device)[0] + cached)
    found = [math.inf]
    # Each source may be missing: the system's own number, and the limit of a container.
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable"))
        found.append(float(available.split()[1]) * 1024)
    with suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        found.append(
            float((group / "memory.max").read_text())
            - float((group / "memory.current").read_text())
        )
    return max(0.0, min(found))


def fits_memory(like: Tensor, numbers: int) -> bool:
    """Return whether this many numbers of the dtype and device of ``like`` fit into memory."""
    return numbers <= _SMALL or numbers * like.element_size() <= free_memory(like.device)


def require_memory(
    like: Tensor, rows: int, *, width: int | None = None, batch: int = 1, copies: int, advice: str
) -> None:
    """Raise a MemoryError with advice if ``copies`` matrices ``(batch, rows, width)`` do not fit into memory.

    Parameters
    ----------
    like : Tensor
        Gives the dtype and the device of the matrices.
    rows : int
        Number of rows of the sample.
    width : int, optional
        Number of columns of each matrix; ``None`` stands for ``rows``.
    batch : int
        Number of batch elements.
    copies : int
        Number of matrices that are held at the same time.
    advice : str
        What to do instead, as a sentence.

    Examples
    --------
    >>> import torch
    >>> require_memory(torch.zeros(3), 10**9, copies=2, advice="Pass fewer rows.")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    MemoryError: 1,000,000,000 rows need ... GiB, but ... GiB are free: about ... rows fit. ...
    """
    numbers = copies * batch * rows * (rows if width is None else width)
    if fits_memory(like, numbers):
        return
    size = like.element_size()
    free = free_memory(like.device)
    fit = free / (size * copies * batch)
    most = int(math.sqrt(fit)) if width is None else int(fit / width)
    raise MemoryError(
        f"{rows:,} rows need {numbers * size / 2**30:,.0f} GiB, but {free / 2**30:,.1f} GiB are free: about {most:,} "
        f"rows fit. {advice}"
    )
