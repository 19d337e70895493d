"""What the ranks run: each function is called in every process of a group, with the same arguments."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import robagg as ra
from robagg.distributed import HookState, Sharded, robust_hook

Given = dict[str, Any]


def part(x: Any, group: Any) -> Any:
    """This rank's columns: parts of different lengths."""
    rank, size, d = dist.get_rank(group), dist.get_world_size(group), x.shape[-1]
    cuts = [d * k * (k + 1) // (size * (size + 1)) for k in range(size + 1)]
    return x[..., cuts[rank] : cuts[rank + 1]]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def count_messages() -> list[tuple[str, int]]:
    """From now on, every all_reduce and what it sends; other messages by name."""
    sent: list[tuple[str, int]] = []
    for name in (
        "all_reduce",
        "broadcast",
        "all_to_all_single",
        "all_gather_object",
        "all_gather",
        "all_gather_into_tensor",
    ):
        plain = getattr(dist, name)
        plain = getattr(plain, "plain", plain)

        def counted(x: Any, *given: Any, _plain: Any = plain, _name: str = name, **more: Any) -> Any:
            sent.append((_name, x.numel() if isinstance(x, Tensor) else 0))
            return _plain(x, *given, **more)

        counted.plain = plain  # type: ignore[attr-defined]
        setattr(dist, name, counted)
    return sent


def aggregate_all(group: Any, texts: list[str], x: Tensor, given: Given) -> list[Tensor]:
    """Each rule's value, of this rank's columns."""
    own = part(x, group)
    return [Sharded(ra.parse(text), group)(own, generator=seeded(), **given) for text in texts]


def explain_all(group: Any, texts: list[str], x: Tensor, given: Given) -> list[ra.Verdict]:
    own = part(x, group)
    return [Sharded(ra.parse(text), group).explain(own, generator=seeded(), **given) for text in texts]


def step_twice(group: Any, text: str, x: Tensor) -> Tensor:
    rule, own = Sharded(ra.parse(text), group), part(x, group)
    _, state = rule.step(own)
    verdict, _ = rule.step(own, state)
    value: Tensor = verdict.value
    return value


def list_messages(group: Any, text: str, x: Tensor) -> list[tuple[str, int]]:
    own, sent = part(x, group), count_messages()
    Sharded(ra.parse(text), group)(own)
    return sent


def aggregate_odd(group: Any, text: str, x: Tensor) -> tuple[Any, list[str], str]:
    """Rows as dicts; on rank 1 row 2 lacks a tensor and row 4 holds NaN."""
    rows: list[Any] = [{"w": row, "b": row[:1]} for row in part(x, group).clone()]
    if dist.get_rank(group) == 1:
        rows[4]["w"][0] = torch.nan
        del rows[2]["b"]
    verdict = Sharded(ra.parse(text), group).explain(rows)
    return verdict.value["w"], list(verdict.reasons), str(verdict)


def fail_to_read(group: Any, x: Tensor) -> str:
    """What happens where one rank alone cannot read its rows."""
    rows: list[Any] = list(part(x, group))
    if dist.get_rank(group) == 1:
        rows = ["not a row"] * len(rows)
    try:
        Sharded(ra.TQ(f=1), group)(rows)
    except (ra.QuorumError, TypeError) as e:
        return f"{type(e).__name__}: {e}"
    return "no error"


def draw_apart(group: Any, x: Tensor) -> tuple[list[Tensor], Tensor]:
    """Bucketing by generators that differ between ranks, and by torch's own; and what torch draws after that."""
    rank = dist.get_rank(group)
    rule, own = Sharded(ra.parse("bucketing(s=2) >> tq(f=1)"), group), part(x, group)
    torch.manual_seed(100 + rank)
    return [rule(own, generator=seeded(rank)), rule(own)], torch.rand(3)


def aggregate_dtensors(group: Any, text: str, rows: list[dict[str, Tensor]]) -> tuple[dict[str, Tensor], list[str]]:
    """State dicts of DTensors over all ranks, a replicated one and plain buffers among them; the whole value."""
    from torch.distributed.tensor import DeviceMesh, DTensor, Replicate, Shard, distribute_tensor  # takes seconds

    mesh = DeviceMesh("cpu", list(range(dist.get_world_size())))
    ways = {"w": [Shard(0)], "v": [Shard(1)], "r": [Replicate()]}

    def share(name: str, x: Tensor) -> Tensor:
        return distribute_tensor(x, mesh, ways[name]) if name in ways else x

    states: list[Any] = [{name: share(name, x) for name, x in row.items()} for row in rows]
    if len(states) > 5:
        states[5]["w"] = distribute_tensor(rows[5]["w"], mesh, [Replicate()])
    verdict = Sharded(ra.parse(text)).explain(states)
    value = verdict.value
    kinds = {name: isinstance(x, DTensor) for name, x in value.items()}
    assert kinds == {name: name in ways for name in rows[0]}
    assert value["v"].placements == (Shard(1),)
    whole = {name: x.full_tensor() if isinstance(x, DTensor) else x for name, x in value.items()}
    return whole, [
        *verdict.reasons,
        *(f"{w:.6f} {d:.4g}" for w, d in zip(verdict.weights, verdict.distances, strict=True)),
    ]


def train(group: Any, attack: str, rule: str | None, data: tuple[Tensor, ...], steps: int, more: Given) -> Given:
    """An MLP on digits by DDP, where the last rank's gradient is disturbed before it is sent."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model = DistributedDataParallel(plain, bucket_cap_mb=0.01, process_group=group)
    state = None if rule is None else HookState(ra.parse(rule), group, **more)
    if state is not None:
        model.register_comm_hook(state, robust_hook)
    if rank == size - 1 and attack != "none":
        scale = {"nan": torch.nan, "huge": 1e30, "minus": -1.0}[attack]
        for parameter in plain.parameters():
            parameter.register_hook(lambda grad: grad * scale)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    x, y, test_x, test_y = data
    draws, doubted, buckets = seeded(rank), [], 0
    sent = count_messages()
    for _ in range(steps):
        pick = torch.randint(len(x), (32,), generator=draws)
        optimizer.zero_grad()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a loss of NaN is what is tried
            nn.functional.cross_entropy(model(x[pick]), y[pick]).backward()
        optimizer.step()
        if state is not None and state.verdict is not None:
            doubted.append(state.verdict.not_believed)
    buckets = len([1 for name, _ in sent if name == "all_to_all_single"])
    with torch.no_grad():
        accuracy = float((plain(test_x).argmax(1) == test_y).double().mean())
    weights = torch.cat([p.detach().flatten() for p in plain.parameters()])
    return {"accuracy": accuracy, "weights": weights, "doubted": doubted, "slices": buckets, "sent": sent}


def one_gradient(group: Any, rule: str, rows: Tensor, cap: float, given: Given, steps: int = 2) -> tuple[Tensor, Any]:
    """The common gradient of a model whose gradient on rank r is `rows[r]`, after some steps; and the verdict."""
    own = rows[dist.get_rank(group)]
    sizes = [7, 300, 1, 64, len(own) - 372]
    plain = nn.ParameterList([nn.Parameter(torch.zeros(size)) for size in sizes])

    class Dot(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = plain

        def forward(self, x: Tensor) -> Tensor:
            return sum((a * b).sum() for a, b in zip(self.parts, x.split(sizes), strict=True))  # type: ignore[return-value]

    model = DistributedDataParallel(Dot(), bucket_cap_mb=cap, process_group=group)
    state = HookState(ra.parse(rule), group, generator=seeded(), **given)
    model.register_comm_hook(state, robust_hook)
    for _ in range(steps):
        model.zero_grad()
        model(own).backward()
    return torch.cat([p.grad for p in plain]), state.verdict  # type: ignore[misc]


def list_hook_messages(group: Any, rule: str, rows: Tensor, cap: float) -> list[str]:
    sent = count_messages()
    one_gradient(group, rule, rows, cap, {})
    return [name for name, _ in sent]


def lose_quorum(group: Any, rule: str) -> str:
    model = DistributedDataParallel(nn.Linear(3, 1), process_group=group)
    model.register_comm_hook(HookState(ra.parse(rule), group), robust_hook)
    try:
        model(torch.full((2, 3), torch.nan)).sum().backward()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    return "no error"
