"""Optimal accept/reject policies when only the accepted reveal their outcome (the selective-labels problem).

Importing this package imports no heavy library: each name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from lenience.__about__ import __version__

if TYPE_CHECKING:
    from lenience.analysis.acceptance_by_arrival import ByArrival as ByArrival
    from lenience.analysis.acceptance_by_arrival import acceptance_by_arrival as acceptance_by_arrival
    from lenience.analysis.characteristics import Characteristics as Characteristics
    from lenience.analysis.characteristics import characteristics as characteristics
    from lenience.analysis.delay import evaluate_pending as evaluate_pending
    from lenience.analysis.delay import value_by_delay as value_by_delay
    from lenience.analysis.delay import values_by_law as values_by_law
    from lenience.analysis.drift import Drift as Drift
    from lenience.analysis.drift import drift_study as drift_study
    from lenience.analysis.evaluate import evaluate as evaluate
    from lenience.analysis.fairness import group_fates as group_fates
    from lenience.analysis.fairness import segment_fates as segment_fates
    from lenience.analysis.off_policy import OffPolicy as OffPolicy
    from lenience.analysis.off_policy import off_policy as off_policy
    from lenience.analysis.regret import regret_table as regret_table
    from lenience.analysis.sweep import Sweep as Sweep
    from lenience.analysis.sweep import load_sweep as load_sweep
    from lenience.analysis.sweep import run_sweep as run_sweep
    from lenience.client.client import Client as Client
    from lenience.client.client import ServiceError as ServiceError
    from lenience.core.belief import Belief as Belief
    from lenience.core.bounds import Bounds as Bounds
    from lenience.core.certificate import Certificate as Certificate
    from lenience.core.errors import InputError as InputError
    from lenience.core.errors import TooLargeError as TooLargeError
    from lenience.core.protocols import Policy as Policy
    from lenience.data.fico import load_fico as load_fico
    from lenience.data.german import load_german_credit as load_german_credit
    from lenience.history.fit import History as History
    from lenience.history.fit import fit_history as fit_history
    from lenience.models.bayesian_logistic import BayesianLogistic as BayesianLogistic
    from lenience.models.binning import Binning as Binning
    from lenience.models.bootstrap import Bootstrap as Bootstrap
    from lenience.models.cells import Cells as Cells
    from lenience.models.curve import Curve as Curve
    from lenience.models.from_history import FromHistory as FromHistory
    from lenience.models.from_history import SelectiveLabelsWarning as SelectiveLabelsWarning
    from lenience.models.neighbours import Neighbours as Neighbours
    from lenience.models.own_counts import Independent as Independent
    from lenience.models.own_counts import skeptical as skeptical
    from lenience.models.protocol import Model as Model
    from lenience.models.protocol import beliefs as beliefs
    from lenience.models.protocol import shrinkage as shrinkage
    from lenience.models.shared import Shared as Shared
    from lenience.objectives.average_reward import AverageReward as AverageReward
    from lenience.objectives.delayed import Delayed as Delayed
    from lenience.objectives.discounted import Discounted as Discounted
    from lenience.objectives.finite_horizon import FiniteHorizon as FiniteHorizon
    from lenience.paper import check_paper as check_paper
    from lenience.paper.claim import Claim as Claim
    from lenience.plot.simulate import plot_acceptance_by_arrival as plot_acceptance_by_arrival
    from lenience.plot.simulate import plot_comparison as plot_comparison
    from lenience.plot.simulate import plot_drift as plot_drift
    from lenience.plot.simulate import plot_regret_over_time as plot_regret_over_time
    from lenience.policies.beliefs.bayes_ucb import BayesUCB as BayesUCB
    from lenience.policies.beliefs.constant import Constant as Constant
    from lenience.policies.beliefs.decaying_epsilon import DecayingEpsilon as DecayingEpsilon
    from lenience.policies.beliefs.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
    from lenience.policies.beliefs.explore_then_exploit import ExploreThenExploit as ExploreThenExploit
    from lenience.policies.beliefs.exposure import ExposurePolicy as ExposurePolicy
    from lenience.policies.beliefs.exposure_certificate import ExposureCertificate as ExposureCertificate
    from lenience.policies.beliefs.forgetting import Forgetting as Forgetting
    from lenience.policies.beliefs.gittins import Gittins as Gittins
    from lenience.policies.beliefs.greedy import Greedy as Greedy
    from lenience.policies.beliefs.kl_ucb import KLUCB as KLUCB
    from lenience.policies.beliefs.logistic import Logistic as Logistic
    from lenience.policies.beliefs.optimal import OptimalPolicy as OptimalPolicy
    from lenience.policies.beliefs.pending import Blind as Blind
    from lenience.policies.beliefs.pending import Capped as Capped
    from lenience.policies.beliefs.persistent import Persistent as Persistent
    from lenience.policies.beliefs.semi_logistic import SemiLogistic as SemiLogistic
    from lenience.policies.beliefs.thompson import Thompson as Thompson
    from lenience.policies.check import check_policy as check_policy
    from lenience.policies.features.outcome_matching import UnawaitedOutcomeWarning as UnawaitedOutcomeWarning
    from lenience.policies.features.policy import FeaturePolicy as FeaturePolicy
    from lenience.policies.features.policy import NeverStartsWarning as NeverStartsWarning
    from lenience.policies.registry import policy_from_json as policy_from_json
    from lenience.policies.registry import policy_named as policy_named
    from lenience.policies.registry import policy_names as policy_names
    from lenience.reports.paper_report import write_paper_report as write_paper_report
    from lenience.reports.segment_report import segments_report as segments_report
    from lenience.segments.arrival_counts import ArrivalCounts as ArrivalCounts
    from lenience.segments.exposure_limits import Exposure as Exposure
    from lenience.segments.exposure_limits import exposure_limits as exposure_limits
    from lenience.segments.policies import SegmentPolicies as SegmentPolicies
    from lenience.segments.segments import Segment as Segment
    from lenience.segments.segments import Segments as Segments
    from lenience.segments.similar_names import AlikeSegmentsWarning as AlikeSegmentsWarning
    from lenience.segments.staleness import loss_of_keeping as loss_of_keeping
    from lenience.segments.starting import shut_out_at_outset as shut_out_at_outset
    from lenience.segments.starting import starting_volume as starting_volume
    from lenience.segments.starting import starts as starts
    from lenience.segments.thresholds import Thresholds as Thresholds
    from lenience.simulation.compare import compare_policies as compare_policies
    from lenience.simulation.drifting_worlds import ChangePoints as ChangePoints
    from lenience.simulation.drifting_worlds import RandomWalk as RandomWalk
    from lenience.simulation.drifting_worlds import Redrawn as Redrawn
    from lenience.simulation.label_delay import LabelDelay as LabelDelay
    from lenience.simulation.late_labels import LateLabels as LateLabels
    from lenience.simulation.past_rows import PastRows as PastRows
    from lenience.simulation.replay import ReplayResult as ReplayResult
    from lenience.simulation.replay import replay as replay
    from lenience.simulation.result import Estimate as Estimate
    from lenience.simulation.result import Simulation as Simulation
    from lenience.simulation.world_names import world_named as world_named
    from lenience.simulation.world_names import world_names as world_names
    from lenience.simulation.worlds import Bernoulli as Bernoulli
    from lenience.simulation.worlds import FromPrior as FromPrior
    from lenience.simulation.worlds import Mixture as Mixture
    from lenience.solvers.stopping.gittins_index import gittins_index as gittins_index
    from lenience.solvers.stopping.gittins_index import gittins_table as gittins_table
    from lenience.solvers.stopping.leniency_rate import leniency_rate as leniency_rate
    from lenience.solvers.stopping.paper_values import PaperTable as PaperTable
    from lenience.solvers.stopping.paper_values import paper_values as paper_values

_HOME = {
    "AlikeSegmentsWarning": "segments.similar_names",
    "ArrivalCounts": "segments.arrival_counts",
    "AverageReward": "objectives.average_reward",
    "BayesUCB": "policies.beliefs.bayes_ucb",
    "BayesianLogistic": "models.bayesian_logistic",
    "Belief": "core.belief",
    "Bernoulli": "simulation.worlds",
    "Binning": "models.binning",
    "Blind": "policies.beliefs.pending",
    "Bootstrap": "models.bootstrap",
    "Bounds": "core.bounds",
    "ByArrival": "analysis.acceptance_by_arrival",
    "Capped": "policies.beliefs.pending",
    "Cells": "models.cells",
    "Certificate": "core.certificate",
    "ChangePoints": "simulation.drifting_worlds",
    "Characteristics": "analysis.characteristics",
    "Claim": "paper.claim",
    "Client": "client.client",
    "Constant": "policies.beliefs.constant",
    "Curve": "models.curve",
    "DecayingEpsilon": "policies.beliefs.decaying_epsilon",
    "Delayed": "objectives.delayed",
    "Discounted": "objectives.discounted",
    "Drift": "analysis.drift",
    "EpsilonGreedy": "policies.beliefs.epsilon_greedy",
    "Estimate": "simulation.result",
    "ExploreThenExploit": "policies.beliefs.explore_then_exploit",
    "Exposure": "segments.exposure_limits",
    "ExposureCertificate": "policies.beliefs.exposure_certificate",
    "ExposurePolicy": "policies.beliefs.exposure",
    "FeaturePolicy": "policies.features.policy",
    "FiniteHorizon": "objectives.finite_horizon",
    "Forgetting": "policies.beliefs.forgetting",
    "FromHistory": "models.from_history",
    "FromPrior": "simulation.worlds",
    "Gittins": "policies.beliefs.gittins",
    "Greedy": "policies.beliefs.greedy",
    "History": "history.fit",
    "Independent": "models.own_counts",
    "InputError": "core.errors",
    "KLUCB": "policies.beliefs.kl_ucb",
    "LabelDelay": "simulation.label_delay",
    "LateLabels": "simulation.late_labels",
    "Logistic": "policies.beliefs.logistic",
    "Mixture": "simulation.worlds",
    "Model": "models.protocol",
    "Neighbours": "models.neighbours",
    "NeverStartsWarning": "policies.features.policy",
    "OffPolicy": "analysis.off_policy",
    "OptimalPolicy": "policies.beliefs.optimal",
    "PaperTable": "solvers.stopping.paper_values",
    "Persistent": "policies.beliefs.persistent",
    "Policy": "core.protocols",
    "RandomWalk": "simulation.drifting_worlds",
    "Redrawn": "simulation.drifting_worlds",
    "PastRows": "simulation.past_rows",
    "ReplayResult": "simulation.replay",
    "Segment": "segments.segments",
    "SegmentPolicies": "segments.policies",
    "Segments": "segments.segments",
    "SelectiveLabelsWarning": "models.from_history",
    "SemiLogistic": "policies.beliefs.semi_logistic",
    "ServiceError": "client.client",
    "Shared": "models.shared",
    "Simulation": "simulation.result",
    "Sweep": "analysis.sweep",
    "Thompson": "policies.beliefs.thompson",
    "Thresholds": "segments.thresholds",
    "TooLargeError": "core.errors",
    "UnawaitedOutcomeWarning": "policies.features.outcome_matching",
    "acceptance_by_arrival": "analysis.acceptance_by_arrival",
    "beliefs": "models.protocol",
    "characteristics": "analysis.characteristics",
    "check_paper": "paper",
    "check_policy": "policies.check",
    "compare_policies": "simulation.compare",
    "drift_study": "analysis.drift",
    "evaluate": "analysis.evaluate",
    "evaluate_pending": "analysis.delay",
    "exposure_limits": "segments.exposure_limits",
    "fit_history": "history.fit",
    "gittins_index": "solvers.stopping.gittins_index",
    "gittins_table": "solvers.stopping.gittins_index",
    "group_fates": "analysis.fairness",
    "leniency_rate": "solvers.stopping.leniency_rate",
    "load_fico": "data.fico",
    "load_german_credit": "data.german",
    "load_sweep": "analysis.sweep",
    "loss_of_keeping": "segments.staleness",
    "off_policy": "analysis.off_policy",
    "paper_values": "solvers.stopping.paper_values",
    "plot_acceptance_by_arrival": "plot.simulate",
    "plot_comparison": "plot.simulate",
    "plot_drift": "plot.simulate",
    "plot_regret_over_time": "plot.simulate",
    "policy_from_json": "policies.registry",
    "policy_named": "policies.registry",
    "policy_names": "policies.registry",
    "regret_table": "analysis.regret",
    "replay": "simulation.replay",
    "run_sweep": "analysis.sweep",
    "segment_fates": "analysis.fairness",
    "segments_report": "reports.segment_report",
    "shrinkage": "models.protocol",
    "shut_out_at_outset": "segments.starting",
    "skeptical": "models.own_counts",
    "starting_volume": "segments.starting",
    "starts": "segments.starting",
    "value_by_delay": "analysis.delay",
    "values_by_law": "analysis.delay",
    "world_named": "simulation.world_names",
    "world_names": "simulation.world_names",
    "write_paper_report": "reports.paper_report",
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
