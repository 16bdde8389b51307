"""Proposition G.1: a representation that serves every head counterfactually fairly is independent of S; not conversely.

In the structural model S = U_S, X = f_X(S, U_X), Z = h(X), everything about Z is a table z[s, u]: what the unit u would
get at the value s. Counterfactual fairness for every head of a class that separates points means that each column of
the table is constant. On finite models both sides are exact, and all tables of a given size can be enumerated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from frhsic_core.laws import FiniteLaw
from frhsic_core.paper.statements import Certificate, check, inequality, strict_inequality


@dataclass(frozen=True)
class FiniteSCM:
    """A structural model with finitely many values of S and of the noise U.

    Parameters
    ----------
    table : sequence of sequences of int
        z[s][u] = h(f_X(s, u)), labels of the values of Z.
    probabilities : sequence of sequences of Fraction
        P(S = s, U = u). The paper's model has S independent of U; other tables show what breaks without that.

    Examples
    --------
    >>> model = xor()
    >>> model.hsic(), model.counterfactually_fair
    (Fraction(0, 1), False)
    """

    table: Sequence[Sequence[int]]
    probabilities: Sequence[Sequence[Fraction]]

    @property
    def counterfactually_fair(self) -> bool:
        """Whether Z_{S←s'} = Z for every unit that occurs and every s', fair for every head that separates points."""
        columns = zip(
            zip(*self.table, strict=True), zip(*self.probabilities, strict=True), strict=True
        )
        return all(
            len(set(values)) == 1 for values, chances in columns if sum(chances, Fraction(0)) > 0
        )

    def law(self) -> FiniteLaw:
        """Return the observational law of (Z, S)."""
        labels = sorted({label for row in self.table for label in row})
        joint = [[Fraction(0)] * len(self.table) for _ in labels]
        for s, (row, chances) in enumerate(zip(self.table, self.probabilities, strict=True)):
            for label, p in zip(row, chances, strict=True):
                joint[labels.index(label)][s] += p
        return FiniteLaw(labels, list(range(len(self.table))), joint)

    def hsic(self) -> Fraction:
        """Return HSIC(Z, S) with the kernels 1[z = z'] and 1[s = s'], characteristic on finite sets."""
        law = self.law()
        identities = [
            [[int(i == j) for j in range(size)] for i in range(size)]
            for size in law.probabilities.shape
        ]
        return law.hsic(*identities)


def independent(p_s: Sequence[Fraction], p_u: Sequence[Fraction]) -> list[list[Fraction]]:
    """Return P(S = s, U = u) of an exogenous S."""
    return [[p * q for q in p_u] for p in p_s]


def xor() -> FiniteSCM:
    """Return Z = S ⊕ U with two fair coins: independent of S, yet every intervention on S changes Z."""
    half = Fraction(1, 2)
    return FiniteSCM([[0, 1], [1, 0]], independent([half, half], [half, half]))


@check("Proposition G.1")
def every_table() -> list[Certificate]:
    """Enumerate all tables of two values of S, three of U and three of Z, under two laws of the noise."""
    third, half = Fraction(1, 3), Fraction(1, 2)
    laws = [
        ([half, half], [third] * 3),
        ([Fraction(1, 5), Fraction(4, 5)], [half, third, Fraction(1, 6)]),
    ]
    worst, fair, hidden, total = Fraction(0), 0, 0, 0
    for p_s, p_u in laws:
        probabilities = independent(p_s, p_u)
        for labels in itertools.product(range(3), repeat=6):
            model = FiniteSCM([labels[:3], labels[3:]], probabilities)
            total += 1
            value = model.hsic()
            if model.counterfactually_fair:
                fair += 1
                worst = max(worst, value)
            elif value == 0:
                hidden += 1
    details = {"models": total, "counterfactually fair": fair, "independent but not fair": hidden}
    return [
        inequality("HSIC is zero for every counterfactually fair model, all tables of a given size",
                   middle=float(worst), upper=0.0, tolerance=0.0, evidence="exact",
                   assumptions=("S exogenous", "deterministic encoder", "class of heads separates points"),
                   details=details),
        strict_inequality("the converse fails: some independent tables are not counterfactually fair", middle=0.0,
                          upper=float(hidden), margin=0.5, evidence="exact", details=details),
    ]  # fmt: skip


@check("Proposition G.1")
def dropped_assumptions() -> list[Certificate]:
    """Drop an exogenous S, or enough heads: counterfactual fairness then says nothing about independence."""
    three_eighths, eighth, half = Fraction(3, 8), Fraction(1, 8), Fraction(1, 2)
    confounded = FiniteSCM(
        [[0, 1], [0, 1]], [[three_eighths, eighth], [eighth, three_eighths]]
    )  # Z = U, U follows S
    signed = FiniteSCM(
        [[-1, -1], [1, 1]], independent([half, half], [half, half])
    )  # Z = S, and only f(z) = z² used
    squared = FiniteSCM([[z * z for z in row] for row in signed.table], signed.probabilities)
    return [
        strict_inequality(
            "needed: S exogenous; a confounded model is counterfactually fair and dependent", middle=0.0,
            upper=float(confounded.hsic()) * confounded.counterfactually_fair, evidence="exact",
            details={"HSIC": str(confounded.hsic())}),
        strict_inequality(
            "needed: enough heads; Z = S is counterfactually fair for the head z squared alone and dependent",
            middle=0.0, upper=float(signed.hsic()) * squared.counterfactually_fair, evidence="exact",
            details={"HSIC": str(signed.hsic())}),
    ]  # fmt: skip
