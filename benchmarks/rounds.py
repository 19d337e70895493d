"""A round of training against its bare gradients and against ByzFL's own loop, in one run.

Same model (the paper's CNN), n=20, f=6, b=32, momentum 0.99, the IPM attack; random images of MNIST's shape, because
time does not depend on what they show. ByzFL aggregates by TrMean. With `--device cuda` the round is a CUDA graph, and
ResNet-20 (n=25, f=4) is measured too.

    python benchmarks/rounds.py [--device cuda] [--json PATH]
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
from robagg.tasks import CIFAR10, MNIST
from robagg.tasks.base import Task
from robagg.training import LOSSES, Federation
from robagg.training.graph import capture
from timing import describe_machine, take_turns

N, F, B = 20, 6, 32


def make_clients(n: int = N, shape: tuple[int, ...] = (1, 28, 28)) -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(0)
    return [(torch.randn(256, *shape), torch.randint(10, (256,))) for _ in range(n)]


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


def run_byzfl(byzfl: Any, clients: list[tuple[Tensor, Tensor]], device: str = "cpu") -> Callable[[], None]:
    """The steps of one round of ByzFL's benchmark, on its own classes."""
    byzfl.fed_framework.models.robagg_cnn = CNN
    common = {"model_name": "robagg_cnn", "device": device, "optimizer_name": "SGD", "learning_rate": 0.02}
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


def time_captured(task: Task, model: str, rule: str, n: int, f: int, shape: tuple[int, ...], precision: str) -> float:
    """Milliseconds of a round as a CUDA graph, replayed."""
    federation = Federation(
        build(model),
        make_clients(n, shape),
        ra.parse(rule, f=f),
        IPM(),
        f=f,
        loss=LOSSES[task.loss],
        classes=10,
        settings=replace(task.settings, rounds=10**6, precision=precision),
        augment=task.transform,
        device="cuda",
    )
    graph = capture(federation)[False]
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(20):
        graph.replay()
    start.record()
    for _ in range(200):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 200


def time_byzfl() -> float | None:
    """Milliseconds of ByzFL's round on the GPU, or None where ByzFL cannot be had or cannot run."""
    byzfl = peers.load_byzfl()
    if byzfl is None:
        return None
    try:
        run = run_byzfl(byzfl, make_clients(), "cuda")

        def finish() -> None:
            run()
            torch.cuda.synchronize()

        return 1000 * take_turns({"ByzFL": finish}, seconds=3)["ByzFL"]
    except Exception as error:
        print(f"ByzFL's loop cannot run here: {type(error).__name__}: {error}")
        return None


def measure_gpu(with_peers: bool) -> dict[str, float]:
    cases = (
        ("CNN, n=20, f=6", MNIST(), "cnn", 20, 6, (1, 28, 28), 1.5),
        ("ResNet-20, n=25, f=4", CIFAR10(), "resnet20", 25, 4, (3, 32, 32), 8.0),
    )
    times = {}
    print(f"\na round of training as a CUDA graph, {torch.cuda.get_device_name()}")
    for name, task, model, n, f, shape, target in cases:
        for rule in ("tq", "tm", "nnm >> tq"):
            for precision in ("tf32", "bfloat16"):
                key = f"{name}, {rule}, {precision}"
                times[key] = time_captured(task, model, rule, n, f, shape, precision)
                wanted = f" (target: at most {target} ms)" if (rule, precision) == ("tq", "tf32") else ""
                print(f"{key:<48}{times[key]:>9.3f} ms{wanted}", flush=True)
    if with_peers and (taken := time_byzfl()) is not None:
        times["CNN, n=20, f=6, ByzFL with TrMean, its own loop"] = taken
        print(f"{'CNN, n=20, f=6, ByzFL with TrMean, its own loop':<48}{taken:>9.3f} ms", flush=True)
    return times


def measure_cpu(seconds: float, with_peers: bool) -> dict[str, float]:
    clients = make_clients()
    subjects: dict[str, Callable[[], Any]] = {
        "bare gradients of 14 clients": run_bare(clients),
        "robagg, TQ": run_ours(clients, "tq")[0],
        "robagg, TM": run_ours(clients, "tm")[0],
    }
    byzfl = peers.load_byzfl() if with_peers else None
    if byzfl is not None:
        subjects["ByzFL, TrMean"] = run_byzfl(byzfl, clients)
    times = take_turns(subjects, seconds=seconds)
    bare, ours = times["bare gradients of 14 clients"], times["robagg, TQ"]
    print(f"\na round of training, CNN, n={N}, f={F}, b={B}, {torch.get_num_threads()} threads")
    for name, taken in times.items():
        print(f"{name:<32}{1000 * taken:>9.1f} ms{taken / bare:>8.2f} x bare gradients")
    print(f"TQ against bare gradients: {ours / bare:.2f} (target: at most 1.3)")
    if byzfl is not None:
        print(f"TQ against ByzFL with TrMean: {times['ByzFL, TrMean'] / ours:.2f} times faster (target: at least 2.5)")
    return {name: 1000 * taken for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("there is no GPU here: nothing was measured")
        return
    machine, with_peers = describe_machine(), not options.no_peers
    times = measure_gpu(with_peers) if options.device == "cuda" else measure_cpu(options.seconds, with_peers)
    if options.json:
        device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
        record = {"machine": machine, "device": device, "ms": times}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
