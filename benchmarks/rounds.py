"""A round of training on the CPU against its bare gradients and against ByzFL's own loop, in one run.

Same model (the paper's CNN), n=20, f=6, b=32, momentum 0.99, the IPM attack; random images of MNIST's shape, because
time does not depend on what they show. ByzFL aggregates by TrMean.

    python benchmarks/rounds.py [--json PATH]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import peers
import robagg as ra
from robagg.attacks import IPM
from robagg.models import CNN, build
from robagg.tasks import MNIST
from robagg.train import Federation
from timing import describe_machine, take_turns

N, F, B = 20, 6, 32


def make_clients() -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(0)
    return [(torch.randn(256, 1, 28, 28), torch.randint(10, (256,))) for _ in range(N)]


def run_ours(clients: list[tuple[Tensor, Tensor]], rule: str) -> tuple[Callable[[], None], Federation]:
    federation = Federation(
        build("cnn"),
        clients,
        ra.parse(rule, f=F),
        IPM(),
        f=F,
        loss=nn.functional.nll_loss,
        classes=10,
        settings=replace(MNIST.settings, rounds=10**6),
    )
    return lambda: federation.round(1, verdict=False), federation


def run_bare(clients: list[tuple[Tensor, Tensor]]) -> Callable[[], None]:
    """The gradients of the honest clients and nothing else: no batch is drawn, nothing is kept."""
    model = build("cnn")
    parameters = list(model.parameters())
    batches = [(x[:B], y[:B]) for x, y in clients[: N - F]]

    def run() -> None:
        for x, y in batches:
            torch.autograd.grad(nn.functional.nll_loss(model(x), y), parameters)

    return run


def run_byzfl(byzfl: Any, clients: list[tuple[Tensor, Tensor]]) -> Callable[[], None]:
    """The steps of one round of ByzFL's benchmark, on its own classes."""
    byzfl.fed_framework.models.robagg_cnn = CNN
    common = {"model_name": "robagg_cnn", "device": "cpu", "optimizer_name": "SGD", "learning_rate": 0.02}
    common |= {"weight_decay": 0.0, "milestones": [], "learning_rate_decay": 1.0, "optimizer_params": {}}
    loaders = [DataLoader(TensorDataset(x, y), batch_size=B, shuffle=True) for x, y in clients]
    honest = [
        byzfl.Client(
            common
            | {"loss_name": "NLLLoss", "LabelFlipping": False, "nb_labels": 10, "momentum": 0.99}
            | {"training_dataloader": loader, "store_per_client_metrics": True}
        )
        for loader in loaders[: N - F]
    ]
    attacker = byzfl.ByzantineClient({"name": "InnerProductManipulation", "f": F, "parameters": {"tau": 7.0}})
    server = byzfl.Server(
        common
        | {"test_loader": loaders[0], "validation_loader": None, "pre_agg_list": []}
        | {"aggregator_info": {"name": "TrMean", "parameters": {"f": F}}}
    )

    def run() -> None:
        for client in honest:
            client.compute_gradients()
        gradients = [client.get_flat_gradients_with_momentum() for client in honest]
        server.update_model_with_gradients(gradients + attacker.apply_attack(gradients))
        weights = server.get_dict_parameters()
        for client in honest:
            client.set_model_state(weights)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    clients = make_clients()
    subjects: dict[str, Callable[[], Any]] = {
        "bare gradients of 14 clients": run_bare(clients),
        "robagg, TQ": run_ours(clients, "tq")[0],
        "robagg, TM": run_ours(clients, "tm")[0],
    }
    byzfl = None if options.no_peers else peers.load_byzfl()
    if byzfl is not None:
        subjects["ByzFL, TrMean"] = run_byzfl(byzfl, clients)
    times = take_turns(subjects, seconds=options.seconds)
    bare, ours = times["bare gradients of 14 clients"], times["robagg, TQ"]
    print(f"\na round of training, CNN, n={N}, f={F}, b={B}, {torch.get_num_threads()} threads")
    for name, seconds in times.items():
        print(f"{name:<32}{1000 * seconds:>9.1f} ms{seconds / bare:>8.2f} x bare gradients")
    print(f"TQ against bare gradients: {ours / bare:.2f} (target: at most 1.3)")
    if byzfl is not None:
        print(f"TQ against ByzFL with TrMean: {times['ByzFL, TrMean'] / ours:.2f} times faster (target: at least 2)")
    if options.json:
        record = {"machine": describe_machine(), "seconds": times}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
