"""Affairs: does a married woman of a 1974 survey report an extramarital affair? S is age."""

from __future__ import annotations

from frhsic_core.data.package_tables import STATSMODELS, file_of_package, table_source
from frhsic_core.data.recipes import Card, Recipe

FEATURES = ("rate_marriage", "yrs_married", "children", "religious", "educ", "occupation", "occupation_husb")
FILE = file_of_package(
    "affairs",
    STATSMODELS,
    "statsmodels/datasets/fair/fair.csv",
    "fd5f3f094a34fc35ca346a14c359e046ed27843038d6921efcd50a7ab21f6af0",
)

RECIPE = Recipe(
    task="classification",
    sensitive="age",
    sources=table_source(
        FILE,
        FEATURES,
        "affairs",
        value=lambda column: column > 0,
        rows=(6_366,),
    ),
    card=Card(
        measured="Each row is a married woman who answered a magazine survey in 1974.",
        by="Redbook magazine made the survey. Ray Fair (1978) published the data, and statsmodels distributes them.",
        sensitive="S is the age in years, recorded in nine intervals (17.5 to 42).",
        target="Y is 1 if the woman spent any time in extramarital affairs.",
        problems=(
            "The women are readers of one magazine who chose to answer.",
            "Age and years of marriage are midpoints of intervals. Occupations are codes that are used as numbers.",
        ),
        terms="The author permitted statsmodels to include the data.",
        not_for=("Nothing follows about people of today.", "The data do not show the effect of age on behavior."),
    ),
)
