"""The paper's theory as plain functions of numbers, each with its formula; what does not hold as printed says so."""

from robagg.theory.bias import bias_condition, huber_bias, huber_move
from robagg.theory.kappas import (
    kappa,
    kappa_behind_nnm,
    kappa_cm,
    kappa_krum,
    kappa_tm,
    kappa_tq,
    least_kappa,
    nnm_improves,
)
from robagg.theory.steps import (
    bound_after,
    contraction,
    kappa_in_the_limit,
    step_bound,
    step_bound_printed,
    steps_needed,
    tau,
)
from robagg.theory.training import gradient_bound, least_gradient, momentum, step_size

__all__ = [
    "bias_condition",
    "bound_after",
    "contraction",
    "gradient_bound",
    "huber_bias",
    "huber_move",
    "kappa",
    "kappa_behind_nnm",
    "kappa_cm",
    "kappa_in_the_limit",
    "kappa_krum",
    "kappa_tm",
    "kappa_tq",
    "least_gradient",
    "least_kappa",
    "momentum",
    "nnm_improves",
    "step_bound",
    "step_bound_printed",
    "step_size",
    "steps_needed",
    "tau",
]
