"""LoRA adapters in PEFT's folders: read, judged by what they do to a model, combined, cut to a rank, written."""
