"""How a run is trained."""

from __future__ import annotations

from dataclasses import dataclass

from robagg.models.batchnorm import UPDATES


@dataclass(frozen=True)
class Settings:
    """How a run is trained; the defaults are the paper's for MNIST."""

    rounds: int = 1500
    batch: int = 32
    momentum: float = 0.99
    rate: float = 0.02
    schedule: tuple[tuple[float, float], ...] = ()
    """(share of the rounds, factor): from that point on the rate is multiplied by the factor."""
    local_steps: int = 1
    """Steps a client makes before it sends the difference, divided by the rate."""
    share: float = 1.0
    """The share of the clients that is asked in each round."""
    statistics: str = "mean"
    """How running BatchNorm statistics move: "mean" over honest clients, "median" over all, or "sequential": by one
    honest client after the other, as in a loop over clients that share one model. "batch": as "mean", but evaluation
    normalises by the statistics of each test batch, of at most 128 samples; the model of a result in evaluation
    mode goes by the running ones."""
    evaluate_every: int | None = None
    """Rounds between evaluations; None: every 50, or 30 times a run if that is less often."""
    full_trace: bool = False
    precision: str | None = "tf32"
    """Of gradients on a GPU: "float32", "tf32", "bfloat16", or None for what torch is set to. A CPU uses float32."""

    def __post_init__(self) -> None:
        for name, value, fine in (
            ("rounds", self.rounds, self.rounds >= 1),
            ("batch", self.batch, self.batch >= 1),
            ("momentum", self.momentum, 0 <= self.momentum < 1),
            ("rate", self.rate, self.rate > 0),
            ("local_steps", self.local_steps, self.local_steps >= 1),
            ("share", self.share, 0 < self.share <= 1),
            ("evaluate_every", self.evaluate_every, self.evaluate_every is None or self.evaluate_every >= 1),
            ("precision", self.precision, self.precision in (None, "float32", "tf32", "bfloat16")),
            ("statistics", self.statistics, self.statistics in (*UPDATES, "batch")),
        ):
            if not fine:
                raise ValueError(f"{name} is out of its range, got {value!r}")

    def rate_at(self, t: int) -> float:
        """The learning rate in round t."""
        rate = self.rate
        for at, factor in self.schedule:
            rate *= factor if t >= at * self.rounds else 1.0
        return rate

    def evaluates_at(self, t: int) -> bool:
        """Whether the model is evaluated after t rounds."""
        every = self.evaluate_every or max(50, self.rounds // 30)
        return t % every == 0 or t == self.rounds
