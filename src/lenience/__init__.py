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
    from lenience.client import Client as Client
    from lenience.client import ServiceError as ServiceError
    from lenience.data.fico import load_fico as load_fico
    from lenience.data.german import load_german_credit as load_german_credit
    from lenience.errors import InputError as InputError
    from lenience.errors import TooLargeError as TooLargeError
    from lenience.gittins import gittins_index as gittins_index
    from lenience.gittins import gittins_table as gittins_table
    from lenience.history import History as History
    from lenience.history import fit_history as fit_history
    from lenience.leniency import leniency_rate as leniency_rate
    from lenience.model.bayesian_logistic import BayesianLogistic as BayesianLogistic
    from lenience.model.binning import Binning as Binning
    from lenience.model.bootstrap import Bootstrap as Bootstrap
    from lenience.model.cells import Cells as Cells
    from lenience.model.curve import Curve as Curve
    from lenience.model.independent import Independent as Independent
    from lenience.model.independent import skeptical as skeptical
    from lenience.model.neighbours import Neighbours as Neighbours
    from lenience.model.past import FromHistory as FromHistory
    from lenience.model.past import SelectiveLabelsWarning as SelectiveLabelsWarning
    from lenience.model.protocol import Model as Model
    from lenience.model.protocol import beliefs as beliefs
    from lenience.model.protocol import shrinkage as shrinkage
    from lenience.model.shared import Shared as Shared
    from lenience.objective.average import AverageReward as AverageReward
    from lenience.objective.delayed import Delayed as Delayed
    from lenience.objective.discounted import Discounted as Discounted
    from lenience.objective.horizon import FiniteHorizon as FiniteHorizon
    from lenience.plot.simulate import plot_acceptance_by_arrival as plot_acceptance_by_arrival
    from lenience.plot.simulate import plot_comparison as plot_comparison
    from lenience.plot.simulate import plot_drift as plot_drift
    from lenience.plot.simulate import plot_regret_over_time as plot_regret_over_time
    from lenience.policy.awaited import UnawaitedOutcomeWarning as UnawaitedOutcomeWarning
    from lenience.policy.bayes_ucb import BayesUCB as BayesUCB
    from lenience.policy.check import check_policy as check_policy
    from lenience.policy.constant import Constant as Constant
    from lenience.policy.decaying_epsilon import DecayingEpsilon as DecayingEpsilon
    from lenience.policy.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
    from lenience.policy.explore_exploit import ExploreThenExploit as ExploreThenExploit
    from lenience.policy.exposure import ExposurePolicy as ExposurePolicy
    from lenience.policy.exposure_certificate import ExposureCertificate as ExposureCertificate
    from lenience.policy.features import FeaturePolicy as FeaturePolicy
    from lenience.policy.features import NeverStartsWarning as NeverStartsWarning
    from lenience.policy.forgetting import Forgetting as Forgetting
    from lenience.policy.gittins import Gittins as Gittins
    from lenience.policy.greedy import Greedy as Greedy
    from lenience.policy.kl_ucb import KLUCB as KLUCB
    from lenience.policy.logistic import Logistic as Logistic
    from lenience.policy.optimal import OptimalPolicy as OptimalPolicy
    from lenience.policy.pending import Blind as Blind
    from lenience.policy.pending import Capped as Capped
    from lenience.policy.persistent import Persistent as Persistent
    from lenience.policy.protocol import Policy as Policy
    from lenience.policy.registry import policy_from_json as policy_from_json
    from lenience.policy.registry import policy_named as policy_named
    from lenience.policy.registry import policy_names as policy_names
    from lenience.policy.semi_logistic import SemiLogistic as SemiLogistic
    from lenience.policy.thompson import Thompson as Thompson
    from lenience.segments.alike import AlikeSegmentsWarning as AlikeSegmentsWarning
    from lenience.segments.arrivals import ArrivalCounts as ArrivalCounts
    from lenience.segments.late import Exposure as Exposure
    from lenience.segments.late import exposure_limits as exposure_limits
    from lenience.segments.moved import loss_of_keeping as loss_of_keeping
    from lenience.segments.segment import Segment as Segment
    from lenience.segments.segment import Segments as Segments
    from lenience.segments.solved import SegmentPolicies as SegmentPolicies
    from lenience.segments.starting import shut_out_at_outset as shut_out_at_outset
    from lenience.segments.starting import starting_volume as starting_volume
    from lenience.segments.starting import starts as starts
    from lenience.segments.thresholds import Thresholds as Thresholds
    from lenience.simulate.drifting import ChangePoints as ChangePoints
    from lenience.simulate.drifting import RandomWalk as RandomWalk
    from lenience.simulate.drifting import Redrawn as Redrawn
    from lenience.simulate.lag import LabelDelay as LabelDelay
    from lenience.simulate.late import LateLabels as LateLabels
    from lenience.simulate.named import world_named as world_named
    from lenience.simulate.named import world_names as world_names
    from lenience.simulate.replay import Replay as Replay
    from lenience.simulate.result import Estimate as Estimate
    from lenience.simulate.result import Simulation as Simulation
    from lenience.simulate.runner import compare_policies as compare_policies
    from lenience.simulate.worlds import Bernoulli as Bernoulli
    from lenience.simulate.worlds import FromPrior as FromPrior
    from lenience.simulate.worlds import Mixture as Mixture
    from lenience.solver.paper import PaperTable as PaperTable
    from lenience.solver.paper import paper_values as paper_values
    from lenience.study.average import regret_table as regret_table
    from lenience.study.characteristics import Characteristics as Characteristics
    from lenience.study.characteristics import characteristics as characteristics
    from lenience.study.delay import evaluate_pending as evaluate_pending
    from lenience.study.delay import value_by_delay as value_by_delay
    from lenience.study.delay import values_by_law as values_by_law
    from lenience.study.drift import Drift as Drift
    from lenience.study.drift import drift_study as drift_study
    from lenience.study.evaluate import evaluate as evaluate
    from lenience.study.fairness import group_fates as group_fates
    from lenience.study.fairness import segment_fates as segment_fates
    from lenience.study.off_policy import OffPolicy as OffPolicy
    from lenience.study.off_policy import off_policy as off_policy
    from lenience.study.paper import check_paper as check_paper
    from lenience.study.paper.claim import Claim as Claim
    from lenience.study.paper_report import write_paper_report as write_paper_report
    from lenience.study.replay import Replayed as Replayed
    from lenience.study.replay import replay as replay
    from lenience.study.segment_report import segments_report as segments_report
    from lenience.study.sequence import ByArrival as ByArrival
    from lenience.study.sequence import acceptance_by_arrival as acceptance_by_arrival
    from lenience.study.sweep import Sweep as Sweep
    from lenience.study.sweep import load_sweep as load_sweep
    from lenience.study.sweep import run_sweep as run_sweep

