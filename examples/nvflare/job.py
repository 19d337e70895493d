"""The job: sites that train on digits, of which some may attack, and a server that withstands them.

python job.py --attacks ipm,nan             runs it in NVFlare's simulator, and says how good the model is
python job.py --attacks ipm,nan --export .  writes the job for a deployment
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from network import Network, evaluate
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.app_opt.pt.job_config.model import PTModel
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import ScriptRunner

from robagg.nvflare import RobustAggregator, RobustFedAvg

HERE = Path(__file__).parent


def build_job(args: argparse.Namespace) -> FedJob:
    """The server with its model, and what every site runs."""
    job = FedJob(name="robust-digits", min_clients=args.sites)
    job.set_app_packages(["robagg"])  # it is installed at the server, so that the job need not bring its files
    if args.rule == "fedavg":
        controller = FedAvg(num_clients=args.sites, num_rounds=args.rounds)
    else:
        aggregator = RobustAggregator(args.rule, f=args.f, journal=args.journal)
        controller = RobustFedAvg(num_clients=args.sites, num_rounds=args.rounds, aggregator=aggregator)
    job.to_server(controller)
    job.to_server(PTModel(Network()), id="persistor")
    arguments = f"--sites {args.sites}" + (f" --attacks {args.attacks}" if args.attacks else "")
    job.to_clients(ScriptRunner(script=str(HERE / "client.py"), script_args=arguments))
    return job


def main() -> None:
    """Run the job, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rule", default="nnm >> cm", help='or "fedavg", to see what happens without')
    parser.add_argument("--f", type=float, default=0.25, help="a share of the replies")
    parser.add_argument("--attacks", default="", help="what the first sites send, such as ipm,nan")
    parser.add_argument("--journal", default="rounds.jsonl", help="below the run's folder, unless it begins with /")
    parser.add_argument("--workspace", type=Path, default=Path("workspace"), help="the simulator empties it first")
    parser.add_argument("--export", type=Path, help="a folder, to write the job there and not run it")
    args = parser.parse_args()
    job = build_job(args)
    if args.export is not None:
        job.export_job(str(args.export))
        return
    job.simulator_run(str(args.workspace), n_clients=args.sites, threads=args.sites)
    model = Network()
    saved = args.workspace / "server" / "simulate_job" / "app_server" / "FL_global_model.pt"
    model.load_state_dict(torch.load(saved, weights_only=True)["model"])
    print(f"test accuracy {100 * evaluate(model):.2f}%")


if __name__ == "__main__":
    main()
