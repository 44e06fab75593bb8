from .check import check_paper as check_paper
from .claim import Claim as Claim
from .discounted import known_p as known_p
