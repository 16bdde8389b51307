"""Adult: does a person of the 1994 Current Population Survey earn more than 50,000 dollars? S is age."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from frhsic_core.data._files import Link, RawFile
from frhsic_core.data._recipes import Card, Recipe, Source, Table, numeric, one_hot

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship",
    "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
NUMERIC = ("fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORICAL = (
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country",
)  # fmt: skip
MISSING = "?"

FILE = RawFile(
    dataset="adult",
    name="adult.data",
    sha256=("5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",),
    links=(
        Link("https://archive.ics.uci.edu/static/public/2/adult.zip", "adult.data"),
        Link("https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data"),
    ),
    by_hand="adult.data inside https://archive.ics.uci.edu/static/public/2/adult.zip",
)


def read(path: Path, *, keep_missing: bool = False) -> Table:
    """Read ``adult.data`` and encode its categories.

    Rows with a missing category ("?") are dropped, unless ``keep_missing`` makes "?" a level of its
    own. The file has no header, a blank after each comma and an empty last line.
    """
    raw = pd.read_csv(
        path, names=list(COLUMNS), skipinitialspace=True, dtype="str", keep_default_na=False
    )
    steps = [("rows of adult.data", len(raw))]
    if keep_missing:
        steps.append(('"?" kept as a level of its own', len(raw)))
    else:
        raw = raw[(raw != MISSING).all(axis=1)]
        steps.append(('rows without "?"', len(raw)))
    numbers = numeric(raw[["age", *NUMERIC]], file=path.name)
    dummies, groups = one_hot(raw, CATEGORICAL)
    return Table(
        columns=pd.concat([numbers, dummies], axis=1),
        y=(raw["income"] == ">50K").to_numpy(),
        source="the original file adult.data",
        groups=groups,
        steps=steps,
        notes=[
            "fnlwgt, the sampling weight of the survey, is a feature here, as in the paper's recipe."
        ],
        weights=numbers["fnlwgt"].to_numpy(),
    )


RECIPE = Recipe(
    task="classification",
    sensitive="age",
    sources=(Source("official", FILE, read, (32_561, 30_162), 103),),
    card=Card(
        measured="Each row is a working adult (17 or older) in the US Current Population Survey of 1994.",
        by=(
            "The US Census Bureau collected the data. Barry Becker and Ronny Kohavi extracted them in 1996, and the "
            "UCI repository distributes them."
        ),
        sensitive="S is the age in years. Ages above 90 are recorded as 90.",
        target="Y is 1 if the yearly income is above 50,000 dollars of 1994.",
        problems=(
            'In 7 % of rows a category is missing ("?"): the work class and the occupation, or the country of birth.',
            "The paper prints n ≈ 30,000 and d = 107. This n belongs to the complete rows, and this d to all rows.",
            "The column fnlwgt says how many people a row represents. The recipe uses it as a feature of the model.",
            "The threshold of 50,000 dollars is high for 1994. Results change with the threshold (Ding et al., 2021).",
        ),
        terms="The UCI repository distributes the data under the license CC BY 4.0.",
        not_for=(
            "Nothing follows about incomes of today.",
            "Nothing follows about pay for equal work, because working hours, occupation and position in the family "
            "vary with age.",
        ),
        facts={"income_cut": 50_000},
    ),
)
