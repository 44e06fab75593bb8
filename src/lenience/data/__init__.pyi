from .fico import load_fico as load_fico
from .german import load_german_credit as load_german_credit
from .sample import sample_loans as sample_loans
