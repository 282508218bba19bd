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
    """Lines of Markdown: everything that the numbers depend on, and what they cost."""
    config, text = results[0]["config"], results[0]["text"]
    steps, batch_size, length = config["max_steps"], config["per_device_train_batch_size"], config["length"]
    seen = steps * batch_size * length
    seeds = sorted({result["seed"] for result in results})
    parameters = sorted({result["parameters"] for result in results})
    shown = f"{parameters[0]:,}" + (f" to {parameters[-1]:,}" if len(parameters) > 1 else "")
    return [
        f"- Text: {config['text_files'].replace(',', ', ')}; {text['tokens']:,} characters (a run of white space is "
        f"one, the end of a document is one), {text['training_tokens']:,} to train on and {text['held_out_tokens']:,} "
        f"held out in {config['held_out_windows']} stretches at even distances; vocabulary {text['vocabulary']:,}, "
        f"{text['unknown_share']:.2%} of the characters unknown (fewer than {config['vocab_min_count']} occurrences).",
        f"- Model: RoFormer version {config['version']}, causal, {config['num_hidden_layers']} layers of "
        f"{config['hidden_size']}, {config['num_attention_heads']} heads of "
        f"{config['hidden_size'] // config['num_attention_heads']}, feed-forward {config['intermediate_size']} "
        f"({config['hidden_act']}), no dropout; {shown} parameters.",
        f"- Training: {steps:,} steps of {batch_size} texts of {length} characters at random places "
        f"({seen:,} characters, {seen / text['training_tokens']:.2f} times the text); AdamW, learning rate "
        f"{config['learning_rate']:g} after {config['warmup_steps']} steps of warm-up, then linear to 0, weight decay "
        f"{config['weight_decay']:g}, gradients cut to norm {config['max_grad_norm']:g}.",
        f"- Seeds {', '.join(map(str, seeds))}, of weights and of the places of texts; all variants see the same "
        "texts.",
        f"- {'; '.join(sorted({result['machine'] for result in results}))}. {len(results)} runs, "
        f"{sum(result['train_seconds'] for result in results) / 60:.0f} minutes of training in all. Losses in nats a "
        "character.",
    ]
