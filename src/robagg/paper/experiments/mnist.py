"""The paper's experiments on MNIST, Figures 2 to 5 and Tables 3 and 4, and on Fashion-MNIST, the appendix; n=20."""

from dataclasses import replace
from pathlib import Path

from robagg.paper.axes import ATTACKS, CNN_RULES, MIXERS, RHOS, Axis, Change, vary
from robagg.paper.claims import Alike, Best, BestWorst, Fails, Falls, Helps
from robagg.paper.experiment import Experiment, Panel

COUNTS = vary("f", range(1, 10))
SPLITS = vary("rho", RHOS)

_FIG2_RULES = vary("rule", {"TQ": "tq", "TQ_t": "tqtrue"})
FIG2 = Experiment(
    name="fig2",
    title="MNIST, IPM: TQ with the estimated and with the true tau",
    kind="lines",
    task="mnist",
    panels=(
        Panel("rho=0.5", _FIG2_RULES, COUNTS, {"rho": 0.5, "attack": "ipm"}),
        Panel("f=6", _FIG2_RULES, SPLITS, {"f": 6, "attack": "ipm"}),
    ),
    columns="f and rho",
    claims=(Alike("TQ is like TQ_t", rows=("TQ", "TQ_t")),),
    plugins=(str(Path(__file__).parents[1] / "tq_true.py"),),
    notes=("TQ_t knows who is honest, so it exists for this figure only. The attack is not stated in the paper.",),
)


def _cross_mixers(columns: Axis, fixed: Change) -> tuple[Panel, ...]:
    """One panel per pre-aggregator; behind NNM, whose mixed rows may coincide, rules have no floor, as in the paper."""
    plain = {**CNN_RULES, **vary("rule", {"Huber": "huber(floor=False)", "TQ": "tq(floor=False)"})}
    return tuple(
        Panel(label, plain if label == "with NNM" else CNN_RULES, columns, {**fixed, "attack": "ipm", **mixer})
        for label, mixer in MIXERS.items()
    )


FIG3 = Experiment(
    name="fig3",
    title="MNIST, IPM, rho=0.5: accuracy against the number of Byzantine clients",
    kind="lines",
    task="mnist",
    panels=_cross_mixers(COUNTS, {"rho": 0.5}),
    columns="f",
    claims=(
        Best("TQ is best for every f", panels=("alone",)),
        Best("TQ is best for every f, also with NNM", panels=("with NNM",)),
        Best("TQ is best for every f, also with Bucketing", panels=("with Bucketing",)),
        Fails("Bucketing fails for f > 4", panels=("with Bucketing",), columns=("5", "6", "7", "8", "9")),
        Falls("Huber's accuracy falls with f", panels=("alone",), rows=("Huber",)),
    ),
)

FIG4 = Experiment(
    name="fig4",
    title="MNIST, IPM, f=6: accuracy against heterogeneity",
    kind="lines",
    task="mnist",
    panels=_cross_mixers(SPLITS, {"f": 6}),
    columns="rho",
    claims=(
        Best("TQ is best for every rho", panels=("alone",)),
        Best("TQ is best for every rho, also with NNM", panels=("with NNM",)),
        Best("TQ is best for every rho, also with Bucketing", panels=("with Bucketing",)),
        Fails("TM and CM fail at rho >= 0.8", panels=("alone",), columns=("0.8", "0.9", "1.0"), rows=("TM", "CM")),
        Helps("NNM helps at rho <= 0.6", panels=("with NNM",), columns=("0.0", "0.2", "0.4", "0.5", "0.6")),
        Fails("NNM fails above rho = 0.8", panels=("with NNM",), columns=("0.9", "1.0")),
    ),
)

_FIG5_RULES = {
    f"{name}({known})": {"rule": name.lower() if known == "f" else f"{name.lower()}(f=none)"}
    for name in ("TQ", "TM", "Krum")
    for known in ("f", "f_max")
}
FIG5 = Experiment(
    name="fig5",
    title="MNIST, f=6, rho=0.5: rules that know f and rules that assume the most, f_max=9",
    kind="bars",
    task="mnist",
    panels=(Panel("f=6", _FIG5_RULES, ATTACKS, {"f": 6, "rho": 0.5}),),
    claims=(Alike("TQ(f_max) is like TQ(f)", rows=("TQ(f)", "TQ(f_max)")),),
    notes=("f and rho are not stated in the paper.",),
)

TABLE3 = Experiment(
    name="table3",
    title="MNIST, rho=0.5: accuracy under six attacks",
    kind="table",
    task="mnist",
    panels=tuple(Panel(f"f={f}", CNN_RULES, ATTACKS, {"f": f, "rho": 0.5}) for f in (5, 6, 7)),
    seeds=3,
    numbers="table3",
    claims=(BestWorst("TQ has the best worst case for every f"),),
)

TABLE4 = Experiment(
    name="table4",
    title="MNIST, f=6: accuracy under six attacks",
    kind="table",
    task="mnist",
    panels=tuple(Panel(f"rho={rho}", CNN_RULES, ATTACKS, {"f": 6, "rho": rho}) for rho in (0.6, 0.7)),
    seeds=3,
    numbers="table4",
    claims=(BestWorst("TQ has the best worst case for every rho"),),
)

APPENDIX = replace(
    TABLE3,
    name="appendix",
    title="Fashion-MNIST, rho=0.5: accuracy under six attacks",
    task="fashion",
    numbers=None,
)
