"""The classes of what fails: every failing certificate belongs to one sentence, and none is counted twice."""

from __future__ import annotations

import json
from pathlib import Path

from frhsic_core.paper.statements import registry
from frhsic_core.paper.statements.sentences import KINDS, concerned, counts, failing, sentences, theorems

ROOT = Path(__file__).resolve().parents[3]
ROWS = json.loads((ROOT / "book" / "claims" / "verdicts.json").read_text(encoding="utf-8"))


def test_every_failing_certificate_belongs_to_one_sentence() -> None:
    broken = [row for row in ROWS if row["verdict"] == "fails as stated"]
    assert broken
    for row in broken:
        found = [s.key for s in sentences() if concerned(s, [row])]
        assert len(found) == 1, f"{row['statement']}: {row['claim']} belongs to {found or 'no sentence'}"


def test_every_text_of_a_sentence_finds_failing_certificates_only() -> None:
    for s in sentences():
        for text in s.certificates:
            found = [row for row in ROWS if row["statement"] in s.statements and text in row["claim"]]
            assert found, f"{s.key}: no certificate says {text!r}"
            assert {row["verdict"] for row in found} == {"fails as stated"}, s.key
    assert len(failing(ROWS)) == len(sentences())


def test_rows_are_well_formed() -> None:
    assert len({s.key for s in sentences()}) == len(sentences())
    for s in sentences():
        assert s.kind in KINDS
        assert set(s.statements) <= set(registry.statements())
        assert s.place
        assert s.sentence
        assert s.holds
        # A numbered statement fails itself; what is said beside it is no theorem.
        assert s.kind != "numbered statement" or set(s.statements) <= set(theorems())
        # A theorem that fails is a numbered statement; a remark can fail as a whole without a number among these.
        assert s.itself == (s.kind == "numbered statement") or not set(s.statements) & set(theorems())


def test_counts_follow_from_the_record() -> None:
    found = counts(ROWS)
    assert found["theorems"] == 18
    assert found["theorems that hold"] == 13
    assert found["numbered statement"] == 2
    assert sum(found[kind] for kind in KINDS) < sum(row["verdict"] == "fails as stated" for row in ROWS)
    # A certificate that no longer fails takes its sentence with it; no verdict is typed.
    mended = [row | {"verdict": "holds"} if "kernels of any size" in row["claim"] else row for row in ROWS]
    fewer = {"theorems that hold": 17, "numbered statement": 1, "sentence": found["sentence"] - 1}
    assert counts(mended) == found | fewer
    assert counts([])["sentence"] == 0
