import numpy as np
from flwr.app import Array, ArrayRecord
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg

app = ServerApp()


@app.main()
def main(grid, context):
    strategy = FedAvg(fraction_train=1.0, min_available_nodes=5)
    arrays = ArrayRecord({"w": Array(np.zeros(4, np.float32))})
    result = strategy.start(grid=grid, initial_arrays=arrays, num_rounds=context.run_config["num-server-rounds"])
    print("the model is", result.arrays["w"].numpy().round(2).tolist())
