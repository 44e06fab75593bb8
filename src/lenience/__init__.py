"""Optimal accept/reject policies when only the accepted reveal their outcome (the selective-labels problem).

Importing this package imports no heavy library: each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lenience.__about__ import __version__

if TYPE_CHECKING:
    from lenience.belief import Belief as Belief
    from lenience.bounds import Bounds as Bounds
    from lenience.certificate import Certificate as Certificate
    from lenience.errors import InputError as InputError
    from lenience.errors import TooLargeError as TooLargeError
    from lenience.gittins import gittins_index as gittins_index
    from lenience.gittins import gittins_table as gittins_table
    from lenience.leniency import leniency_rate as leniency_rate
    from lenience.model.bayesian_logistic import BayesianLogistic as BayesianLogistic
    from lenience.model.bootstrap import Bootstrap as Bootstrap
    from lenience.model.cells import Cells as Cells
    from lenience.model.neighbours import Neighbours as Neighbours
    from lenience.objective.average import AverageReward as AverageReward
    from lenience.objective.discounted import Discounted as Discounted
    from lenience.objective.horizon import FiniteHorizon as FiniteHorizon
    from lenience.policy.constant import Constant as Constant
    from lenience.policy.explore_exploit import ExploreThenExploit as ExploreThenExploit
    from lenience.policy.features import FeaturePolicy as FeaturePolicy
    from lenience.policy.greedy import Greedy as Greedy
    from lenience.policy.optimal import OptimalPolicy as OptimalPolicy
    from lenience.policy.persistent import Persistent as Persistent
    from lenience.policy.protocol import Policy as Policy
    from lenience.solver.paper import PaperTable as PaperTable
    from lenience.solver.paper import paper_values as paper_values
    from lenience.study.average import regret_table as regret_table
    from lenience.study.characteristics import Characteristics as Characteristics
    from lenience.study.characteristics import characteristics as characteristics
    from lenience.study.evaluate import evaluate as evaluate
    from lenience.study.off_policy import OffPolicy as OffPolicy
    from lenience.study.off_policy import off_policy as off_policy
    from lenience.study.replay import Replay as Replay
    from lenience.study.replay import replay as replay

_HOME = {
    "AverageReward": "objective.average",
    "BayesianLogistic": "model.bayesian_logistic",
    "Belief": "belief",
    "Bootstrap": "model.bootstrap",
    "Bounds": "bounds",
    "Cells": "model.cells",
    "Certificate": "certificate",
    "Characteristics": "study.characteristics",
    "Constant": "policy.constant",
    "Discounted": "objective.discounted",
    "ExploreThenExploit": "policy.explore_exploit",
    "FeaturePolicy": "policy.features",
    "FiniteHorizon": "objective.horizon",
    "Greedy": "policy.greedy",
    "InputError": "errors",
    "Neighbours": "model.neighbours",
    "OffPolicy": "study.off_policy",
    "OptimalPolicy": "policy.optimal",
    "PaperTable": "solver.paper",
    "Persistent": "policy.persistent",
    "Policy": "policy.protocol",
    "Replay": "study.replay",
    "TooLargeError": "errors",
    "characteristics": "study.characteristics",
    "evaluate": "study.evaluate",
    "gittins_index": "gittins",
    "gittins_table": "gittins",
    "leniency_rate": "leniency",
    "off_policy": "study.off_policy",
    "paper_values": "solver.paper",
    "regret_table": "study.average",
    "replay": "study.replay",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'lenience' has no attribute {name!r}")
    value = getattr(import_module(f"lenience.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
