"""On CUDA: the same numbers, no waiting for the host, and steps that a graph can capture."""

from __future__ import annotations

import pytest
import torch

from frhsic_core.conditional import eipm, gdp
from frhsic_core.kernels import Gaussian
from frhsic_core.paper.stored_gdp import authors_gdp

STEPS = {
    "frem": lambda z, s, r, m: eipm(z, s, kernel_z=Gaussian(1.0), bandwidth=0.5, anchors=r, **m),
    "eipm, all rows, rule": lambda z, s, r, m: eipm(z, s, kernel_z=Gaussian(1.0), power=2, **m),
    "eipm, spaced anchors": lambda z, s, r, m: eipm(
        z, s, kernel_z=Gaussian(1.0), bandwidth=(0.5,), anchors=9, **m
    ),
    "gdp": lambda z, s, r, m: authors_gdp(z.sum(-1), s, **m),
}


@pytest.mark.cuda
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_captured_and_has_the_value_of_the_cpu(generator, name, masked):
    s = torch.rand(4, 64, generator=generator, dtype=torch.float64)
    z = torch.randn(4, 64, 3, generator=generator, dtype=torch.float64) + s.unsqueeze(-1)
    mask = torch.rand(4, 64, generator=generator) < 0.7
    on_cpu = z.clone().requires_grad_()
    options = {"mask": mask} if masked else {}
    rows = torch.arange(0, 64, 2)
    expected = STEPS[name](on_cpu, s, rows, options)
    (expected_gradient,) = torch.autograd.grad(expected.sum(), on_cpu)
    on_cuda, s_cuda = z.cuda().requires_grad_(), s.cuda()
    options = {"mask": mask.cuda()} if masked else {}
    rows = rows.cuda()

    def step():
        value = STEPS[name](on_cuda, s_cuda, rows, {**options, "check_finite": False})
        return value, torch.autograd.grad(value.sum(), on_cuda)[0]

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        step()
        step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value, gradient = step()
    graph.replay()
    torch.testing.assert_close(value.detach().cpu(), expected.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gradient.cpu(), expected_gradient, rtol=1e-7, atol=1e-10)


@pytest.mark.cuda
def test_the_curve_of_a_tensor_on_cuda_has_the_value_and_gradient_of_the_cpu(generator):
    s = torch.rand(4, 64, generator=generator, dtype=torch.float64)
    y = (torch.randn(4, 64, generator=generator, dtype=torch.float64) + s).requires_grad_()
    moved = y.detach().cuda().requires_grad_()
    value = gdp(moved, s.cuda())
    assert value.device.type == "cuda"
    torch.testing.assert_close(value.detach().cpu(), gdp(y, s).detach())
    (gradient,) = torch.autograd.grad(value.sum(), moved)
    torch.testing.assert_close(gradient.cpu(), torch.autograd.grad(gdp(y, s).sum(), y)[0])
