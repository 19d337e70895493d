"""docs/images/distance.png: how far off each rule is when the liars stand together at a distance r.

python docs/scripts/distance.py
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from look import line, save

from robagg import parse

RULES = {"tq": "TQ", "huber": "Huber", "cm": "CM", "krum": "Krum", "mean": "Mean"}
N, F, D, DRAWS = 20, 6, 100, 20
DISTANCES = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0]


def measure(name: str, far: float) -> float:
    """The rule's distance to the honest mean, in units of the honest spread, as a mean over draws."""
    off = 0.0
    for seed in range(DRAWS):
        source = torch.Generator().manual_seed(seed)
        honest = torch.randn(N - F, D, generator=source, dtype=torch.float64)
        spread = (honest - honest.mean(0)).norm(dim=1).square().mean().sqrt()
        side = torch.nn.functional.normalize(torch.ones(D, dtype=torch.float64), dim=0)
        x = torch.cat([honest, (honest.mean(0) + far * spread * side).expand(F, D)])
        off += float((parse(name, f=F)(x) - honest.mean(0)).norm() / spread) / DRAWS
    return off


def main() -> None:
    figure, axis = plt.subplots(figsize=(6.4, 3.8))
    for name, title in RULES.items():
        errors = [measure(name, far) for far in DISTANCES]
        print(f"{title:6}", " ".join(f"{error:.2f}" for error in errors))
        axis.plot(DISTANCES, errors, **line(name), label=title)
    axis.set(xscale="log", xlabel="distance of the liars, in honest spreads", ylabel="error of the rule", ylim=(0, 2.2))
    axis.set_xticks([0.25, 0.5, 1, 2, 5, 10, 30], ["0.25", "0.5", "1", "2", "5", "10", "30"])
    axis.set_xticks([], minor=True)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, handlelength=3.5)
    save(figure, "distance")


if __name__ == "__main__":
    main()
