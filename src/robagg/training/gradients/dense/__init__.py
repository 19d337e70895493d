"""All clients as one dense batch, of which only the weights' gradients are each client's own."""
