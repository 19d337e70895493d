"""A site: it trains, and sends what it trained, unless `--attacks` names something else for it."""

from __future__ import annotations

import argparse

import nvflare.client as flare
import torch
from attackers import ATTACKS
from network import Network, evaluate, take_part, train


def main() -> None:
    """Train whenever the server asks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sites", type=int, required=True)
    parser.add_argument("--attacks", default="", help="what the first sites send, such as ipm,nan")
    args = parser.parse_args()
    torch.set_num_threads(1)
    flare.init()
    number = int(flare.get_site_name().removeprefix("site-")) - 1
    attacks = [name for name in args.attacks.split(",") if name]
    attack = ATTACKS[attacks[number]] if number < len(attacks) else None
    x, y = take_part(number, args.sites)
    model = Network()
    while flare.is_running():
        task = flare.receive()
        sent = {name: torch.as_tensor(value) for name, value in task.params.items()}
        model.load_state_dict(sent)
        before = evaluate(model)
        train(model, x, y, epochs=3, seed=1000 * task.current_round + number)
        trained = {name: value.clone() for name, value in model.state_dict().items()}
        meta = {"NUM_STEPS_CURRENT_ROUND": len(x)}
        if attack is not None:
            flare.send(attack(sent, trained, meta))
        else:
            flare.send(flare.FLModel(params=trained, metrics={"accuracy": before}, meta=meta))


if __name__ == "__main__":
    main()
