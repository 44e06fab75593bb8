"""Which tests must notice a fault in which file, and what is left out because a fault there changes no promise."""

from __future__ import annotations

from typing import NamedTuple

# The parts of the library that are tried, in the order of the report.
PACKAGES = ("solvers", "policies", "objectives", "segments", "models", "service", "core", "analysis")


class Target(NamedTuple):
    """A file, the tests that must notice its faults, and the functions and constants that are not changed.

    The tests of ``small`` problems come first, without compiling the kernels: to compile one takes up to half a minute.
    """

    path: str
    tests: tuple[str, ...]
    small: tuple[str, ...] = ()
    skipped: frozenset[str] = frozenset()


SOLVERS = "src/lenience/solvers/"
BELIEFS = "src/lenience/policies/beliefs/"
FEATURES = "src/lenience/policies/features/"
SEGMENTS = "src/lenience/segments/"
MODELS = "src/lenience/models/"
OBJECTIVES = "src/lenience/objectives/"
DOMAIN = "src/lenience/service/domain/"
COMMANDS = "src/lenience/service/commands/"
STORAGE = "src/lenience/service/storage/"
ANALYSIS = "src/lenience/analysis/"

MARGINS = "tests/solvers/test_rounding_margins.py"
STOPPING = "tests/solvers/test_stopping.py"
STRIKE = STOPPING + " -k strike"
DELAYED = "tests/solvers/test_delayed.py"
KERNELS = "tests/solvers/test_kernels.py"
SOLVER_EFFORT = "tests/solvers/test_effort.py"
SMALL_EFFORT = SOLVER_EFFORT + " -k 'problem0 or problem4 or stopping and problem1'"
WALK = "tests/solvers/test_walk.py"
EXACT = "tests/analysis/test_exact.py"
EXPOSURE = "tests/policies/beliefs/test_exposure.py"
ESTIMATED_EXPOSURE = "tests/policies/beliefs/test_estimated_exposure.py"
OPTIMAL = "tests/policies/beliefs/test_optimal.py"
POLICIES = "tests/policies/beliefs/test_policies.py"
FEATURE_POLICY = "tests/policies/features/test_policy.py"
UNSEEN = "tests/policies/features/test_unseen.py"
DECISIONS = "tests/policies/features/test_decision_oracles.py"
FEATURE_MODELS = "tests/models/test_feature_models.py"
CALIBRATED = "tests/models/test_calibrated_score.py"
EXPLANATION = "tests/policies/features/test_explanation.py"
FEATURE_RULE = "tests/policies/features/test_feature_rule.py"
LIVE_MODELS = "tests/models/test_live_models.py"
LOGISTIC = "tests/models/test_bayesian_logistic.py"
BELIEF_MODELS = "tests/models/test_models.py"
ORACLES = "tests/models/test_model_oracles.py"
TABLES = "tests/service/domain/test_solved_tables.py"
TABLE_DETAILS = "tests/service/domain/test_table_details.py"
RULES = "tests/service/domain/test_rules.py"
ROLLOUT = "tests/service/commands/test_rollout.py"
REFERRAL = "tests/service/domain/test_referral.py"
REFERRALS = "tests/service/commands/test_referrals.py"
BLOCKS = "tests/solvers/test_blocks.py"
BLOCK_KERNELS = "tests/solvers/test_block_kernels.py"
FEATURE_OFFERS = "tests/policies/features/test_feature_offers.py"
OBJECTIVE_TESTS = "tests/objectives"
OFFER_BLOCK_KERNELS = "tests/solvers/test_offer_block_kernels.py"
OFFER_BLOCKS = "tests/solvers/test_offer_blocks.py"
LATE_OFFER_TABLES = "tests/service/domain/test_late_offer_tables.py"
ESTIMATED_TABLES = "tests/service/domain/test_estimated_tables.py"
DECIDING_OFFERS = "tests/service/commands/test_deciding_offers.py -k 'not postgresql'"
ENGINE = "tests/service/commands/test_engine.py -k 'not postgresql'"
OFFERS = "tests/solvers/test_offers.py -k 'not late_labels and not baselines and not hundred and not one_break_even'"
OFFER_KERNELS = "tests/solvers/test_offer_kernels.py"
LABEL_KERNELS = "tests/solvers/test_label_kernels.py"
LATE_OFFERS = "tests/solvers/test_offers.py -k 'late_labels and not 200'"
BASELINE_OFFERS = "tests/solvers/test_offers.py -k 'earns_its_value or baselines and offers0'"
OFFER_POLICIES = "tests/policies/beliefs/test_offer_policies.py"
EXACT_OFFERS = "tests/analysis/test_offers_exact.py"
HORIZON_OFFERS = "tests/solvers/test_horizon_offers.py -k 'not long_horizons'"
SMALL_HORIZON_OFFERS = "tests/solvers/test_horizon_offers.py -k 'rows_and_planes or off_the_lattice'"
SEGMENT_OFFERS = "tests/segments/test_segments_with_offers.py"
CAPACITY = "tests/segments/test_capacity.py"
RANKING = "tests/segments/test_ranking.py"
OFFER_DECISIONS = "tests/service/commands/test_offer_decisions.py -k 'not postgresql'"
OFFER_RULES = "tests/service/domain/test_offer_rules.py"
OUTCOME_BATCHES = "tests/service/commands/test_outcome_batches.py -k 'not postgresql'"
MONITORED = "tests/service/commands/test_monitored.py -k 'not postgresql'"
VERSIONS = "tests/service/commands/test_versions.py -k 'not postgresql'"
LATE_HORIZON = "tests/solvers/test_late_horizon.py"
LIMIT_TABLE = "tests/solvers/test_limit_table.py"
STOPPING_TIME = "tests/solvers/test_stopping_time.py"
BATCH_LEARNING = "tests/models/test_batch_learning.py"
SELECTION = "tests/models/test_selection.py"
MATURING = "tests/models/test_maturing.py"
TIMING = "tests/models/test_timing.py"
SHIFTED_COSTS = "tests/segments/test_shifted_costs.py"
BETWEEN_ROWS = "tests/service/domain/test_between_rows.py"
OFFER_TABLES = "tests/service/domain/test_offer_tables.py"
OVERALL_COUNTERS = "tests/service/domain/test_overall_counters.py"
OVERALL_LIMITS = "tests/service/commands/test_overall_limits.py -k 'not postgresql'"
OPEN_LOANS = "tests/service/commands/test_open_loans.py -k 'not postgresql'"
IMPORTS = "tests/service/commands/test_imports.py -k 'not postgresql'"

