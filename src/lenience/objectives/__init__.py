"""What to maximise: one file per objective. Importing this package makes every objective known by its tag."""

from lenience.objectives.average_reward import AverageReward as AverageReward
from lenience.objectives.delayed import Delayed as Delayed
from lenience.objectives.discounted import Discounted as Discounted
from lenience.objectives.finite_horizon import FiniteHorizon as FiniteHorizon

__all__ = ["AverageReward", "Delayed", "Discounted", "FiniteHorizon"]
