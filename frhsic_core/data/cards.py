"""A card for each dataset: what was measured, by whom, on which terms, its faults, what not to conclude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Card:
    """A short datasheet.

    Parameters
    ----------
    title, measured, by, sensitive, target : str
        What a row is, who collected it, what S and Y are.
    problems : tuple of str
        Known faults of the data or of the recipe.
    terms : str
        Licence and conditions of use.
    not_for : tuple of str
        What should not be concluded from it.
    facts : mapping
        Numbers of the texts above that other code reads: the year of a survey, the cut that defines the target.
    """

    title: str
    measured: str
    by: str
    sensitive: str
    target: str
    problems: tuple[str, ...]
    terms: str
    not_for: tuple[str, ...]
    facts: Mapping[str, int] = field(default_factory=dict)

    def markdown(self) -> str:
        """Return the card as Markdown, without its title."""
        lines = [f"**A row.** {self.measured}  ", f"**By.** {self.by}  ", f"**S.** {self.sensitive}  "]
        lines += [f"**Y.** {self.target}  ", f"**Terms.** {self.terms}", "", "Known problems:", ""]
        lines += [f"- {problem}" for problem in self.problems]
        return "\n".join([*lines, "", "Not to be concluded from it: " + "; ".join(self.not_for) + "."])


_LAW_TERMS = "None: a probability law has no owner."

CARDS: dict[str, Card] = {
    "adult": Card(
        title="Adult",
        measured="One working adult (17 or older) of the US Current Population Survey of 1994.",
        by="US Census Bureau; extracted by Barry Becker and Ronny Kohavi (1996), kept by the UCI repository.",
        sensitive="Age in years, top-coded at 90.",
        target="Yearly income above 50,000 dollars of 1994.",
        problems=(
            '7 % of rows miss a category ("?"): work class and occupation, or the country of birth.',
            "The paper prints n ≈ 30,000 and d = 107: the first belongs to complete rows, the second to all rows.",
            "fnlwgt says how many people a row stands for; the recipe feeds it to the model as a feature.",
            "The threshold of 50,000 dollars is high for 1994; results change with it (Ding et al., 2021).",
        ),
        terms="CC BY 4.0 (UCI).",
        not_for=("incomes of today", "pay at equal work: hours, occupation and family position are entangled with age"),
        facts={"income_cut": 50_000},
    ),
    "acs_income": Card(
        title="ACS Income",
        measured="One employed Californian (17 or older) of the American Community Survey of 2018.",
        by="US Census Bureau; the task was defined by Ding, Hardt, Miller and Schmidt (2021), package folktables.",
        sensitive="Age in years (AGEP), top-coded at 94.",
        target="Yearly income above 50,000 dollars of 2018.",
        problems=(
            "The nine features are codes used as numbers: occupation (more than 500 codes) and birthplace (more than "
            "200) become magnitudes without meaning.",
            "20,000 rows are drawn; from the 40 % extract these are other rows than from the official file.",
            "The extract has no survey weights, so no statement about California's population follows.",
        ),
        terms="Public use microdata of the Census Bureau: free use, no attempt to identify anyone.",
        not_for=("other states or years", "the effect of age on pay"),
        facts={"year": 2018, "income_cut": 50_000},
    ),
    "meps": Card(
        title="MEPS",
        measured="One person of the Medical Expenditure Panel Survey in 2015 (file HC-181).",
        by="US Agency for Healthcare Research and Quality (AHRQ).",
        sensitive="Age in years at the end of 2015 (AGE15X), top-coded at 85.",
        target="At least ten office, outpatient, emergency and home-health visits and inpatient nights in the year.",
        problems=(
            "The text says Panel 19; the released code applies no panel filter and, through the education variable it "
            "takes, keeps almost only Panel 20.",
            "The extracts lack person income; the two-panel one also lacks inpatient nights, region and poverty.",
            "The visit count adds -9 where home-health days are unknown, as the published label does.",
            "The sample is not the population: weights (kept beside the data) move the rate of Y by several points.",
        ),
        terms="AHRQ's data use agreement: statistical use only; re-identification is forbidden by law.",
        not_for=("need of care: use of care also measures access, insurance and trust", "single persons"),
        facts={"year": 2015, "visits_cut": 10},
    ),
    "crime": Card(
        title="Communities and Crime",
        measured="One of 1,994 US communities: 1990 census and police survey, 1995 crime reports.",
        by="Michael Redmond (2009), from US Census, LEMAS and FBI sources; kept by the UCI repository.",
        sensitive="text: share of Black residents (racepctblack); reference: people per household (householdsize).",
        target="Violent crimes per resident, rescaled to [0, 1].",
        problems=(
            "The released code takes S by position and gets household size; racepctblack, the next column, stays in X.",
            "Every variable is cut at three standard deviations and kept to two digits: ties, and piles at 0 and 1.",
            "The other columns determine racepctblack almost linearly (95 % of its variance).",
            "Communities without a count of rapes, many of them in the Midwest, were left out by the donor.",
        ),
        terms="CC BY 4.0 (UCI).",
        not_for=(
            "persons: the rows are places (ecological fallacy)",
            "crime rather than recorded crime: police practice differs between places",
        ),
    ),
    "compas": Card(
        title="COMPAS",
        measured="One defendant scored by the COMPAS tool in Broward County, Florida, in 2013 and 2014.",
        by="ProPublica (Larson, Mattu, Kirchner and Angwin, 2016), from public records.",
        sensitive="Age in years, as of April 2016 (see below).",
        target="A new charge within two years, as recorded by ProPublica.",
        problems=(
            "People screened too late to be followed for two years are in it only if they were charged again: the rate "
            "of Y is 45 % where about 36 % would be right (Barenstein, 2019).",
            "The column age is the age when the data were collected: in 99 % of rows it fits mid-April 2016, in none "
            "the day of the screening, one to four years before.",
            "A new charge is not a new offence: policing differs between people and places.",
            "Younger defendants are charged again more often: the attribute to be hidden is itself a strong predictor.",
            "The raw file holds names and birth dates of real people. The loader reads only the columns it uses.",
        ),
        terms="Public records published by ProPublica without a stated licence: do not redistribute rows.",
        not_for=("building or defending a risk score", "other counties or years", "guilt"),
    ),
    "synthetic": Card(
        title="Synthetic validation",
        measured="S ~ U(0,1), X = (S + N(0, 0.3²), N(0,1)), Y ~ Bernoulli(sigmoid(X₁)); 5,000 rows.",
        by="The paper; with the default seed, the rows of its authors' script.",
        sensitive="s.",
        target="y; the best rule predicts 1 whenever X₁ > 0, which is nearly always.",
        problems=("A constant predictor scores .62 on the last 1,000 rows, more than the best rule (.605).",),
        terms=_LAW_TERMS,
        not_for=("methods that differ by less than chance on 1,000 rows",),
    ),
    "runtime": Card(
        title="Runtime task",
        measured="The law of the synthetic validation with 20,000 rows (the figure goes from 500 to 20,000).",
        by="The paper.",
        sensitive="s.",
        target="y.",
        problems=("Two features: time spent in the encoder is smaller than on any real dataset.",),
        terms=_LAW_TERMS,
        not_for=("the cost on wide data",),
    ),
    "gaussian_pair": Card(
        title="ρ-Gaussian pair",
        measured="(Z, S) standard Gaussian with correlation ρ (default 0.5).",
        by="The paper's convergence figure; exact values: frhsic_core.laws.",
        sensitive="s.",
        target="None in the paper; y is Z itself.",
        problems=("Smooth, light-tailed, without ties: kinder than any of the five real datasets.",),
        terms=_LAW_TERMS,
        not_for=("rates on discrete or heavy-tailed S",),
    ),
}
