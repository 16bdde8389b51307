"""Guards the checked sentences of the chapter on the parity gap."""

from __future__ import annotations

from frhsic_core import Gaussian
from frhsic_core.laws import GaussianPair, KernelHead


def test_both_inequalities_hold_in_every_row() -> None:
    kernel, law = Gaussian(1.0), GaussianPair(0.5)
    head = KernelHead([1.0], [1.0], kernel=kernel)
    coefficients = law.head_coefficients(head, kernel, m=6) ** 2
    whole, gdp, hsic = law.expected_squared_gap(head), law.gdp(head), law.hsic(kernel, kernel)
    for m, eigenvalue in enumerate(law.mercer(kernel).eigenvalues(6), start=1):
        resolved = coefficients[:m].sum()
        assert resolved <= hsic / eigenvalue
        assert gdp**2 <= hsic / eigenvalue + whole - resolved
