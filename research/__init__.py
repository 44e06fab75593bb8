"""Studies that informed the choices in lenience. They are not part of the wheel; `python -m research` lists them."""

STUDIES = {  # by name: the module with its main(arguments), and what the study answers
    "delayed-benchmark": ("research.delayed_benchmark", "Late labels in another project's world, both variants."),
    "estimated-limits": ("research.estimated_limits", "What estimated exposure limits earn in a simulation."),
    "exploration": ("research.exploration", "When exploring pays: by horizon, history and truth."),
    "exploration-bound": ("research.exploration_bound", "How much any exploring could earn, at most."),
    "features": ("research.features", "Every policy with features on 25 data sets, against every baseline."),
    "fico": ("research.fico_report", "Every model and rule on the credit scores of four groups."),
    "fico-fairness": ("research.fico_fairness", "The price of fairness on the credit scores of four groups."),
    "free-labels": ("research.free_labels", "How near the policy with features comes to the exact leniency."),
    "hypothesis-weights": ("research.hypothesis_weights", "How much features say, data set by data set."),
    "late-features": ("research.late_features", "Exposure limits with features, against ignoring the delay."),
    "late-labels": ("research.late_labels", "What late labels cost: the numbers and figures of docs/delay.md."),
    "maturing": ("research.maturing", "How exact success rates are if pending outcomes count by their age."),
    "offers": ("research.offers_report", "What deciding each loan by its amount and price earns on real loans."),
    "prior-worlds": ("research.prior_worlds", "How well policies explore in worlds drawn from the default prior."),
    "selected-history": ("research.selected_history", "Beliefs about those whom an old rule rejected."),
    "simulation-figures": ("research.simulation_figures", "The figures of docs/simulate.md."),
    "starts": ("research.starts", "Three starts without replacement, against other libraries."),
    "two-worlds": ("research.two_worlds", "What no policy can have both of: a lower bound on regret."),
}
