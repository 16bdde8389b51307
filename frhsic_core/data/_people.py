r"""People: is an invented person hired? S is age. This is the running example of the book, and it needs no files.

A person has an age S ~ U(20, 70) and a skill N(0,1). X has a test score, skill + N(0, 0.3²), and
two habits, (cos πt, sin πt) + N(0, 0.2²) with t = (S − 20)/50, which together reveal the age. The
person is hired, Y = 1, if skill + 1.5(t − ½) + N(0, 0.5²) is positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from frhsic_core.data._recipes import NO_OWNER, Card, Recipe, Table


def people(n: int, generator: Any) -> Table:
    """Draw people with an age, a skill and an outcome."""
    t = generator.uniform(size=n)
    skill = generator.normal(size=n)
    columns = {
        "age": 20.0 + 50.0 * t,
        "test_score": skill + 0.3 * generator.normal(size=n),
        "habit_1": np.cos(np.pi * t) + 0.2 * generator.normal(size=n),
        "habit_2": np.sin(np.pi * t) + 0.2 * generator.normal(size=n),
    }
    hired = skill + 1.5 * (t - 0.5) + 0.5 * generator.normal(size=n) > 0
    source = (
        "a probability law: age ~ U(20, 70), skill ~ N(0, 1), and four columns that depend on them"
    )
    return Table(pd.DataFrame(columns), hired, source)


RECIPE = Recipe(
    task="classification",
    sensitive="age",
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
        problems=(
            "The data have three features. A real table has more columns that reveal an age.",
        ),
        terms=NO_OWNER,
        not_for=("Nothing follows about real people.",),
    ),
)
