"""Random scenes in the plane, and where the package's rules land on them: what the playground must agree with."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from robagg import CM, MCA, NNM, RFA, TM, TQ, Huber, Krum, Mean, Rule, Sketch

Scene = dict[str, Any]


@dataclass(frozen=True)
class TQFromMean(TQ):
    """TQ from the mean of all points, as in the paper's figure 1."""

    def start(self, sketch: Sketch) -> Tensor:
        return spread_evenly(sketch)


@dataclass(frozen=True)
class HuberFromMean(Huber):
    """Huber from the mean of all points."""

    def start(self, sketch: Sketch) -> Tensor:
        return spread_evenly(sketch)


def spread_evenly(sketch: Sketch) -> Tensor:
    return sketch.on_rows(torch.full((sketch.n,), 1 / sketch.n, dtype=torch.float64))


def draw_scenes(count: int, seed: int = 0) -> list[Scene]:
    """Honest points around one place and Byzantine ones around another, near or far, with all settings at random."""
    source = random.Random(seed)
    scenes = []
    for k in range(count):
        n = source.randint(3, 30)
        f = source.randint(0, (n - 1) // 2)
        place, width, far = source.uniform(-3, 3), source.uniform(0.3, 2), source.choice([1.0, 5.0, 100.0])
        points = [[place + width * source.gauss(0, 1), source.gauss(0, 1)] for _ in range(n - f)]
        points += [[far + 0.3 * source.gauss(0, 1), -far + 0.3 * source.gauss(0, 1)] for _ in range(f)]
        scenes.append(
            {
                "points": points,
                "f": f,
                "iterations": source.randint(1, 40),
                "start": "mean" if k % 2 else "median",
                "nnm": k % 4 > 1,
            }
        )
    return scenes


def aggregate(name: str, scene: Scene) -> Any:
    """The verdict of the package's rule on a scene."""
    f, iterations, from_mean = scene["f"], scene["iterations"], scene["start"] == "mean"
    rules: dict[str, Rule] = {
        "tq": (TQFromMean if from_mean else TQ)(f=f, iterations=iterations),
        "huber": (HuberFromMean if from_mean else Huber)(f=f, iterations=iterations),
        "rfa": RFA(f=f, iterations=iterations),
        "mca": MCA(f=f, iterations=iterations),
        "krum": Krum(f=f),
        "cm": CM(f=f),
        "tm": TM(f=f),
        "mean": Mean(f=f),
    }
    rule = NNM(f=f) >> rules[name] if scene["nnm"] else rules[name]
    return rule.explain(torch.tensor(scene["points"], dtype=torch.float64))


NAMES = ("tq", "huber", "rfa", "mca", "krum", "cm", "tm", "mean")


def find_differences(scenes: list[Scene], answers: list[dict[str, Any]], tolerance: float) -> list[str]:
    """Where the browser's answers (value, tau, weights of each rule) are not those of the package."""
    found = []
    for k, (scene, answer) in enumerate(zip(scenes, answers, strict=True)):
        for name in NAMES:
            verdict = aggregate(name, scene)
            pairs = list(zip(verdict.value.tolist(), answer[name]["value"], strict=True))
            if name in ("tq", "huber", "mca", "rfa"):
                pairs += list(zip(verdict.weights.tolist(), answer[name]["weights"], strict=True))
            if verdict.tau is not None and scene["f"]:
                pairs.append((verdict.tau, answer[name]["tau"]))
            worst = max(abs(a - b) / max(1.0, abs(a)) for a, b in pairs)
            if not worst <= tolerance:
                found.append(f"scene {k} ({scene['start']}, nnm={scene['nnm']}), {name}: off by {worst:.3g}")
    return found
