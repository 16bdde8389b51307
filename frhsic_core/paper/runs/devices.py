"""The device and the threads a run asks for, checked once before its first stack."""

from __future__ import annotations

__all__ = ["require_known", "resolved_device", "set_threads"]

ADVICE = "choose auto, cpu, cuda, or cuda:1 and so on for one GPU of several"


def resolved_device(device: str) -> str:
    """Return the device to train on, ``"auto"`` being CUDA where there is one.

    Raises
    ------
    ValueError
        Where torch does not know the device or this machine does not have it.

    Examples
    --------
    >>> resolved_device("cpu")
    'cpu'
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    require_known(device)
    named = torch.device(device)
    if named.type == "cuda":
        there = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (named.index or 0) >= there:
            have = f"{there} CUDA device{'' if there == 1 else 's'}" if there else "no CUDA device"
            raise ValueError(f"device is {device!r}, but torch finds {have} here: {ADVICE}.")
    try:
        torch.empty(1, device=named)
    except Exception as error:  # each kind of device refuses in its own way
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"device is {device!r}, which cannot be used here ({first}): {ADVICE}.") from None
    return device


def require_known(device: str) -> None:
    """Raise ValueError unless torch knows the device by name, whether or not this machine has it."""
    import torch

    try:
        torch.device("cpu" if device == "auto" else device)
    except RuntimeError:
        raise ValueError(f"device is {device!r}, which torch does not know: {ADVICE}.") from None


def set_threads(threads: int) -> None:
    """Set the CPU threads of torch: with its own choice small stacks were up to ninety times slower than with one."""
    if threads < 1:
        raise ValueError(f"threads is {threads}: at least one is needed.")
    import torch

    torch.set_num_threads(threads)
