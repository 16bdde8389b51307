"""One code for NumPy and torch: NumPy arrays that answer to the words of torch which the statistics use.

The statistics are written once, in the words of torch, because their engines update matrices in place, run in batches
and on GPUs, and have gradients. With tensors they are computed by torch. With anything else they are computed by
NumPy in float64, and torch is not imported: :class:`Array` is a NumPy array with those methods of a tensor that the
statistics use, and ``xp`` stands for the functions of torch, or for those of this module.

Random numbers are those of torch's generator on the CPU, the Mersenne twister that NumPy has as well
(:class:`Draws`): a p-value does not depend on whether torch is installed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

CPU = SimpleNamespace(type="cpu", index=None)
_KINDS = {"bool": np.bool_, "long": np.int64, "double": np.float64}
_Axis = int | tuple[int, ...] | None


def is_torch(x: Any) -> TypeGuard[Tensor]:
    """Return whether something is a tensor of torch; who passes one has imported torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_tensor(x: Any) -> TypeGuard[Tensor]:
    """Return whether something is a tensor of torch, or an array with its words."""
    return isinstance(x, Array) or is_torch(x)


def as_words(x: Any) -> Array:
    """Return a number or an array as an array with the words of torch, without a copy."""
    return np.asarray(x).view(Array)


