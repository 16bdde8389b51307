"""Proposition G.1: counterfactual fairness of every head implies independence of S.

The converse is false. In the structural model S = U_S, X = f_X(S, U_X), Z = h(X), everything about
Z is a table z[s, u]: what the unit u would get at the value s. Counterfactual fairness for every
head of a class that separates points means that each column of the table is constant. On finite
models both sides are exact, and all tables of a given size can be enumerated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

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
        P(S = s, U = u). The paper's model has S independent of U; other tables show what breaks
        without that.

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
        """Whether Z_{S←s'} = Z for every unit that occurs and every s'.

        This is fairness for every head of a class that separates points.
        """
        for unit in range(len(self.table[0])):
            occurs = any(chances[unit] > 0 for chances in self.probabilities)
            outcomes = {row[unit] for row in self.table}
            if occurs and len(outcomes) > 1:
                return False
        return True

    def law(self) -> FiniteLaw:
        """Return the observational law of (Z, S)."""
        labels = sorted(set(itertools.chain.from_iterable(self.table)))
        joint = np.full((len(labels), len(self.table)), Fraction(0))
        for s, row in enumerate(self.table):
            for unit, label in enumerate(row):
                joint[labels.index(label), s] += self.probabilities[s][unit]
        return FiniteLaw(labels, range(len(self.table)), joint)

    def hsic(self) -> Fraction:
        """Return HSIC(Z, S) with the kernels 1[z = z'] and 1[s = s'], which are characteristic."""
        law = self.law()
        values_of_z, values_of_s = law.probabilities.shape
        return law.hsic(np.eye(values_of_z, dtype=int), np.eye(values_of_s, dtype=int))


def independent(p_s: Sequence[Fraction], p_u: Sequence[Fraction]) -> list[list[Fraction]]:
    """Return P(S = s, U = u) of an exogenous S."""
    return [[p * q for q in p_u] for p in p_s]


def xor() -> FiniteSCM:
    """Return Z = S ⊕ U with two fair coins: independent of S, yet intervening on S changes Z."""
    half = Fraction(1, 2)
    return FiniteSCM([[0, 1], [1, 0]], independent([half, half], [half, half]))


@check("Proposition G.1")
def every_table() -> list[Certificate]:
    """Enumerate all tables of two values of S, three of U and three of Z, under two laws of U."""
    third = Fraction(1, 3)
    half = Fraction(1, 2)
    uniform = independent([half, half], [third, third, third])
    uneven = independent([Fraction(1, 5), Fraction(4, 5)], [half, third, Fraction(1, 6)])
    models = 0
    fair = 0
    independent_but_not_fair = 0
    worst = Fraction(0)
    for probabilities in (uniform, uneven):
        for labels in itertools.product(range(3), repeat=6):
            model = FiniteSCM([labels[:3], labels[3:]], probabilities)
            models += 1
            value = model.hsic()
            if model.counterfactually_fair:
                fair += 1
                worst = max(worst, value)
            elif value == 0:
                independent_but_not_fair += 1
    details = {
        "models": models,
        "counterfactually fair": fair,
        "independent but not fair": independent_but_not_fair,
    }
    return [
        inequality(
            "HSIC is zero for every counterfactually fair model, all tables of a given size",
            middle=float(worst),
            upper=0.0,
            tolerance=0.0,
            evidence="exact",
            assumptions=("S exogenous", "deterministic encoder", "class of heads separates points"),
            details=details,
        ),
        strict_inequality(
            "the converse fails: some independent tables are not counterfactually fair",
            middle=0.0,
            upper=float(independent_but_not_fair),
            margin=0.5,
            evidence="exact",
            details=details,
        ),
    ]


@check("Proposition G.1")
def dropped_assumptions() -> list[Certificate]:
    """Drop an exogenous S, or enough heads: fairness then says nothing about independence."""
    half = Fraction(1, 2)
    coins = independent([half, half], [half, half])
    # Z = U, and U mostly agrees with S.
    agreeing = [[Fraction(3, 8), Fraction(1, 8)], [Fraction(1, 8), Fraction(3, 8)]]
    confounded = FiniteSCM([[0, 1], [0, 1]], agreeing)
    # Z = S, and what is left of it if z² is the only head.
    signed = FiniteSCM([[-1, -1], [1, 1]], coins)
    squared = FiniteSCM([[1, 1], [1, 1]], coins)
    return [
        strict_inequality(
            "needed: S exogenous; a confounded model is counterfactually fair and dependent",
            middle=0.0,
            upper=float(confounded.hsic()) * confounded.counterfactually_fair,
            evidence="exact",
            details={"HSIC": str(confounded.hsic())},
        ),
        strict_inequality(
            "needed: enough heads; "
            "Z = S is counterfactually fair for the head z squared alone and dependent",
            middle=0.0,
            upper=float(signed.hsic()) * squared.counterfactually_fair,
            evidence="exact",
            details={"HSIC": str(signed.hsic())},
        ),
    ]