VERDICTS = "tests/service/domain/test_applicant_verdicts.py"
FEATURE_DECISIONS = "tests/service/commands/test_deciding_by_features.py -k 'not postgresql'"
POOLED = "tests/service/commands/test_pooled_models.py -k 'not postgresql'"
TOTALS = "tests/service/storage/test_totals.py"
WAITING = "tests/service/commands/test_waiting_list.py -k 'not postgresql'"
LOG_TREE = "tests/service/storage/test_log_tree.py -k 'not postgresql'"
FAIR_VERSIONS = "tests/service/commands/test_fair_versions.py -k 'not postgresql'"
FAIR = "tests/analysis/test_fair_optimum.py"

# Which numbers the functions of a package take: for all of its files.
NUMBERS = {
    "core": "tests/core/test_core_numbers.py",
    "models": "tests/models/test_model_numbers.py",
    "policies": "tests/policies/beliefs/test_policy_numbers.py",
    "segments": "tests/segments/test_segment_numbers.py",
    "service": "tests/service/domain/test_request_limits.py",
}

# Guesses of cost and effort: they decide how long a solve takes and what is refused, never what is proved.
EFFORT = frozenset(
    {
        "SECONDS_A_STATE", "MOST_STATES", "MOST_ROWS", "ATTEMPTS", "progress", "discounted_seconds", "horizon_seconds",
        "_horizon_width", "_guess_look_ahead", "_band_states", "_refuse_absurd", "NANOSECONDS", "MEMORY_LIMIT",
        "_LOG_GAP", "rows_for", "cap_for", "estimate_cost", "_plan", "_refuse", "_told", "MOST_UPDATES", "ROOM", "ROW",
        "TILE", "CELLS", "HALVINGS", "_aims", "_guess", "LONG", "MOST_SHOWN", "PRECISION", "SHOWN", "MOST_VOLUME",
        "_SHARE", "solve_seconds", "SECONDS", "PROOF_SECONDS", "Effort", "SECONDS_AN_UPDATE", "MOST_MEMORY",
        "START_SECONDS", "FINENESS", "_proves_quickly", "_compile", "_check_effort", "MOST_SEARCHED",
    }
)  # fmt: skip
OFFER_EFFORT = EFFORT | {
    "BLOCK", "SHORT", "MOST_TABLE", "MOST_SECONDS", "MOST_BYTES", "MOST_HORIZON", "SECONDS_AN_OFFER", "_check_effort",
    "_states", "_seconds", "_too_large", "offer_seconds", "horizon_offer_seconds",
}  # fmt: skip

