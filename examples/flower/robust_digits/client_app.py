"""The client: it trains, and sends what it trained, unless the run's `attacks` names something else for it."""

from __future__ import annotations

from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from robagg.flower import worker_momentum
from robust_digits.attackers import ATTACKS, wrap
from robust_digits.task import build_model, evaluate, read_data, take_part, train

app = ClientApp()


def name_attack(context: Context) -> str:
    """What this node sends: the first nodes take the run's attacks in turn, the others are honest."""
    attacks = [name.strip() for name in str(context.run_config["attacks"]).split(",") if name.strip()]
    partition = int(context.node_config["partition-id"])
    return attacks[partition] if partition < len(attacks) else ""


def add_momentum(message: Message, context: Context, call_next):  # type: ignore[no-untyped-def]
    """Worker momentum as strong as the run says; a fixed one needs only `ClientApp(mods=[worker_momentum(0.9)])`."""
    mu = float(context.run_config["momentum"])
    if mu == 0 or name_attack(context):
        return call_next(message, context)
    return worker_momentum(mu)(message, context, call_next)


@app.train(mods=[add_momentum])
def train_here(message: Message, context: Context) -> Message:
    """Train the model that came on this node's data."""
    sent: ArrayRecord = message.content["arrays"]
    partition, partitions = int(context.node_config["partition-id"]), int(context.node_config["num-partitions"])
    config = context.run_config
    model = build_model(config["dataset"])
    model.load_state_dict(sent.to_torch_state_dict())
    x, y = take_part(config["dataset"], partition, partitions)
    seed = 1000 * int(message.content["config"]["server-round"]) + partition
    rate = float(config["learning-rate"])
    loss = train(model, x, y, epochs=int(config["local-epochs"]), learning_rate=rate, seed=seed)
    metrics = MetricRecord({"num-examples": len(x), "train-loss": loss})
    trained = ArrayRecord(model.state_dict())
    attack = name_attack(context)
    content = ATTACKS[attack](sent, trained, metrics) if attack else wrap(trained, metrics)
    return Message(content, reply_to=message)


@app.evaluate()
def evaluate_here(message: Message, context: Context) -> Message:
    """Evaluate the model that came on a part of the test data."""
    config = context.run_config
    partition, partitions = int(context.node_config["partition-id"]), int(context.node_config["num-partitions"])
    model = build_model(config["dataset"])
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    data = read_data(config["dataset"])
    loss, accuracy = evaluate(model, data.test_x[partition::partitions], data.test_y[partition::partitions])
    metrics = MetricRecord({"num-examples": len(data.test_x) // partitions, "loss": loss, "accuracy": accuracy})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