_HOME = {
    "AlikeSegmentsWarning": "segments.alike",
    "ArrivalCounts": "segments.arrivals",
    "AverageReward": "objective.average",
    "BayesUCB": "policy.bayes_ucb",
    "BayesianLogistic": "model.bayesian_logistic",
    "Belief": "belief",
    "Bernoulli": "simulate.worlds",
    "Binning": "model.binning",
    "Blind": "policy.pending",
    "Bootstrap": "model.bootstrap",
    "Bounds": "bounds",
    "ByArrival": "study.sequence",
    "Capped": "policy.pending",
    "Cells": "model.cells",
    "Certificate": "certificate",
    "ChangePoints": "simulate.drifting",
    "Characteristics": "study.characteristics",
    "Claim": "study.paper.claim",
    "Client": "client",
    "Constant": "policy.constant",
    "Curve": "model.curve",
    "DecayingEpsilon": "policy.decaying_epsilon",
    "Delayed": "objective.delayed",
    "Discounted": "objective.discounted",
    "Drift": "study.drift",
    "EpsilonGreedy": "policy.epsilon_greedy",
    "Estimate": "simulate.result",
    "ExploreThenExploit": "policy.explore_exploit",
    "Exposure": "segments.late",
    "ExposureCertificate": "policy.exposure_certificate",
    "ExposurePolicy": "policy.exposure",
    "FeaturePolicy": "policy.features",
    "FiniteHorizon": "objective.horizon",
    "Forgetting": "policy.forgetting",
    "FromHistory": "model.past",
    "FromPrior": "simulate.worlds",
    "Gittins": "policy.gittins",
    "Greedy": "policy.greedy",
    "History": "history",
    "Independent": "model.independent",
    "InputError": "errors",
    "KLUCB": "policy.kl_ucb",
    "LabelDelay": "simulate.lag",
    "LateLabels": "simulate.late",
    "Logistic": "policy.logistic",
    "Mixture": "simulate.worlds",
    "Model": "model.protocol",
    "Neighbours": "model.neighbours",
    "NeverStartsWarning": "policy.features",
    "OffPolicy": "study.off_policy",
    "OptimalPolicy": "policy.optimal",
    "PaperTable": "solver.paper",
    "Persistent": "policy.persistent",
    "Policy": "policy.protocol",
    "RandomWalk": "simulate.drifting",
    "Redrawn": "simulate.drifting",
    "Replay": "simulate.replay",
    "Replayed": "study.replay",
    "Segment": "segments.segment",
    "SegmentPolicies": "segments.solved",
    "Segments": "segments.segment",
    "SelectiveLabelsWarning": "model.past",
    "SemiLogistic": "policy.semi_logistic",
    "ServiceError": "client",
    "Shared": "model.shared",
    "Simulation": "simulate.result",
    "Sweep": "study.sweep",
    "Thompson": "policy.thompson",
    "Thresholds": "segments.thresholds",
    "TooLargeError": "errors",
    "UnawaitedOutcomeWarning": "policy.awaited",
    "acceptance_by_arrival": "study.sequence",
    "beliefs": "model.protocol",
    "characteristics": "study.characteristics",
    "check_paper": "study.paper",
    "check_policy": "policy.check",
    "compare_policies": "simulate.runner",
    "drift_study": "study.drift",
    "evaluate": "study.evaluate",
    "evaluate_pending": "study.delay",
    "exposure_limits": "segments.late",
    "fit_history": "history",
    "gittins_index": "gittins",
    "gittins_table": "gittins",
    "group_fates": "study.fairness",
    "leniency_rate": "leniency",
    "load_fico": "data.fico",
    "load_german_credit": "data.german",
    "load_sweep": "study.sweep",
    "loss_of_keeping": "segments.moved",
    "off_policy": "study.off_policy",
    "paper_values": "solver.paper",
    "plot_acceptance_by_arrival": "plot.simulate",
    "plot_comparison": "plot.simulate",
    "plot_drift": "plot.simulate",
    "plot_regret_over_time": "plot.simulate",
    "policy_from_json": "policy.registry",
    "policy_named": "policy.registry",
    "policy_names": "policy.registry",
    "regret_table": "study.average",
    "replay": "study.replay",
    "run_sweep": "study.sweep",
    "segment_fates": "study.fairness",
    "segments_report": "study.segment_report",
    "shrinkage": "model.protocol",
    "shut_out_at_outset": "segments.starting",
    "skeptical": "model.independent",
    "starting_volume": "segments.starting",
    "starts": "segments.starting",
    "value_by_delay": "study.delay",
    "values_by_law": "study.delay",
    "world_named": "simulate.named",
    "world_names": "simulate.named",
    "write_paper_report": "study.paper_report",
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