TARGETS = (
    Target(SOLVERS + "stopping/free_labels.py", (OFFERS,), (OFFER_KERNELS, MARGINS), skipped=EFFORT),
    Target(SOLVERS + "stopping/band.py", (SOLVER_EFFORT,), (STRIKE, MARGINS, SMALL_EFFORT), skipped=EFFORT),
    Target(SOLVERS + "stopping/solve.py", (MARGINS, STOPPING), skipped=EFFORT),
    Target(
        SOLVERS + "stopping/evaluation.py",
        (EXACT,),
        (MARGINS + " -k 'certain_priors or policy_itself'",),
        skipped=EFFORT,
    ),
    Target(SOLVERS + "stopping/clairvoyant.py", (MARGINS, "tests/objectives", EXACT), skipped=EFFORT),
    Target(SOLVERS + "stopping/forward.py", (WALK, EXACT), skipped=EFFORT),
    Target(SOLVERS + "stopping/boundary_walk.py", (WALK, EXACT), skipped=EFFORT),
    Target(SOLVERS + "stopping/root.py", ("tests/solvers/test_root.py", MARGINS, STOPPING), skipped=EFFORT),
    Target(SOLVERS + "stopping/threshold.py", (MARGINS, STOPPING), skipped=EFFORT),
    Target(SOLVERS + "stopping/threshold_column.py", ("tests/solvers/test_threshold_table.py",), skipped=EFFORT),
    Target(SOLVERS + "stopping/threshold_table.py", ("tests/solvers/test_threshold_table.py",), skipped=EFFORT),
    Target(SOLVERS + "stopping/leniency_curve.py", ("tests/solvers/test_threshold_table.py", STOPPING), skipped=EFFORT),
    Target(SOLVERS + "stopping/leniency_rate.py", (STOPPING,), skipped=EFFORT),
    Target(SOLVERS + "stopping/gittins_index.py", (STOPPING,), skipped=EFFORT),
    Target(SOLVERS + "stopping/stopping_time.py", (STOPPING_TIME,), skipped=EFFORT),
    Target(SOLVERS + "stopping/paper_values.py", ("tests/solvers/test_paper_values.py",), skipped=EFFORT),
    Target(SOLVERS + "delayed/planes.py", (SOLVER_EFFORT,), (KERNELS, MARGINS), skipped=EFFORT),
    Target(SOLVERS + "delayed/limits.py", (SOLVER_EFFORT,), (KERNELS,), skipped=EFFORT),
    Target(SOLVERS + "delayed/recursion.py", (SOLVER_EFFORT, DELAYED), (KERNELS, MARGINS), skipped=EFFORT),
    Target(SOLVERS + "delayed/start.py", (SOLVER_EFFORT,), (KERNELS, MARGINS), skipped=EFFORT),
    Target(
        SOLVERS + "delayed/blocks.py",
        (BLOCKS,),
        (BLOCK_KERNELS, BLOCKS + " -k 'three_rates or rows_and_nodes'"),
        EFFORT,
    ),
    Target(SOLVERS + "delayed/horizon.py", (LATE_HORIZON,), (LATE_HORIZON + " -k plain_loop",), skipped=EFFORT),
    Target(
        SOLVERS + "delayed/horizon_blocks.py",
        (LATE_HORIZON,),
        (BLOCK_KERNELS, LATE_HORIZON + " -k rough_estimate"),
        skipped=EFFORT,
    ),
    Target(
        SOLVERS + "delayed/limit_table.py", (LIMIT_TABLE,), (LIMIT_TABLE + " -k 'made_up or powers'",), skipped=EFFORT
    ),
    Target(SOLVERS + "delayed/plan.py", (DELAYED, EXPOSURE), skipped=EFFORT),
    Target(
        SOLVERS + "delayed/estimate.py", (DELAYED + " -k 'grid or thousand'",), (KERNELS + " -k estimates",), EFFORT
    ),
    Target(
        SOLVERS + "delayed/evaluation.py",
        ("tests/analysis/test_delay.py",),
        ("tests/analysis/test_delay.py -k rough_evaluations",),
        EFFORT,
    ),
    Target(SOLVERS + "offers/band.py", (OFFERS,), (OFFER_KERNELS,), skipped=OFFER_EFFORT),
    Target(
        SOLVERS + "offers/accepted_sets.py",
        (OFFERS,),
        ("tests/solvers/test_accepted_sets.py", OFFER_KERNELS),
        skipped=OFFER_EFFORT,
    ),
    Target(SOLVERS + "offers/learning_gain.py", (OFFERS,), (OFFER_KERNELS,), skipped=OFFER_EFFORT),
    Target(SOLVERS + "offers/posterior_means.py", (OFFERS,), (OFFER_KERNELS,), skipped=OFFER_EFFORT),
    Target(SOLVERS + "offers/solve.py", (OFFERS, OFFER_POLICIES), (OFFER_KERNELS,), skipped=OFFER_EFFORT),
    Target(
        SOLVERS + "offers/delayed.py",
        (LATE_OFFERS, LATE_OFFER_TABLES),
        (OFFER_KERNELS + " -k pending",),
        skipped=OFFER_EFFORT,
    ),
    Target(SOLVERS + "offers/delayed_blocks.py", (OFFER_BLOCKS,), (OFFER_BLOCK_KERNELS,), skipped=EFFORT),
    Target(SOLVERS + "offers/evaluation.py", (BASELINE_OFFERS, EXACT_OFFERS), skipped=OFFER_EFFORT),
    Target(SOLVERS + "offers/forward.py", (EXACT_OFFERS,), skipped=OFFER_EFFORT),
    Target(SOLVERS + "offers/horizon.py", (HORIZON_OFFERS,), (SMALL_HORIZON_OFFERS,), skipped=OFFER_EFFORT),
    Target(SOLVERS + "offers/label_table.py", ("tests/solvers/test_label_table.py",), (LABEL_KERNELS,), EFFORT),
    Target(
        SOLVERS + "offers/late_label_table.py",
        ("tests/solvers/test_late_label_table.py", "tests/policies/features/test_late_offers.py"),
        (LABEL_KERNELS + " -k late_labels",),
        skipped=EFFORT | {"NODES"},
    ),
    Target(SOLVERS + "offers/pyramid.py", (EXACT_OFFERS,), skipped=OFFER_EFFORT),
    Target(BELIEFS + "optimal.py", (OPTIMAL, WALK, POLICIES, "tests/history/test_decisions.py"), skipped=EFFORT),
    Target(BELIEFS + "exposure.py", (EXPOSURE,), skipped=EFFORT),
    Target(BELIEFS + "exposure_certificate.py", (EXPOSURE, DELAYED), skipped=EFFORT),
    Target(BELIEFS + "estimated_exposure.py", (ESTIMATED_EXPOSURE, BLOCKS, EXPOSURE), skipped=EFFORT),
    Target(BELIEFS + "exposure_decisions.py", (EXPOSURE, BLOCKS, OFFER_POLICIES)),
    Target(BELIEFS + "horizon_exposure.py", (LATE_HORIZON,), skipped=EFFORT),
    Target(BELIEFS + "counted_cap.py", ("tests/analysis/test_doubted_baselines.py",)),
    Target(SOLVERS + "offers/doubt.py", ("tests/analysis/test_doubted_baselines.py",)),
    Target(
        BELIEFS + "mixture.py",
        (
            "tests/objectives/test_mixture_priors.py",
            "tests/core/test_mixture_belief.py",
            "tests/analysis/test_characteristics_with_doubt.py",
        ),
    ),
    Target(BELIEFS + "horizon_offers.py", (HORIZON_OFFERS,), skipped=OFFER_EFFORT),
    Target(BELIEFS + "offer_baselines.py", (BASELINE_OFFERS, EXACT_OFFERS, "tests/analysis/test_evaluate_mixture.py")),
    Target(BELIEFS + "offer_exposure.py", (OFFER_POLICIES, LATE_OFFERS, LATE_OFFER_TABLES), skipped=OFFER_EFFORT),
    Target(BELIEFS + "offer_exposure_decisions.py", (OFFER_POLICIES, OFFER_BLOCKS), skipped=OFFER_EFFORT),
    Target(
        BELIEFS + "estimated_labels.py",
        ("tests/policies/beliefs/test_estimated_labels.py", OFFER_BLOCKS, LATE_OFFER_TABLES),
    ),
    Target(BELIEFS + "estimated_offer_exposure.py", (OFFER_BLOCKS,)),
    Target(BELIEFS + "offers.py", (OFFER_POLICIES, OFFERS, OFFER_TABLES), skipped=OFFER_EFFORT),
    Target(
        BELIEFS + "pending.py",
        (POLICIES, EXPOSURE, "tests/analysis/test_delay.py", "tests/simulation/test_delay_events.py"),
    ),
    Target(BELIEFS + "forgetting.py", (POLICIES,)),
    Target(BELIEFS + "gittins.py", (POLICIES,)),
    Target(BELIEFS + "bayes_ucb.py", (POLICIES,)),
    Target(BELIEFS + "kl_ucb.py", (POLICIES,)),
    Target(BELIEFS + "thompson.py", (POLICIES,)),
    Target(BELIEFS + "constant.py", (POLICIES,)),
    Target(BELIEFS + "decaying_epsilon.py", (POLICIES,)),
    Target(BELIEFS + "epsilon_greedy.py", (POLICIES,)),
    Target(BELIEFS + "explore_then_exploit.py", (POLICIES,)),
    Target(BELIEFS + "expression.py", ("tests/history/test_decisions.py",)),
    Target(BELIEFS + "greedy.py", (POLICIES,)),
    Target(BELIEFS + "logistic.py", (POLICIES,)),
    Target(BELIEFS + "persistent.py", (POLICIES,)),
    Target(BELIEFS + "semi_logistic.py", (POLICIES,)),
    Target(FEATURES + "base.py", (DECISIONS, FEATURE_POLICY, "tests/policies/features/test_pending.py")),
    Target(FEATURES + "baseline_rules.py", (DECISIONS, "tests/policies/features/test_baseline_rules.py")),
    Target(
        FEATURES + "baselines.py", ("tests/policies/features/test_baseline_rules.py", FEATURE_POLICY, FEATURE_OFFERS)
    ),
    Target(
        FEATURES + "effective_discount.py",
        (DECISIONS, "tests/policies/features/test_leniency_for_features.py", FEATURE_OFFERS),
    ),
    Target(
        FEATURES + "label_worth.py",
        (DECISIONS, "tests/policies/features/test_leniency_for_features.py", FEATURE_OFFERS),
    ),
    Target(FEATURES + "offer_decisions.py", (FEATURE_OFFERS,)),
    Target(FEATURES + "outcome_matching.py", ("tests/policies/features/test_pending.py",)),
    Target(
        FEATURES + "policy.py",
        (DECISIONS, FEATURE_POLICY, "tests/policies/features/test_pending.py", UNSEEN, FEATURE_OFFERS),
        skipped=EFFORT,
    ),
    Target(FEATURES + "reference_set.py", (FEATURE_POLICY,)),
    Target(FEATURES + "changed_answers.py", (EXPLANATION,), skipped=frozenset({"TRIED", "HALVINGS", "MOST_EVIDENCE"})),
    Target(FEATURES + "contributions.py", (EXPLANATION,)),
    Target(FEATURES + "declared.py", (FEATURE_RULE,)),
    Target(FEATURES + "explanation.py", (EXPLANATION, "tests/policies/features/test_feature_offers.py")),
    Target(FEATURES + "feature_rule.py", (FEATURE_RULE,)),
    Target(
        FEATURES + "logistic_rule.py",
        (FEATURE_RULE, "tests/policies/features/test_decision_oracles.py", "tests/policies/features/test_pending.py"),
    ),
    Target(FEATURES + "row_decisions.py", ("tests/policies/features/test_decision_oracles.py", FEATURE_RULE)),
    Target(FEATURES + "storing.py", (FEATURE_RULE,), skipped=frozenset({"MOST_BYTES"})),
    Target(FEATURES + "table_decisions.py", ("tests/policies/features/test_feature_table_decisions.py",)),
    Target(FEATURES + "unseen.py", (UNSEEN,)),
    Target(OBJECTIVES + "average_reward.py", (OBJECTIVE_TESTS,)),
    Target(OBJECTIVES + "delayed.py", (OBJECTIVE_TESTS, EXPOSURE), skipped=EFFORT),
    Target(OBJECTIVES + "discounted.py", (OBJECTIVE_TESTS, OPTIMAL), skipped=EFFORT),
    Target(OBJECTIVES + "finite_horizon.py", (OBJECTIVE_TESTS,), skipped=EFFORT),
    Target(SEGMENTS + "band_advice.py", ("tests/models/test_binning.py",)),
    Target(
        SEGMENTS + "arrival_counts.py",
        ("tests/segments/test_segments.py",),
    ),
    Target(DOMAIN + "first_decisions.py", ("tests/cli/test_from_file_to_service.py",)),
    Target(DOMAIN + "policy_file.py", ("tests/dashboard/wizard/test_policy_file.py",)),
    Target(SEGMENTS + "column_parts.py", ("tests/dashboard/wizard/test_same_policy.py",)),
    Target(SEGMENTS + "capacity.py", (CAPACITY, RANKING), skipped=EFFORT),
    Target(SEGMENTS + "exposure_limits.py", ("tests/segments/test_exposure_limits.py",), skipped=EFFORT),
    Target(
        SEGMENTS + "policies.py",
        ("tests/segments/test_staleness.py", "tests/segments/test_segments.py", SEGMENT_OFFERS),
        skipped=EFFORT,
    ),
    Target(SEGMENTS + "ranking.py", (RANKING,), skipped=EFFORT),
    Target(SEGMENTS + "segments.py", ("tests/segments/test_segments.py", SEGMENT_OFFERS)),
    Target(SEGMENTS + "shifted_costs.py", (SHIFTED_COSTS, "tests/analysis/test_fair_optimum.py")),
    Target(
        SEGMENTS + "small_starts.py",
        ("tests/segments/test_starter_offers.py",),
        skipped=EFFORT,
    ),
    Target(SEGMENTS + "table_decisions.py", ("tests/segments/test_table_decisions.py",)),
    Target(SEGMENTS + "staleness.py", ("tests/segments/test_staleness.py",), skipped=EFFORT),
    Target(SEGMENTS + "starting.py", ("tests/segments/test_starting.py", SEGMENT_OFFERS), skipped=EFFORT),
    Target(MODELS + "batch_learning.py", (BATCH_LEARNING, LOGISTIC)),
    Target(MODELS + "bayesian_logistic.py", (LOGISTIC, FEATURE_MODELS, "tests/models/test_known_directions.py")),
    Target(MODELS + "binning.py", ("tests/models/test_binning.py",)),
    Target(MODELS + "bootstrap.py", (ORACLES, FEATURE_MODELS, "tests/models/test_bootstrap_trees.py")),
    Target(MODELS + "cells.py", (FEATURE_MODELS, FEATURE_POLICY)),
    Target(MODELS + "curve.py", (BELIEF_MODELS,), (ORACLES,)),
    Target(MODELS + "feature_estimator.py", (FEATURE_MODELS,)),
    Target(MODELS + "feature_model.py", (FEATURE_MODELS, LOGISTIC)),
    Target(MODELS + "from_history.py", (BELIEF_MODELS,)),
    Target(MODELS + "gaussian.py", (LOGISTIC,), (ORACLES,)),
    Target(MODELS + "hypotheses.py", (LOGISTIC, FEATURE_MODELS, BATCH_LEARNING), (ORACLES,)),
    Target(MODELS + "known_directions.py", ("tests/models/test_known_directions.py",)),
    Target(MODELS + "label_order.py", (BATCH_LEARNING, LOGISTIC, FEATURE_MODELS)),
    Target(MODELS + "maturing.py", (MATURING,)),
    Target(MODELS + "neighbours.py", (ORACLES, FEATURE_MODELS)),
    Target(MODELS + "own_counts.py", (BELIEF_MODELS,)),
    Target(MODELS + "calibrated_score.py", (CALIBRATED,)),
    Target(MODELS + "cell_counts.py", (LIVE_MODELS,)),
    Target(MODELS + "feature_columns.py", (LIVE_MODELS,), skipped=frozenset({"MOST_VALUES"})),
    Target(MODELS + "live_logistic.py", (LIVE_MODELS,)),
    Target(MODELS + "live_model.py", (LIVE_MODELS,)),
    Target(MODELS + "logistic_belief.py", (LIVE_MODELS, LOGISTIC)),
    Target(MODELS + "logistic_design.py", (LIVE_MODELS, LOGISTIC)),
    Target(MODELS + "quadrature.py", (LIVE_MODELS, ORACLES, LOGISTIC, FEATURE_POLICY)),
    Target(MODELS + "logistic_estimator.py", (LOGISTIC, FEATURE_MODELS)),
    Target(MODELS + "score_design.py", (CALIBRATED, LIVE_MODELS)),
    Target(MODELS + "state_bytes.py", (LIVE_MODELS,)),
    Target(MODELS + "rank_columns.py", (SELECTION, LOGISTIC)),
    Target(MODELS + "scaling.py", (LOGISTIC, FEATURE_MODELS)),
    Target(MODELS + "selection.py", (SELECTION,)),
    Target(MODELS + "shared.py", (BELIEF_MODELS,), (ORACLES,)),
    Target(MODELS + "timing.py", (TIMING,)),
    Target(DOMAIN + "between_rows.py", (BETWEEN_ROWS, OFFER_TABLES)),
    Target(DOMAIN + "capacity_price.py", (OVERALL_LIMITS,)),
    Target(DOMAIN + "clock.py", ("tests/service/domain/test_clock.py",)),
    Target(DOMAIN + "exposure_tables.py", (ESTIMATED_TABLES, TABLE_DETAILS, TABLES, BETWEEN_ROWS), skipped=EFFORT),
    Target(DOMAIN + "imported_rows.py", (IMPORTS,)),
    Target(DOMAIN + "late_offer_tables.py", (LATE_OFFER_TABLES,)),
    Target(
        DOMAIN + "horizon_offer_tables.py",
        ("tests/service/domain/test_horizon_offer_tables.py -k 'not postgresql'",),
        skipped=frozenset({"NUMBERS"}),
    ),
    Target(DOMAIN + "monitored.py", (MONITORED,)),
    Target(DOMAIN + "protected.py", (MONITORED,)),
    Target(DOMAIN + "offer_drift.py", ("tests/service/domain/test_offer_drift.py",)),
    Target(DOMAIN + "population_stability.py", ("tests/service/domain/test_population_stability.py",)),
    Target(DOMAIN + "expected_outcomes.py", ("tests/service/domain/test_expected_outcomes.py",)),
    Target(DOMAIN + "monitoring.py", ("tests/service/domain/test_monitoring_words.py",)),
    Target(DOMAIN + "forgetting.py", ("tests/service/commands/test_forgetting.py",)),
    Target(DOMAIN + "alerts.py", ("tests/service/http/test_webhooks.py",)),
    Target(DOMAIN + "webhook_messages.py", ("tests/service/http/test_webhooks.py",)),
    Target(DOMAIN + "webhook_addresses.py", ("tests/service/http/test_webhooks.py",)),
    Target(DOMAIN + "input_drift.py", ("tests/service/domain/test_input_drift.py",)),
    Target(
        DOMAIN + "feature_parts.py",
        ("tests/service/domain/test_input_drift.py", "tests/service/domain/test_unlabelled_regions.py"),
    ),
    Target(DOMAIN + "unlabelled_regions.py", ("tests/service/domain/test_unlabelled_regions.py",)),
    Target(DOMAIN + "shadow_comparison.py", ("tests/service/domain/test_shadow_comparison.py",)),
    Target(DOMAIN + "rollout.py", (ROLLOUT,)),
    Target(DOMAIN + "rollout_comparison.py", ("tests/service/domain/test_rollout_comparison.py",)),
    Target("src/lenience/core/confidence_sequence.py", ("tests/service/domain/test_rollout_comparison.py",)),
    Target(COMMANDS + "rollout.py", (ROLLOUT,)),
    Target(DOMAIN + "referral.py", (REFERRAL, REFERRALS)),
    Target(DOMAIN + "referral_decision.py", (REFERRAL, REFERRALS)),
    Target(DOMAIN + "review_report.py", (REFERRAL,)),
    Target(COMMANDS + "referring.py", (REFERRALS,)),
    Target(COMMANDS + "expire_referrals.py", (REFERRALS,), skipped=frozenset({"size"})),
    Target(COMMANDS + "rollout_assignment.py", (ROLLOUT,)),
    Target(DOMAIN + "calibration_bands.py", ("tests/service/queries/test_model_report.py",)),
    Target(DOMAIN + "version_estimates.py", ("tests/service/queries/test_model_report.py",)),
    Target(DOMAIN + "open_loans.py", (OVERALL_COUNTERS, OPEN_LOANS)),
    Target(DOMAIN + "overall.py", (OVERALL_COUNTERS, OVERALL_LIMITS)),
    Target(DOMAIN + "state.py", (RULES, ENGINE)),
    Target(COMMANDS + "ranking.py", (DECIDING_OFFERS,)),
    Target(DOMAIN + "offer_requests.py", ("tests/service/domain/test_offer_requests.py", OFFER_RULES)),
    Target(DOMAIN + "offer_tables.py", (OFFER_TABLES, OFFER_RULES), skipped=frozenset({"VALUE_SECONDS"})),
    Target(DOMAIN + "rule.py", (OFFER_RULES, RULES, OFFER_TABLES, OVERALL_COUNTERS, OVERALL_LIMITS)),
    Target(DOMAIN + "solved_tables.py", (TABLE_DETAILS, TABLES, RULES), skipped=EFFORT),
    Target(DOMAIN + "stopping_tables.py", (TABLE_DETAILS, TABLES, RULES), skipped=EFFORT),
    Target(DOMAIN + "feature_models.py", (FEATURE_DECISIONS,)),
    Target(DOMAIN + "feature_rule.py", (VERDICTS, FEATURE_DECISIONS)),
    Target(COMMANDS + "applicants.py", (FEATURE_DECISIONS,)),
    Target(
        DOMAIN + "shadow_segments.py",
        (
            "tests/service/domain/test_shadow_segments.py",
            "tests/service/commands/test_shadows_across_kinds.py -k 'not postgresql'",
        ),
    ),
    Target(DOMAIN + "segment_counts.py", (OPEN_LOANS, TOTALS)),
    Target(STORAGE + "daily_totals.py", (TOTALS,)),
    Target(STORAGE + "monitored_totals.py", (TOTALS,), skipped=frozenset({"_key"})),
    Target(STORAGE + "outcome_days.py", (TOTALS,)),
    Target(STORAGE + "referrals.py", (REFERRALS,), skipped=frozenset({"AT_A_TIME"})),
    Target(STORAGE + "alert_states.py", ("tests/service/http/test_webhooks.py",)),
    Target(
        STORAGE + "webhook_outbox.py",
        ("tests/service/http/test_webhooks.py",),
        skipped=frozenset({"AT_A_TIME", "THREADS", "TIMEOUT", "LONGEST_ERROR"}),
    ),
    Target(STORAGE + "expected_applicants.py", ("tests/service/storage/test_expected_applicants.py",)),
    Target(STORAGE + "relearning.py", ("tests/service/storage/test_relearning.py",)),
    Target(DOMAIN + "pooled_models.py", (POOLED,)),
    Target(DOMAIN + "pooled_tables.py", (POOLED,)),
    Target(DOMAIN + "merkle.py", ("tests/service/domain/test_merkle.py",)),
    Target(DOMAIN + "signed_note.py", ("tests/service/domain/test_signed_note.py",)),
    Target(DOMAIN + "decision_proof.py", ("tests/service/domain/test_decision_proof.py",)),
    Target(DOMAIN + "fair_version.py", (FAIR_VERSIONS,)),
    Target(STORAGE + "log_tree.py", (LOG_TREE,), skipped=frozenset({"AT_A_TIME"})),
    Target(STORAGE + "log_key.py", (LOG_TREE,)),
    Target(
        STORAGE + "model_states.py", (FEATURE_DECISIONS, POOLED), skipped=frozenset({"AT_A_TIME", "SNAPSHOT_EVERY"})
    ),
    Target(COMMANDS + "again.py", (WAITING,), skipped=frozenset({"size"})),
    Target(COMMANDS + "seal.py", (LOG_TREE,), skipped=frozenset({"size"})),
    Target(COMMANDS + "four_eyes.py", ("tests/service/commands/test_four_eyes.py",)),
    Target(ANALYSIS + "fair_constraints.py", (FAIR,)),
    Target(ANALYSIS + "fair_optimum.py", (FAIR, FAIR_VERSIONS)),
    Target(ANALYSIS + "fair_search.py", (FAIR,), skipped=frozenset({"MOST_ROUNDS"})),
    Target(ANALYSIS + "rejected_segment.py", ("tests/analysis/test_rejected_outcomes.py",)),
    Target(ANALYSIS + "rejection_log.py", ("tests/analysis/test_rejected_outcomes.py",)),
    Target(ANALYSIS + "rejection_totals.py", ("tests/analysis/test_rejected_outcomes.py",)),
    Target(ANALYSIS + "monitored_groups.py", ("tests/analysis/test_monitored_groups.py",)),
    Target(DOMAIN + "specification.py", (OFFER_RULES, RULES, VERSIONS)),
    Target(DOMAIN + "threshold_curve.py", (TABLES, RULES)),
    Target(DOMAIN + "feature_cells.py", (TABLES,)),
    Target(COMMANDS + "decide.py", (RULES, OFFER_DECISIONS, ENGINE, VERSIONS, OVERALL_LIMITS, DECIDING_OFFERS)),
    Target(COMMANDS + "imports.py", (IMPORTS,)),
    Target(COMMANDS + "open_loans.py", (OPEN_LOANS,)),
    Target(COMMANDS + "solve_process.py", ("tests/service/commands/test_solve_process.py",)),
    Target(
        COMMANDS + "outcomes.py",
        (
            OUTCOME_BATCHES,
            OFFER_DECISIONS,
            ENGINE,
            "tests/service/commands/test_interim_statuses.py -k 'not postgresql'",
        ),
    ),
    Target(COMMANDS + "transitions.py", (RULES, OFFER_DECISIONS, ENGINE, OVERALL_LIMITS, OPEN_LOANS)),
    Target("src/lenience/core/belief.py", ("tests/core/test_belief.py",)),
    Target("src/lenience/core/bounds.py", ("tests/core/test_belief.py",)),
    Target("src/lenience/core/intervals.py", ("tests/core/test_intervals.py",)),
    Target("src/lenience/core/mixture_belief.py", ("tests/core/test_mixture_belief.py",)),
    Target("src/lenience/core/money.py", ("tests/core/test_money.py",)),
    Target("src/lenience/core/offers.py", ("tests/core/test_offer_economics.py", "tests/files/test_economics.py")),
    Target("src/lenience/core/lattice.py", ("tests/core/test_lattice.py", OPTIMAL, EXPOSURE)),
)