def gradient_wanted(*samples: Any) -> bool:
    """Return whether torch records a gradient in one of these samples."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    return any(sample.requires_grad for sample in samples)


class Array(np.ndarray):
    """A NumPy array with the methods of a tensor that the statistics use, with the meaning that torch gives them.

    Results of one number are arrays too. Nothing has a gradient.
    """

    requires_grad = False
    is_cuda = False
    is_meta = False
    is_leaf = True

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if isinstance(found, np.ndarray):
            return found
        return as_words(found)

    # Shapes and kinds

    @property
    def device(self) -> Any:
        """The processor."""
        return CPU

    @property
    def mT(self) -> Array:
        """The matrices transposed."""
        return self.swapaxes(-1, -2)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """Return the number of entries."""
        return self.size

    def element_size(self) -> int:
        """Return the bytes of an entry."""
        return self.itemsize

    def is_floating_point(self) -> bool:
        """Return whether these are floating-point numbers."""
        return self.dtype.kind == "f"

    def numpy(self) -> np.ndarray:
        """Return the plain array."""
        return np.asarray(self)

    def detach(self) -> Array:
        """Return the array itself: nothing has a gradient."""
        return self

    def cpu(self) -> Array:
        """Return the array itself."""
        return self

    def contiguous(self) -> Array:
        """Return the array with its rows side by side in memory."""
        return np.ascontiguousarray(np.asarray(self)).view(Array)

    def clone(self) -> Array:
        """Return a copy."""
        return self.copy()

    def to(self, kind: Any = None, *, dtype: Any = None, device: Any = None) -> Any:
        """Return the array in the kind of numbers of another array, or in one by name."""
        if isinstance(kind, np.ndarray):
            kind = kind.dtype
        wanted = dtype if dtype is not None else kind
        if wanted is None or wanted is CPU:
            return self
        return self.astype(_KINDS.get(wanted, wanted), copy=False)

    def double(self) -> Any:
        """Return the array in float64."""
        return self.astype(np.float64, copy=False)

    def long(self) -> Any:
        """Return the array as whole numbers."""
        return self.astype(np.int64, copy=False)

    def unsqueeze(self, dim: int) -> Array:
        """Insert a dimension of length one."""
        return np.expand_dims(np.asarray(self), dim).view(Array)

    def squeeze(self, dim: Any = None) -> Array:
        """Drop a dimension if its length is one."""
        if dim is not None and self.shape[dim] != 1:
            return self
        return np.squeeze(np.asarray(self), dim).view(Array)

    def expand(self, *given: Any) -> Array:
        """Repeat along dimensions of length one, without a copy; −1 keeps a length."""
        shape = _shape(given)
        missing = len(shape) - self.ndim
        own = (1,) * missing + self.shape
        wanted = tuple(b if a == -1 else a for a, b in zip(shape, own, strict=True))
        return np.broadcast_to(np.asarray(self), wanted).view(Array)

    def repeat(self, *times: int) -> Array:  # type: ignore[override]
        """Repeat the whole array along each dimension."""
        return np.tile(np.asarray(self), times).view(Array)

    def flatten(self, start: int = 0, end: int = -1) -> Any:  # type: ignore[override]
        """Merge the dimensions from ``start`` to ``end``."""
        if self.ndim == 0:
            return self.reshape(1)
        first, last = start % self.ndim, end % self.ndim
        merged = math.prod(self.shape[first : last + 1])
        return self.reshape(*self.shape[:first], merged, *self.shape[last + 1 :])

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Any:
        """Split a dimension into several; one of them may be -1, what the others leave.

        NumPy itself does not know what is left of an array without entries.
        """
        place = dim % self.ndim
        known = math.prod(size for size in sizes if size != -1)
        whole = [self.shape[place] // known if size == -1 else size for size in sizes]
        return self.reshape(*self.shape[:place], *whole, *self.shape[place + 1 :])

    def split(self, size: int, dim: int = 0) -> list[Array]:
        """Return parts of a given length along a dimension, the last one shorter."""
        length = self.shape[dim]
        starts = range(0, max(length, 1), size)
        moved = np.moveaxis(np.asarray(self), dim, 0)
        parts = [np.moveaxis(moved[start : start + size], 0, dim) for start in starts]
        return [part.view(Array) for part in parts]

    def chunk(self, count: int, dim: int = 0) -> list[Array]:
        """Return a number of parts of equal length."""
        return self.split(-(-self.shape[dim] // count), dim)

    def unbind(self) -> list[Array]:
        """Return the entries along the first dimension."""
        return [self[i] for i in range(len(self))]

    def flip(self, dim: int) -> Array:
        """Reverse a dimension."""
        return np.flip(np.asarray(self), dim).view(Array)

    def transpose(self, *dims: Any) -> Array:
        """Exchange two dimensions."""
        if len(dims) == 2 and self.ndim != 2:
            return self.swapaxes(*dims)
        return super().transpose(*dims)

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:  # type: ignore[override]
        """Return the diagonals of matrices."""
        return np.diagonal(np.asarray(self), offset, dim1, dim2).view(Array)

    # New arrays

    def new_zeros(self, *shape: Any) -> Array:
        """Return zeros."""
        return self.new_full(_shape(shape), 0.0)

    def new_ones(self, *shape: Any) -> Array:
        """Return ones."""
        return self.new_full(_shape(shape), 1.0)

    def new_empty(self, *shape: Any) -> Array:
        """Return numbers without a value."""
        return np.empty(_shape(shape), self.dtype).view(Array)

    def new_full(self, shape: Any, value: float) -> Array:
        """Return one number everywhere."""
        return np.full(_shape((shape,)), value, self.dtype).view(Array)

    def new_tensor(self, values: Any) -> Array:
        """Return these values."""
        return np.array(values, self.dtype).view(Array)

    # Sums and orders

    def sum(  # type: ignore[override]
        self, dim: _Axis = None, keepdim: bool = False, *, dtype: Any = None, **known: Any
    ) -> Array:
        """Return sums."""
        return _reduced(np.sum, self, dim, keepdim, known, dtype=_KINDS.get(dtype, dtype))

    def mean(self, dim: _Axis = None, keepdim: bool = False, **known: Any) -> Array:  # type: ignore[override]
        """Return means."""
        return _reduced(np.mean, self, dim, keepdim, known)

    def prod(self, dim: _Axis = None, keepdim: bool = False, **known: Any) -> Array:  # type: ignore[override]
        """Return products."""
        return _reduced(np.prod, self, dim, keepdim, known)

    def any(self, dim: _Axis = None, keepdim: bool = False, **known: Any) -> Array:  # type: ignore[override]
        """Return whether an entry is true."""
        return _reduced(np.any, self, dim, keepdim, known)

    def all(self, dim: _Axis = None, keepdim: bool = False, **known: Any) -> Array:  # type: ignore[override]
        """Return whether all entries are true."""
        return _reduced(np.all, self, dim, keepdim, known)

    def amax(self, dim: _Axis = None, keepdim: bool = False) -> Array:
        """Return the largest entries."""
        return _reduced(np.max, self, dim, keepdim, {})

    def amin(self, dim: _Axis = None, keepdim: bool = False) -> Array:
        """Return the smallest entries."""
        return _reduced(np.min, self, dim, keepdim, {})

    def aminmax(self) -> tuple[Array, Array]:
        """Return the smallest and the largest entry."""
        return self.amin(), self.amax()

    def std(self, dim: _Axis = None, *, correction: int = 1) -> Array:  # type: ignore[override]
        """Return standard deviations."""
        return _reduced(np.std, self, dim, False, {}, ddof=correction)

    def argmax(self, dim: int | None = None, keepdim: bool = False, **known: Any) -> Array:  # type: ignore[override]
        """Return the places of the largest entries."""
        return _reduced(np.argmax, self, dim, keepdim, known)

    def argmin(self, dim: int | None = None, **known: Any) -> Array:  # type: ignore[override]
        """Return the places of the smallest entries."""
        return _reduced(np.argmin, self, dim, False, known)

    def cumsum(self, dim: int) -> Array:  # type: ignore[override]
        """Return partial sums."""
        return np.cumsum(np.asarray(self), axis=dim).view(Array)

    def diff(self, *, dim: int = -1) -> Array:
        """Return differences of neighbors."""
        return np.diff(np.asarray(self), axis=dim).view(Array)

    def sort(self, dim: int = -1) -> Any:  # type: ignore[override]
        """Return the entries in order, and their places."""
        order = self.argsort(dim)
        values = np.take_along_axis(np.asarray(self), np.asarray(order), dim).view(Array)
        return _Ordered(values, order)

    def argsort(self, dim: int = -1, *, stable: bool = True) -> Array:  # type: ignore[override]
        """Return the places of the entries in order; equal ones keep theirs."""
        return np.argsort(np.asarray(self), axis=dim, kind="stable").view(Array)

    def topk(self, count: int) -> Any:
        """Return the largest entries of a column in order, and their places."""
        order = np.argsort(-np.asarray(self), kind="stable")[:count]
        return _Ordered(self[order], order.view(Array))

    def median(self, dim: int | None = None, *, keepdim: bool = False) -> Any:
        """Return the lower median, of all entries or along a dimension."""
        values = np.asarray(self)
        if dim is None:
            return as_words(_lower_median(values.reshape(1, -1), -1)[0])
        found = _lower_median(values, dim)
        if keepdim:
            found = np.expand_dims(found, dim)
        return _Ordered(as_words(found), None)

    def kthvalue(self, place: int, dim: int) -> Any:
        """Return the entry that has a place in the order along a dimension, counted from one."""
        ordered = np.partition(np.asarray(self), place - 1, axis=dim)
        return _Ordered(as_words(np.take(ordered, place - 1, axis=dim)), None)

    def unique(self) -> Array:
        """Return the different entries in order."""
        return np.unique(np.asarray(self)).view(Array)

    def nonzero(self) -> Any:
        """Return the places of the entries that are not zero, ``(count, dimensions)``."""
        return np.stack(np.asarray(self).nonzero(), axis=-1).view(Array)

    # Functions of each entry

    def square(self) -> Any:
        """Return squares."""
        return self * self

    def sqrt(self) -> Any:
        """Return roots."""
        return np.sqrt(self)

    def rsqrt(self) -> Any:
        """Return the reciprocals of roots."""
        return 1.0 / np.sqrt(self)

    def abs(self) -> Any:
        """Return sizes."""
        return np.abs(self)

    def abs_(self) -> Any:
        """Replace the entries by their sizes."""
        return np.abs(self, out=self)

    def neg_(self) -> Any:
        """Change the signs."""
        return np.negative(self, out=self)

    def exp(self) -> Any:
        """Return exponentials."""
        return np.exp(self)

    def log(self) -> Any:
        """Return logarithms."""
        return np.log(self)

    def exp2_(self) -> Any:
        """Replace the entries by powers of two."""
        return np.exp2(self, out=self)

    def exp_(self) -> Any:
        """Replace the entries by their exponentials."""
        return np.exp(self, out=self)

    def pow(self, exponent: float) -> Any:
        """Return powers."""
        return np.power(self, exponent)

    def reciprocal(self) -> Any:
        """Return reciprocals."""
        return 1.0 / self

    def clamp(self, low: float | None = None, high: float | None = None) -> Any:
        """Return the entries, not below ``low`` and not above ``high``."""
        return as_words(np.clip(np.asarray(self), low, high))

    def clamp_min(self, low: Any) -> Any:
        """Return the entries, not below ``low``."""
        return np.maximum(self, low)

    def clamp_max(self, high: Any) -> Any:
        """Return the entries, not above ``high``."""
        return np.minimum(self, high)

    def clamp_(self, low: float, high: float) -> Any:
        """Limit the entries in place."""
        np.maximum(self, low, out=self)
        return np.minimum(self, high, out=self)

    def clamp_min_(self, low: float) -> Any:
        """Limit the entries from below in place."""
        return np.maximum(self, low, out=self)

    def mul_(self, other: Any) -> Any:
        """Multiply in place."""
        self *= other
        return self

    def mul(self, other: Any) -> Any:
        """Multiply."""
        return self * other

    def add_(self, other: Any, *, alpha: float = 1.0) -> Any:
        """Add in place."""
        self += other if alpha == 1.0 else alpha * other
        return self

    def sub_(self, other: Any, *, alpha: float = 1.0) -> Any:
        """Subtract in place."""
        self -= other if alpha == 1.0 else alpha * other
        return self

    def masked_fill(self, mask: Any, value: float) -> Any:
        """Return the entries with ``value`` where the mask is true."""
        return as_words(np.where(np.asarray(mask), value, np.asarray(self)))

    # Indices

    def index_select(self, dim: int, index: Any) -> Any:
        """Return the entries at places along a dimension."""
        return np.take(np.asarray(self), np.asarray(index), axis=dim).view(Array)

    def gather(self, dim: int, index: Any) -> Any:
        """Return the entry at one place in each column."""
        return np.take_along_axis(np.asarray(self), np.asarray(index), dim).view(Array)

    def index_copy_(self, dim: int, index: Any, values: Any) -> Any:
        """Write values to places along the first dimension."""
        np.asarray(self)[np.asarray(index)] = values
        return self

    def index_add(self, dim: int, index: Any, values: Any) -> Any:
        """Return the entries with the values at the same place added, of one dimension."""
        more = np.bincount(np.asarray(index), np.asarray(values), minlength=len(self))
        return self + more

    def addmm_(self, left: Any, right: Any) -> Any:
        """Add a product of matrices in place."""
        self += left @ right
        return self


class _Ordered(tuple):
    """Values and their places, as torch returns them."""

    values: Array
    indices: Array

    def __new__(cls, values: Array, indices: Any) -> _Ordered:
        found = super().__new__(cls, (values, indices))
        found.values = values
        found.indices = indices
        return found


def _shape(given: Any) -> tuple[int, ...]:
    """Return a shape that was given as numbers or as a tuple."""
    if len(given) == 1 and isinstance(given[0], Iterable):
        return tuple(given[0])
    return tuple(given)


def _reduced(
    function: Any, x: Array, dim: _Axis, keepdim: bool, known: dict[str, Any], **options: Any
) -> Array:
    """Return a reduction; NumPy's own functions call the methods of an array with its words."""
    axis = known.pop("axis", dim)
    out = known.pop("out", None)
    keep = known.pop("keepdims", keepdim)
    options.update(known)
    found = function(np.asarray(x), axis=axis, keepdims=keep, **options)
    if out is not None:
        out[...] = found
    return as_words(found)


