"""models_reference.json: logits, loss and gradients of small BERT, ViT and GPT-2 models with each of their heads."""
import json
import pathlib


def stored_parameters(model):
    """Returns the parameters that form each tensor of a saved file, from its first row to its last; usually it is
    one."""
    import safetensors.torch
    import tempfile
    import torch
    parameters = list(model.parameters())
    with torch.no_grad():
        for number, tensor in enumerate(parameters):
            tensor.fill_(number)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors")
    return {name: [parameters[int(number)] for number in dict.fromkeys(tensor.reshape(-1).tolist())]
            for name, tensor in saved.items()}


def set_by_formula(model):
    """Sets weights that a test can compute too: tensor number n (by its name in the file) has 0.3 sin(0.7 i + n) at
    index i, and scales of norms have 1 more. Returns the parameters of each tensor by its name in the file."""
    import numpy
    import torch
    stored = stored_parameters(model)
    with torch.no_grad():
        for n, (name, pieces) in enumerate(sorted(stored.items())):
            whole = torch.cat(pieces)
            values = 0.3 * numpy.sin(0.7 * numpy.arange(whole.numel()) + n)
            is_scale = whole.dim() == 1 and name.endswith("weight")
            values = torch.from_numpy((values + is_scale).astype(numpy.float32)).view(whole.shape)
            for piece, part in zip(pieces, values.split([len(piece) for piece in pieces])):
                piece.copy_(part)
    return stored


def small_models():
    """Returns, for every family with each of its heads: model, inputs, labels, mask and token types; padded batches
    where the head allows it."""
    import torch
    import transformers

    def bert(num_labels):
        return transformers.BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
                                       vocab_size=40, max_position_embeddings=12, num_labels=num_labels,
                                       attn_implementation="eager")

    vit = transformers.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
                                 image_size=6, patch_size=2, num_labels=3, attn_implementation="eager")
    gpt2 = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_inner=24, vocab_size=40, n_positions=12,
                                   num_labels=3, pad_token_id=39, bos_token_id=39, eos_token_id=39,
                                   attn_implementation="eager")
    ids = [[2, 7, 1, 8, 2, 8, 3], [3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]]
    mask = [[1] * 7, [1] * 6 + [0], [1] * 5 + [0] * 2]
    whole = [[1] * 7] * 3
    types = [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 0], [0, 0, 0, 1, 1, 0, 0]]
    shared = {"input_ids": torch.tensor(ids)}
    pixels = torch.sin(0.9 * torch.arange(3 * 3 * 6 * 6, dtype=torch.float64)).float().view(3, 3, 6, 6)
    last_is_padding = [row[:n] + [39] * (7 - n) for row, n in zip(ids, (7, 6, 5))]
    return [
        (transformers.BertForSequenceClassification(bert(3)),
         {**shared, "token_type_ids": torch.tensor(types), "attention_mask": torch.tensor(mask)}, {"labels": [2, 0, 1]},
         mask, types),
        (transformers.BertForQuestionAnswering(bert(2)),
         {**shared, "token_type_ids": torch.tensor(types), "attention_mask": torch.tensor(whole)},
         {"start_positions": [3, 4, 5], "end_positions": [5, 4, 6]}, whole, types),
        (transformers.ViTForImageClassification(vit), {"pixel_values": pixels}, {"labels": [2, 0, 1]}, None, None),
        (transformers.GPT2LMHeadModel(gpt2), {**shared, "attention_mask": torch.tensor(whole)}, {"labels": ids}, whole,
         None),
        (transformers.GPT2ForSequenceClassification(gpt2),
         {"input_ids": torch.tensor(last_is_padding), "attention_mask": torch.tensor(mask)}, {"labels": [2, 0, 1]},
         mask, None),
        (transformers.GPT2ForQuestionAnswering(gpt2), {**shared, "attention_mask": torch.tensor(whole)},
         {"start_positions": [3, 4, 5], "end_positions": [5, 4, 6]}, whole, None),
    ]


def computed(model, inputs, labels, mask, types):
    """Computes logits, loss and some of the gradients of each parameter."""
    import torch
    model.eval()
    parameters = set_by_formula(model)
    answer = model(**inputs, **{name: torch.tensor(values) for name, values in labels.items()})
    answer.loss.backward()
    has_spans = hasattr(answer, "start_logits")
    logits = torch.stack([answer.start_logits, answer.end_logits], -1) if has_spans else answer.logits
    config = {**model.config.to_dict(), "architectures": [type(model).__name__]}
    gradients = {name: tensor.grad.reshape(-1)[::max(1, tensor.numel() // 24)]
                 for name, (tensor,) in parameters.items()}
    return {
        "config": {key: value for key, value in config.items()
                   if isinstance(value, (int, float, str, bool, list)) and key != "transformers_version"},
        "shapes": {name: list(tensor.shape) for name, (tensor,) in parameters.items()},
        "input_ids": inputs["input_ids"].tolist() if "input_ids" in inputs else None,
        "mask": mask, "token_types": types, "labels": labels,
        "loss": answer.loss.item(),
        "logits": [round(value, 7) for value in logits.detach().reshape(-1).tolist()],
        "gradients": {name: [round(value, 9) for value in values.tolist()] for name, values in gradients.items()},
    }


def record_models(path):
    """Records logits, loss and gradients of small models of every family with each of its heads."""
    import torch
    import transformers
    models = [computed(*case) for case in small_models()]
    content = {"transformers": transformers.__version__, "torch": torch.__version__, "models": models}
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
