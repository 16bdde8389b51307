r"""Synthetic: a classification whose label depends on S by one of two features. It needs no files.

S ~ U(0,1), X = (S + ε₁, ε₂) with ε₁ ~ N(0, 0.3²), ε₂ ~ N(0,1), Y ~ Bernoulli(1/(1+e^{-X₁})), which
is the distribution of the paper's synthetic validation. With ``signal="strong"`` the label is Y ~
Bernoulli(1/(1+e^{-η})), η = 4(X₁ − ½) + 2X₂: X and S are the same, but the label can be predicted,
partly from X₁, which depends on S, and partly from X₂, which does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core._choices import one_of
from frhsic_core.data._recipes import NO_OWNER, Card, Recipe, Table

SIGNALS = ("paper", "strong")


def log_odds(x1: np.ndarray, x2: np.ndarray, *, signal: str = "paper") -> np.ndarray:
    """Return the log-odds of Y = 1 given X: X₁ for the paper's signal, 4(X₁ − ½) + 2X₂ for the strong one.

    Examples
    --------
    >>> float(log_odds(np.array(0.25), np.array(1.0), signal="strong"))
    1.0
    """
    one_of("signal", signal, SIGNALS)
    return x1 if signal == "paper" else 4.0 * (x1 - 0.5) + 2.0 * x2


def classification(n: int, generator: Any, *, signal: str = "paper") -> Table:
    """Draw the classification task; the default seed, 42, with 5,000 rows gives the sample of the authors' script."""
    s = generator.uniform(size=n)
    x1 = s + 0.3 * generator.normal(size=n)
    x2 = generator.normal(size=n)
    # A binomial draw, not a comparison with uniforms, gives the labels of the authors' run.
    y = generator.binomial(1, 1.0 / (1.0 + np.exp(-log_odds(x1, x2, signal=signal))))
    label = "X1" if signal == "paper" else "4(X1 - 1/2) + 2 X2"
    source = f"a probability law: S ~ U(0,1), X = (S + N(0, 0.09), N(0,1)), Y ~ Bernoulli(sigmoid({label}))"
    return Table(pd.DataFrame({"s": s, "x1": x1, "x2": x2}), y, source)


RECIPE = Recipe(
    task="classification",
    sensitive="s",
    draw=classification,
    card=Card(
        measured=(
            "Each of the 5,000 rows is a draw with S ~ U(0,1), X = (S + N(0, 0.3²), N(0,1)) and "
            "Y ~ Bernoulli(sigmoid(X₁))."
        ),
        by="The paper defines the distribution. With the default seed, the rows are those of its authors' script.",
        sensitive="S is the uniform variable s.",
        target="Y is the binary variable y. The best rule predicts 1 if X₁ > 0, which is nearly always the case.",
        problems=(
            "On the last 1,000 rows a constant predictor has accuracy .62. The best rule has only .605.",
        ),
        terms=NO_OWNER,
        not_for=("Nothing follows about methods whose difference on 1,000 rows is within chance.",),
    ),
)