def _lower_median(values: np.ndarray, axis: int) -> np.ndarray:
    """Return the lower of the two middle values along an axis."""
    middle = (values.shape[axis] - 1) // 2
    return np.take(np.partition(values, middle, axis=axis), middle, axis=axis)


# The functions of torch ----------------------------------------------------------------------------------------------


class _Words:
    """What the statistics call as ``xp.name``, for arrays."""

    inf = math.inf

    @staticmethod
    def where(condition: Any, yes: Any, no: Any) -> Array:
        return as_words(np.where(np.asarray(condition), np.asarray(yes), np.asarray(no)))

    @staticmethod
    def stack(parts: Sequence[Any], dim: int = 0) -> Array:
        return np.stack([np.asarray(part) for part in parts], axis=dim).view(Array)

    @staticmethod
    def cat(parts: Sequence[Any], dim: int = 0) -> Array:
        return np.concatenate([np.asarray(part) for part in parts], axis=dim).view(Array)

    @staticmethod
    def zeros_like(x: Any) -> Array:
        return np.zeros(x.shape, x.dtype).view(Array)

    @staticmethod
    def ones_like(x: Any) -> Array:
        return np.ones(x.shape, x.dtype).view(Array)

    @staticmethod
    def empty_like(x: Any) -> Array:
        return np.empty(x.shape, x.dtype).view(Array)

    @staticmethod
    def full_like(x: Any, value: float, *, dtype: Any = None) -> Array:
        return np.full(x.shape, value, _KINDS.get(dtype, x.dtype)).view(Array)

    @staticmethod
    def add(x: Any, other: Any, *, alpha: float = 1.0) -> Array:
        return x + alpha * other

    @staticmethod
    def sub(x: Any, other: Any, *, alpha: float = 1.0) -> Array:
        return x - alpha * other

    @staticmethod
    def mul(x: Any, other: Any, *, out: Any = None) -> Array:
        return np.multiply(x, other, out=out)

    @staticmethod
    def maximum(x: Any, other: Any) -> Array:
        return np.maximum(x, other)

    @staticmethod
    def exp(x: Any) -> Array:
        return np.exp(x)

    @staticmethod
    def cos(x: Any) -> Array:
        return np.cos(x)

    @staticmethod
    def rsqrt(x: Any) -> Array:
        return 1.0 / np.sqrt(x)

    @staticmethod
    def isfinite(x: Any) -> Array:
        return np.isfinite(x)

    @staticmethod
    def frexp(x: Any) -> Any:
        return np.frexp(x)

    @staticmethod
    def outer(x: Any, y: Any) -> Array:
        return np.outer(x, y).view(Array)

    @staticmethod
    def diag(x: Any) -> Array:
        return np.diag(np.asarray(x)).view(Array)

    @staticmethod
    def tensordot(x: Any, y: Any, count: int) -> Array:
        return np.tensordot(np.asarray(x), np.asarray(y), count).view(Array)

    @staticmethod
    def argsort(x: Any, *, stable: bool = True) -> Array:
        return x.argsort(stable=stable)

    @staticmethod
    def bincount(x: Any) -> Array:
        return np.bincount(np.asarray(x)).view(Array)

    @staticmethod
    def unique(x: Any, **options: Any) -> Any:
        found = np.unique(np.asarray(x), **options)
        if not isinstance(found, tuple):
            return found.view(Array)
        return tuple(part.view(Array) for part in found)

    @staticmethod
    def softmax(x: Any, dim: int) -> Array:
        raised = np.exp(x - x.amax(dim, keepdim=True))
        return raised / raised.sum(dim, keepdim=True)

    @staticmethod
    def logsumexp(x: Any, dim: int) -> Array:
        largest = x.amax(dim, keepdim=True)
        return np.log(np.exp(x - largest).sum(dim)) + largest.squeeze(dim)

    @staticmethod
    def vector_norm(x: Any, order: Any = 2, *, dim: Any = None) -> Array:
        return as_words(
            np.linalg.norm(np.asarray(x).ravel() if dim is None else np.asarray(x), order, dim)
        )

    @staticmethod
    def eigh(x: Any) -> tuple[Array, Array]:
        values, vectors = np.linalg.eigh(np.asarray(x))
        return values.view(Array), vectors.view(Array)

    @staticmethod
    def svd(x: Any) -> tuple[Array, Array, Array]:
        left, values, right = np.linalg.svd(np.asarray(x), full_matrices=False)
        return left.view(Array), values.view(Array), right.view(Array)

    @staticmethod
    def triangle(x: Any) -> Array:
        triangle: Any = np.linalg.qr(np.asarray(x), mode="r")
        return triangle.view(Array)

    @staticmethod
    def inv(x: Any) -> Array:
        return np.linalg.inv(np.asarray(x)).view(Array)

    @staticmethod
    def cholesky(x: Any) -> Array:
        return np.linalg.cholesky(np.asarray(x)).view(Array)

    @staticmethod
    def cholesky_solve(matrix: Any, values: Any) -> Array:
        return np.linalg.solve(np.asarray(matrix), np.asarray(values)).view(Array)

    @staticmethod
    def solve_triangular(matrix: Any, values: Any, *, upper: bool) -> Array:
        from scipy.linalg import solve_triangular

        return solve_triangular(np.asarray(matrix), np.asarray(values), lower=not upper).view(Array)

    @staticmethod
    def distances(x: Any, y: Any, power: float = 2.0) -> Array:
        from scipy.spatial.distance import cdist

        kind = "cityblock" if power == 1.0 else "euclidean"
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        left = x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:])
        right = y.expand(*batch, *y.shape[-2:]).reshape(-1, *y.shape[-2:])
        parts = [
            cdist(a, b, kind) for a, b in zip(np.asarray(left), np.asarray(right), strict=True)
        ]
        return np.stack(parts).reshape(*batch, x.shape[-2], y.shape[-2]).view(Array)

    @staticmethod
    def pair_distances(x: Any, power: float) -> Array:
        from scipy.spatial.distance import pdist

        return pdist(np.asarray(x), "cityblock" if power == 1.0 else "euclidean").view(Array)

    @staticmethod
    def sum_of_rows(table: Any, places: Any) -> Array:
        return np.asarray(table)[np.asarray(places)].sum(1).view(Array)

    # With ``like``, whose backend and device they take

    @staticmethod
    def arange(*ends: float, like: Any) -> Array:
        return np.arange(*ends).view(Array)

    @staticmethod
    def eye(n: int, *, like: Any) -> Array:
        return np.eye(n).view(Array)

    @staticmethod
    def own_entries(n: int, *, like: Any) -> Array:
        return np.eye(n, dtype=np.bool_).view(Array)

    @staticmethod
    def linspace(low: float, high: float, count: int, *, like: Any, dtype: Any = None) -> Array:
        return np.linspace(low, high, count).view(Array)

    @staticmethod
    def triu_indices(n: int, *, like: Any) -> Any:
        return tuple(part.view(Array) for part in np.triu_indices(n))

    @staticmethod
    def as_tensor(values: Any, *, like: Any) -> Array:
        return as_words(values)


