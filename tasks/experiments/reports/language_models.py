"""Shared parts of reports on several language models."""


def by_variant(results):
    """dict from the name of each variant to its ``results``: dicts with ``variant``, ``seed``, ``config`` and what
    ``metrics.json`` has, in the order of the seeds."""
    grouped = {}
    for result in results:
        grouped.setdefault(result["variant"], []).append(result)
    return grouped


def final_loss(result):
    """Held-out loss after the last step, in texts of the length of training."""
    return result["dev"]["loss"]


def setting(results):
    """Lines of Markdown: what the numbers depend on, and what they cost. All other keys are in the runs' folders."""
    config, text = results[0]["config"], results[0]["text"]
    steps, batch_size, length = (config[key] for key in ("max_steps", "per_device_train_batch_size", "length"))
    seeds, machines = (sorted({result[key] for result in results}) for key in ("seed", "machine"))
    minutes = sum(result["train_seconds"] for result in results) / 60
    return [
        f"- Text: {', '.join(config['text_files'])}; {text['training_tokens']:,} characters to train on, "
        f"{text['held_out_tokens']:,} held out; vocabulary {text['vocabulary']:,}.",
        f"- Model: {config['num_hidden_layers']} causal layers of {config['hidden_size']}, "
        f"{config['num_attention_heads']} heads, up to {max(result['parameters'] for result in results):,} parameters.",
        f"- Training: {steps:,} steps of {batch_size} texts of {length} characters; all variants see the same texts; "
        f"learning rate {config['learning_rate']:g}; seeds {', '.join(map(str, seeds))}.",
        f"- {'; '.join(machines)}. {len(results)} runs, {minutes:.0f} minutes. Losses in nats a character.",
    ]
