"""Communities and Crime: violent crimes per person in 1,994 US communities. S is the share of Black residents."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from frhsic_core.data._files import Link, RawFile
from frhsic_core.data._recipes import Card, Recipe, Source, Table, numeric

# The data file has no header; these are the names of its documentation, in order.
_NAMES = """
    state county community communityname fold population householdsize racepctblack racePctWhite
    racePctAsian racePctHisp agePct12t21 agePct12t29 agePct16t24 agePct65up numbUrban pctUrban medIncome
    pctWWage pctWFarmSelf pctWInvInc pctWSocSec pctWPubAsst pctWRetire medFamInc perCapInc whitePerCap
    blackPerCap indianPerCap AsianPerCap OtherPerCap HispPerCap NumUnderPov PctPopUnderPov PctLess9thGrade
    PctNotHSGrad PctBSorMore PctUnemployed PctEmploy PctEmplManu PctEmplProfServ PctOccupManu
    PctOccupMgmtProf MalePctDivorce MalePctNevMarr FemalePctDiv TotalPctDiv PersPerFam PctFam2Par
    PctKids2Par PctYoungKids2Par PctTeen2Par PctWorkMomYoungKids PctWorkMom NumIlleg PctIlleg NumImmig
    PctImmigRecent PctImmigRec5 PctImmigRec8 PctImmigRec10 PctRecentImmig PctRecImmig5 PctRecImmig8
    PctRecImmig10 PctSpeakEnglOnly PctNotSpeakEnglWell PctLargHouseFam PctLargHouseOccup PersPerOccupHous
    PersPerOwnOccHous PersPerRentOccHous PctPersOwnOccup PctPersDenseHous PctHousLess3BR MedNumBR
    HousVacant PctHousOccup PctHousOwnOcc PctVacantBoarded PctVacMore6Mos MedYrHousBuilt PctHousNoPhone
    PctWOFullPlumb OwnOccLowQuart OwnOccMedVal OwnOccHiQuart RentLowQ RentMedian RentHighQ MedRent
    MedRentPctHousInc MedOwnCostPctInc MedOwnCostPctIncNoMtg NumInShelters NumStreet PctForeignBorn
    PctBornSameState PctSameHouse85 PctSameCity85 PctSameState85 LemasSwornFT LemasSwFTPerPop
    LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq LemasTotReqPerPop PolicReqPerOffic PolicPerPop
    RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp PctPolicAsian PctPolicMinor
    OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked LandArea PopDens PctUsePubTrans PolicCars
    PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy LemasPctOfficDrugUn PolicBudgPerPop
    ViolentCrimesPerPop
"""
COLUMNS = tuple(_NAMES.split())
IDENTIFIERS = ("state", "county", "community", "communityname", "fold")
TARGET = "ViolentCrimesPerPop"
SENSITIVE = "racepctblack"
LARGEST_MISSING_SHARE = 0.2

FILE = RawFile(
    dataset="crime",
    name="communities.data",
    sha256=(
        "09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea",  # CRLF line ends, as published
        "d90d85bd66bad9a00fa0ed6c15ac017b5966d528e55ba2940ad028d071353f95",  # the same lines with LF
    ),
    links=(
        Link(
            "https://archive.ics.uci.edu/static/public/183/communities+and+crime.zip",
            "communities.data",
        ),
        Link(
            "https://archive.ics.uci.edu/ml/machine-learning-databases/communities/communities.data"
        ),
    ),
    by_hand="communities.data inside https://archive.ics.uci.edu/static/public/183/communities+and+crime.zip",
)


def read(path: Path, *, sensitive: str = SENSITIVE) -> Table:
    """Read ``communities.data``, drop identifiers and sparse columns, and fill missing values with medians.

    A column is sparse if more than 20 % of its values are missing. Medians are taken over all rows,
    as in the paper; in the real file only one value is missing.
    """
    raw = pd.read_csv(path, names=list(COLUMNS), keep_default_na=False, na_values=["?"])
    values = numeric(raw.drop(columns=list(IDENTIFIERS)), file=path.name)
    steps = [("rows of communities.data", len(values))]
    values = values[values[[sensitive, TARGET]].notna().all(axis=1)]
    steps.append((f"{sensitive} and {TARGET} given", len(values)))
    features = values.drop(columns=TARGET)
    # The released code keeps columns with at least int(0.8 n) values, so that a share of exactly
    # 20 % missing stays.
    sparse = features.columns[
        features.notna().sum() < int((1 - LARGEST_MISSING_SHARE) * len(features))
    ]
    features = features.drop(columns=sparse)
    filled = int(features.isna().sum().sum())
    features = features.fillna(features.median())
    steps.append(
        (
            f"{len(sparse)} columns over 20 % missing dropped, {filled} missing values median-filled",
            len(features),
        )
    )
    return Table(
        features, values[TARGET].to_numpy(), "the original file communities.data", steps=steps
    )


RECIPE = Recipe(
    task="regression",
    sensitive=SENSITIVE,
    sources=(Source("official", FILE, read, (1_994,), 99),),
    card=Card(
        measured=(
            "Each row is one of 1,994 US communities. It combines the census and the police survey of 1990 with the "
            "crime reports of 1995."
        ),
        by=(
            "Michael Redmond compiled the table in 2009 from data of the US Census, LEMAS and the FBI. The UCI "
            "repository distributes it."
        ),
        sensitive=(
            "In the text variant S is the share of Black residents (racepctblack). In the reference variant S is the "
            "number of people per household (householdsize)."
        ),
        target="Y is the number of violent crimes per resident, rescaled to [0, 1].",
        problems=(
            "The released code selects S by its position and gets household size. The next column, racepctblack, "
            "stays in X.",
            "Every variable is cut at three standard deviations and given with two digits. Many values are therefore "
            "tied, and many are exactly 0 or 1.",
            "The other columns determine racepctblack almost linearly: they explain 95 % of its variance.",
            "The donor left out the communities without a count of rapes. Many of these are in the Midwest.",
        ),
        terms="The UCI repository distributes the data under the license CC BY 4.0.",
        not_for=(
            "Nothing follows about persons, because the rows are places (ecological fallacy).",
            "Nothing follows about crime that was not recorded, because police practice differs between places.",
        ),
    ),
)