class _TorchWords:
    """The same names for tensors: those of torch, and a few that it has under another name or without ``like``."""

    def __getattr__(self, name: str) -> Any:
        import torch

        found = getattr(torch, name)
        setattr(self, name, found)
        return found

    @staticmethod
    def vector_norm(x: Any, order: Any = 2, *, dim: Any = None) -> Tensor:
        import torch

        return torch.linalg.vector_norm(x, order, dim=dim)

    @staticmethod
    def eigh(x: Any) -> Any:
        import torch

        return torch.linalg.eigh(x)

    @staticmethod
    def svd(x: Any) -> Any:
        import torch

        return torch.linalg.svd(x, full_matrices=False)

    @staticmethod
    def triangle(x: Any) -> Tensor:
        import torch

        return torch.linalg.qr(x)[1]

    @staticmethod
    def inv(x: Any) -> Tensor:
        import torch

        return torch.linalg.inv(x)

    @staticmethod
    def cholesky(x: Any) -> Tensor:
        import torch

        return torch.linalg.cholesky_ex(x)[0]

    @staticmethod
    def cholesky_solve(matrix: Any, values: Any) -> Tensor:
        import torch

        return torch.cholesky_solve(values, torch.linalg.cholesky_ex(matrix)[0])

    @staticmethod
    def solve_triangular(matrix: Any, values: Any, *, upper: bool) -> Tensor:
        import torch

        return torch.linalg.solve_triangular(matrix, values, upper=upper)

    @staticmethod
    def distances(x: Any, y: Any, power: float = 2.0) -> Tensor:
        import torch

        if power == 1.0:
            return torch.cdist(x, y, p=1.0)
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")

    @staticmethod
    def pair_distances(x: Any, power: float) -> Tensor:
        import torch

        return torch.pdist(x, p=power)

    @staticmethod
    def sum_of_rows(table: Any, places: Any) -> Tensor:
        from torch.nn.functional import embedding_bag

        return embedding_bag(places, table, mode="sum")

    @staticmethod
    def arange(*ends: float, like: Any) -> Tensor:
        import torch

        return torch.arange(*ends, device=like.device)

    @staticmethod
    def eye(n: int, *, like: Any) -> Tensor:
        import torch

        return torch.eye(n, dtype=like.dtype, device=like.device)

    @staticmethod
    def own_entries(n: int, *, like: Any) -> Tensor:
        import torch

        return torch.eye(n, dtype=torch.bool, device=like.device)

    @staticmethod
    def linspace(low: float, high: float, count: int, *, like: Any, dtype: Any = None) -> Tensor:
        import torch

        return torch.linspace(low, high, count, dtype=dtype or torch.float64, device=like.device)

    @staticmethod
    def triu_indices(n: int, *, like: Any) -> Any:
        import torch

        return torch.triu_indices(n, n, device=like.device)

    @staticmethod
    def as_tensor(values: Any, *, like: Any) -> Tensor:
        import torch

        return torch.as_tensor(values, device=like.device)


