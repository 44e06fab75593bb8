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
    from lenience.data.fico import load_fico as load_fico
    from lenience.data.german import load_german_credit as load_german_credit
    from lenience.errors import InputError as InputError
    from lenience.errors import TooLargeError as TooLargeError
    from lenience.gittins import gittins_index as gittins_index
    from lenience.gittins import gittins_table as gittins_table
    from lenience.history import History as History
    from lenience.history import fit_history as fit_history
    from lenience.leniency import leniency_rate as leniency_rate
    from lenience.model.curve import Curve as Curve
    from lenience.model.independent import Independent as Independent
    from lenience.model.independent import skeptical as skeptical
    from lenience.model.past import FromHistory as FromHistory
    from lenience.model.past import SelectiveLabelsWarning as SelectiveLabelsWarning
    from lenience.model.protocol import Model as Model
    from lenience.model.protocol import beliefs as beliefs
    from lenience.model.protocol import shrinkage as shrinkage
    from lenience.model.shared import Shared as Shared
    from lenience.objective.average import AverageReward as AverageReward
    from lenience.objective.discounted import Discounted as Discounted
    from lenience.objective.horizon import FiniteHorizon as FiniteHorizon
    from lenience.policy.constant import Constant as Constant
    from lenience.policy.explore_exploit import ExploreThenExploit as ExploreThenExploit
    from lenience.policy.greedy import Greedy as Greedy
    from lenience.policy.optimal import OptimalPolicy as OptimalPolicy
    from lenience.policy.persistent import Persistent as Persistent
    from lenience.policy.protocol import Policy as Policy
    from lenience.segments.arrivals import ArrivalCounts as ArrivalCounts
    from lenience.segments.moved import loss_of_keeping as loss_of_keeping
    from lenience.segments.segment import Segment as Segment
    from lenience.segments.segment import Segments as Segments
    from lenience.segments.solved import SegmentPolicies as SegmentPolicies
    from lenience.segments.starting import shut_out_at_outset as shut_out_at_outset
    from lenience.segments.starting import starting_volume as starting_volume
    from lenience.segments.starting import starts as starts
    from lenience.segments.thresholds import Thresholds as Thresholds
    from lenience.solver.paper import PaperTable as PaperTable
    from lenience.solver.paper import paper_values as paper_values
    from lenience.study.average import regret_table as regret_table
    from lenience.study.characteristics import Characteristics as Characteristics
    from lenience.study.characteristics import characteristics as characteristics
    from lenience.study.evaluate import evaluate as evaluate

_HOME = {
    "ArrivalCounts": "segments.arrivals",
    "AverageReward": "objective.average",
    "Belief": "belief",
    "Bounds": "bounds",
    "Certificate": "certificate",
    "Characteristics": "study.characteristics",
    "Constant": "policy.constant",
    "Curve": "model.curve",
    "Discounted": "objective.discounted",
    "ExploreThenExploit": "policy.explore_exploit",
    "FiniteHorizon": "objective.horizon",
    "FromHistory": "model.past",
    "Greedy": "policy.greedy",
    "History": "history",
    "Independent": "model.independent",
    "InputError": "errors",
    "Model": "model.protocol",
    "OptimalPolicy": "policy.optimal",
    "PaperTable": "solver.paper",
    "Persistent": "policy.persistent",
    "Policy": "policy.protocol",
    "Segment": "segments.segment",
    "SegmentPolicies": "segments.solved",
    "Segments": "segments.segment",
    "SelectiveLabelsWarning": "model.past",
    "Shared": "model.shared",
    "Thresholds": "segments.thresholds",
    "TooLargeError": "errors",
    "beliefs": "model.protocol",
    "characteristics": "study.characteristics",
    "evaluate": "study.evaluate",
    "fit_history": "history",
    "gittins_index": "gittins",
    "gittins_table": "gittins",
    "leniency_rate": "leniency",
    "load_fico": "data.fico",
    "load_german_credit": "data.german",
    "loss_of_keeping": "segments.moved",
    "paper_values": "solver.paper",
    "regret_table": "study.average",
    "shrinkage": "model.protocol",
    "shut_out_at_outset": "segments.starting",
    "skeptical": "model.independent",
    "starting_volume": "segments.starting",
    "starts": "segments.starting",
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
