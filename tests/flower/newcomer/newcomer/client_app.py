import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


@app.train()
def train(message, context):
    w = message.content["arrays"]["w"].numpy()
    step = np.ones(4, np.float32)
    if context.node_config["partition-id"] == 0:
        step = np.full(4, np.nan, np.float32)  # this client is broken
    arrays = ArrayRecord({"w": Array(w + step)})
    metrics = MetricRecord({"num-examples": 10})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


@app.evaluate()
def evaluate(message, context):
    w = message.content["arrays"]["w"].numpy()
    metrics = MetricRecord({"num-examples": 10, "loss": float(np.abs(w - 3).mean())})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)
