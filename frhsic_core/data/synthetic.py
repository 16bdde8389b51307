r"""Draw the synthetic datasets of the paper and the running example of the book, which need no files.

- ``people``: the running example of the book. A person has an age S ~ U(20, 70) and a skill N(0,1). X has a test score,
  skill + N(0, 0.3²), and two habits, (cos πt, sin πt) + N(0, 0.2²) with t = (S − 20)/50, which together reveal the age.
  The person is hired, Y = 1, if skill + 1.5(t − ½) + N(0, 0.5²) is positive.
- ``synthetic``: S ~ U(0,1), X = (S + ε₁, ε₂) with ε₁ ~ N(0, 0.3²), ε₂ ~ N(0,1), Y ~ Bernoulli(1/(1+e^{-X₁})), n = 5,000
  (the synthetic validation). With ``signal="strong"`` the label is Y ~ Bernoulli(1/(1+e^{-η})), η = 4(X₁ − ½) + 2X₂:
  X and S are the same, but the label can be predicted, partly from X₁, which depends on S, and partly from X₂, which
  does not.
- ``runtime``: the same law with n = 20,000 (the runtime figure goes from 500 to 20,000).
- ``gaussian_pair``: Z ~ N(0,1), S = ρZ + √(1-ρ²) ε (the convergence figure). X is Z. The paper gives no label, so the
  target is Z itself.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.choices import one_of
from frhsic_core.data.recipes import Card, Law, Table

SIGNALS = ("paper", "strong")


class _Draws:
    """Draws from a whole number (NumPy's legacy generator, as the authors use it) or from a generator."""

    def __init__(self, random_state: Any) -> None:
        self.generator: Any = None
        if random_state is None or isinstance(random_state, Integral):
            self.legacy = np.random.RandomState(random_state)
            self.notes = [f"NumPy legacy generator, seed {random_state}."]
        else:
            from frhsic_core.arrays import as_generator

            self.generator = as_generator(random_state)
            self.legacy = np.random.RandomState(0)
            self.notes = []

    def _draw(self, legacy: Callable[..., np.ndarray], name: str, n: int) -> np.ndarray:
        if self.generator is None:
            return legacy(size=n)
        import torch

        draw = getattr(torch, name)
        return draw(n, generator=self.generator, dtype=torch.float64, device=self.generator.device).cpu().numpy()

    def uniform(self, n: int) -> np.ndarray:
        return self._draw(self.legacy.uniform, "rand", n)

    def normal(self, n: int) -> np.ndarray:
        return self._draw(self.legacy.normal, "randn", n)

    def bernoulli(self, probability: np.ndarray) -> np.ndarray:
        if self.generator is None:
            # A binomial draw, not a comparison with uniforms, gives the labels of the authors' run.
            return self.legacy.binomial(1, probability)
        return self.uniform(len(probability)) < probability


def log_odds(x1: np.ndarray, x2: np.ndarray, *, signal: str = "paper") -> np.ndarray:
    """Return the log-odds of Y = 1 given X: X₁ for the paper's signal, 4(X₁ − ½) + 2X₂ for the strong one.

    Examples
    --------
    >>> float(log_odds(np.array(0.25), np.array(1.0), signal="strong"))
    1.0
    """
    one_of("signal", signal, SIGNALS)
    return x1 if signal == "paper" else 4.0 * (x1 - 0.5) + 2.0 * x2


def classification(n: int, *, signal: str = "paper", random_state: Any = 42) -> Table:
    """Draw the classification task of the synthetic validation and of the runtime figure.

    With ``random_state=42`` and 5,000 rows the sample equals that of the authors' script, row by row.
    ``signal="strong"`` changes only the label.
    """
    draws = _Draws(random_state)
    s = draws.uniform(n)
    x1 = s + 0.3 * draws.normal(n)
    x2 = draws.normal(n)
    y = draws.bernoulli(1.0 / (1.0 + np.exp(-log_odds(x1, x2, signal=signal))))
    label = "X1" if signal == "paper" else "4(X1 - 1/2) + 2 X2"
    return Table(
        columns=pd.DataFrame({"s": s, "x1": x1, "x2": x2}),
        y=np.asarray(y, dtype=np.float64),
        task="classification",
        sensitive="s",
        source=f"a probability law: S ~ U(0,1), X = (S + N(0, 0.09), N(0,1)), Y ~ Bernoulli(sigmoid({label}))",
        steps=[("rows drawn", n)],
        notes=draws.notes,
    )


def accuracy_levels(signal: str = "paper") -> dict[str, float]:
    r"""Return the best possible accuracies of the classification task, computed by a Riemann sum to four digits.

    ``majority`` belongs to the best constant, ``bayes`` to the best predictor, and ``parity`` to the best predictor
    g(X) ∈ {0, 1} with P(g = 1 | S = s) the same for every s. Since P(g = 1 | S = s) is P(g = 1 | X₁ = ·) convolved
    with a Gaussian, and that is injective, it is constant only if P(g = 1 | X₁ = ·) is. The odds rise in X₂, so the
    best such g is a threshold on X₂ alone, or a constant if the label does not depend on X₂.

    Examples
    --------
    >>> {name: round(value, 3) for name, value in accuracy_levels().items()}
    {'majority': 0.618, 'parity': 0.618, 'bayes': 0.629}
    """
    from scipy.special import expit, ndtr

    x1, x2 = np.linspace(-2.0, 3.0, 1001), np.linspace(-8.0, 8.0, 1601)
    # X₁ is uniform plus noise of standard deviation 0.3.
    first, second = ndtr(x1 / 0.3) - ndtr((x1 - 1.0) / 0.3), np.exp(-0.5 * x2**2)
    first, second = first / first.sum(), second / second.sum()
    odds = expit(log_odds(x1[:, None], x2[None, :], signal=signal)) + np.zeros((1, x2.size))
    mean = first @ odds  # P(Y = 1 | X₂)
    # A threshold on X₂: Y = 1 above it, Y = 0 below.
    above = np.concatenate([[0.0], np.cumsum((second * mean)[::-1])])
    below = np.concatenate([[0.0], np.cumsum((second * (1.0 - mean))[::-1])])
    share = float(second @ mean)
    return {
        "majority": max(share, 1.0 - share),
        "parity": float((above + (1.0 - share) - below).max()),
        "bayes": float(first @ np.maximum(odds, 1.0 - odds) @ second),
    }


def people(n: int, *, random_state: Any = 0) -> Table:
    """Draw the running example of the book: people with an age, a skill and an outcome."""
    draws = _Draws(random_state)
    t = draws.uniform(n)
    skill = draws.normal(n)
    columns = {
        "age": 20.0 + 50.0 * t,
        "test_score": skill + 0.3 * draws.normal(n),
        "habit_1": np.cos(np.pi * t) + 0.2 * draws.normal(n),
        "habit_2": np.sin(np.pi * t) + 0.2 * draws.normal(n),
    }
    hired = skill + 1.5 * (t - 0.5) + 0.5 * draws.normal(n) > 0
    return Table(
        columns=pd.DataFrame(columns),
        y=hired.astype(np.float64),
        task="classification",
        sensitive="age",
        source="a probability law: age ~ U(20, 70), skill ~ N(0, 1), and four columns that depend on them",
        steps=[("rows drawn", n)],
        notes=draws.notes,
    )


def gaussian_pair(n: int, *, rho: float = 0.5, random_state: Any = 42) -> Table:
    """Draw the ρ-Gaussian pair (Z, S) of the convergence figure."""
    if not -1.0 <= rho <= 1.0:
        raise ValueError(f"rho is {rho}: a correlation must lie in [-1, 1].")
    draws = _Draws(random_state)
    z = draws.normal(n)
    s = rho * z + np.sqrt(1.0 - rho**2) * draws.normal(n)
    return Table(
        columns=pd.DataFrame({"s": s, "z": z}),
        y=z.copy(),
        task="regression",
        sensitive="s",
        source=f"a probability law: (Z, S) standard Gaussian with correlation {rho:g}",
        steps=[("rows drawn", n)],
        notes=["The paper gives this law no label; y is Z itself."],
    )


_TERMS = "There are no conditions of use, because a probability law has no owner."
PEOPLE = Law(
    draw=people,
    card=Card(
        measured=(
            "Each of the 1,000 rows is an invented person with a test score, two habits that reveal the age, an age "
            "between 20 and 70, and an outcome."
        ),
        by="This book draws the data. They are its running example.",
        sensitive="S is the age in years.",
        target=(
            "Y says whether the person was hired. It depends on the skill behind the test score and, to a smaller "
            "degree, on the age."
        ),
        problems=("The data have three features. A real table has more columns that reveal an age.",),
        terms=_TERMS,
        not_for=("Nothing follows about real people.",),
    ),
)
SYNTHETIC = Law(
    draw=classification,
    card=Card(
        measured=(
            "Each of the 5,000 rows is a draw with S ~ U(0,1), X = (S + N(0, 0.3²), N(0,1)) and "
            "Y ~ Bernoulli(sigmoid(X₁))."
        ),
        by="The paper defines the distribution. With the default seed, the rows are those of its authors' script.",
        sensitive="S is the uniform variable s.",
        target="Y is the binary variable y. The best rule predicts 1 if X₁ > 0, which is nearly always the case.",
        problems=("On the last 1,000 rows a constant predictor has accuracy .62. The best rule has only .605.",),
        terms=_TERMS,
        not_for=("Nothing follows about methods whose difference on 1,000 rows is within chance.",),
    ),
)
RUNTIME = Law(
    draw=classification,
    card=Card(
        measured=(
            "Each of the 20,000 rows is a draw from the distribution of the synthetic validation. The figure of the "
            "paper uses 500 to 20,000 rows."
        ),
        by="The paper defines the distribution.",
        sensitive="S is the uniform variable s.",
        target="Y is the binary variable y.",
        problems=("The data have two features, so the encoder takes less time than on any real dataset.",),
        terms=_TERMS,
        not_for=("Nothing follows about the cost on data with many features.",),
    ),
)
GAUSSIAN_PAIR = Law(
    draw=gaussian_pair,
    card=Card(
        measured="Each row is a draw of a standard Gaussian pair (Z, S) with correlation ρ (0.5 by default).",
        by=(
            "The paper uses this distribution in its convergence figure. The module frhsic_core.laws computes its "
            "exact values."
        ),
        sensitive="S is the second variable of the pair.",
        target="The paper has no target for this distribution. Here Y is Z itself.",
        problems=(
            "The distribution is smooth, has light tails and gives no ties. Estimation is therefore easier than on any "
            "of the five real datasets.",
        ),
        terms=_TERMS,
        not_for=("Nothing follows about rates for an attribute that is discrete or has heavy tails.",),
    ),
)