class _Either:
    """The functions of torch by name; the arguments decide whether torch or NumPy computes."""

    def __init__(self) -> None:
        self._arrays = _Words()
        self._tensors = _TorchWords()

    def __getattr__(self, name: str) -> Any:
        def function(*given: Any, **options: Any) -> Any:
            words = self._tensors if _needs_torch(given, options) else self._arrays
            return getattr(words, name)(*given, **options)

        setattr(self, name, function)
        return function


def _needs_torch(given: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether an argument is a tensor of torch, or a list whose first entry is one."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    for value in (*given, options.get("like")):
        if isinstance(value, list | tuple) and value:
            value = value[0]
        if isinstance(value, torch.Tensor):
            return True
    return False


xp: Any = _Either()


def finfo(x: Any) -> Any:
    """Return the limits of the floating-point numbers of an array or a tensor: ``eps``, ``tiny`` and ``max``."""
    if is_torch(x):
        return sys.modules["torch"].finfo(x.dtype)
    return np.finfo(x.dtype)


# Random numbers ------------------------------------------------------------------------------------------------------


class Draws:
    """The random numbers of torch's generator on the CPU, drawn by NumPy from the same Mersenne twister.

    Examples
    --------
    >>> import torch
    >>> mine, other = Draws(7), torch.Generator().manual_seed(7)
    >>> mine.permutation(5).tolist() == torch.randperm(5, generator=other).tolist()
    True
    >>> mine.uniform(2, 3).tolist() == torch.rand(2, 3, generator=other, dtype=torch.float64).tolist()
    True
    """

    def __init__(self, seed: int) -> None:
        self._bits = np.random.MT19937()
        self._bits._legacy_seeding(seed & 0xFFFFFFFF)

    def uniform(self, *shape: int) -> Array:
        """Return numbers in [0, 1) with 53 random bits each."""
        halves = self._bits.random_raw(2 * math.prod(shape)).astype(np.uint64)
        whole = (halves[0::2] << np.uint64(32)) | halves[1::2]
        bits = whole & np.uint64(2**53 - 1)
        return (bits * 2.0**-53).reshape(shape).view(Array)

    def permutation(self, n: int) -> Array:
        """Return the numbers from 0 to n − 1 in random order, by the swaps of Fisher and Yates."""
        raw = self._bits.random_raw(max(n - 1, 0)).astype(np.int64)
        partners = (np.arange(len(raw)) + raw % np.arange(n, n - len(raw), -1)).tolist()
        order = list(range(n))
        for place, partner in enumerate(partners):
            order[place], order[partner] = order[partner], order[place]
        return np.array(order, dtype=np.int64).view(Array)

    def below(self, count: int) -> int:
        """Return a whole number below ``count``."""
        return int(self._bits.random_raw()) % count

    def signs(self, *shape: int) -> Array:
        """Return random signs."""
        raw = self._bits.random_raw(math.prod(shape)).reshape(shape)
        return ((raw % 2) * 2.0 - 1.0).view(Array)

    def normal(self, *shape: int) -> Array:
        """Return normal numbers, by the method of Box and Muller in blocks of sixteen."""
        count = math.prod(shape)
        if count < 16:
            return self._few_normal(count).reshape(shape).view(Array)
        values = np.asarray(self.uniform(count))
        found = _box_muller(values[: count - count % 16].reshape(-1, 16)).ravel()
        if count % 16:
            # The last block overlaps with the one before.
            last = np.asarray(self.uniform(16)).reshape(1, 16)
            found = np.concatenate([found, np.zeros(count % 16)])
            found[-16:] = _box_muller(last).ravel()
        return found.reshape(shape).view(Array)

    def _few_normal(self, count: int) -> np.ndarray:
        """Return fewer than sixteen normal numbers, in pairs."""
        uniform = np.asarray(self.uniform(count + count % 2)).reshape(-1, 2)
        radius = np.sqrt(-2.0 * np.log1p(-uniform[:, 1]))
        angle = 2.0 * np.pi * uniform[:, 0]
        pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return pairs.ravel()[:count]


def _box_muller(uniform: np.ndarray) -> np.ndarray:
    """Return normal numbers from blocks ``(..., 16)`` of uniform ones."""
    radius = np.sqrt(-2.0 * np.log(1.0 - uniform[:, :8]))
    angle = 2.0 * np.pi * uniform[:, 8:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


class TorchDraws:
    """The same draws from a generator of torch, on the device of ``like``."""

    def __init__(self, generator: Any, *, like: Any) -> None:
        self.generator = generator
        self.like = like

    def _placed(self, drawn: Any) -> Any:
        if is_torch(self.like):
            return drawn.to(self.like.device)
        return as_words(drawn.cpu().numpy())

    def uniform(self, *shape: int) -> Any:
        """Return numbers in [0, 1)."""
        import torch

        own = {"generator": self.generator, "device": self.generator.device}
        return self._placed(torch.rand(*shape, dtype=torch.float64, **own))

    def permutation(self, n: int) -> Any:
        """Return the numbers from 0 to n − 1 in random order."""
        import torch

        own = {"generator": self.generator, "device": self.generator.device}
        return self._placed(torch.randperm(n, **own))

    def signs(self, *shape: int) -> Any:
        """Return random signs."""
        import torch

        own = {"generator": self.generator, "device": self.generator.device}
        return self._placed(torch.randint(0, 2, shape, **own).double() * 2.0 - 1.0)
