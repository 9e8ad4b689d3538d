"""minilm_reference.json: hidden states of BertModel (fp32, evaluation mode, eager attention) for a padded batch."""
from reference.files import write_lines

SENTENCES = [
    "Good.",
    "A gripping, funny film!",
    "The plot makes no sense, and nobody seems to mind.",
    "Café owners in Zürich said that prices rose by 3.5% last year.",
    "it 's a charming and often affecting journey through a world that most of us will never get to see .",
    "Layers near the input of a network tend to converge first; freezing them early saves the time of their backward "
    "pass, frees memory on the devices at the front of the pipeline, and lets the remaining layers be packed onto "
    "fewer devices.",
]


def record_minilm(folder, path):
    import torch
    import transformers

    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    batch = tokenizer(SENTENCES, padding=True, truncation=True, max_length=128, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state  # [sentence, token, hidden]
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    pooled = (hidden * mask).sum(1) / mask.sum(1)

    def numbers(tensor):
        return [round(value, 7) for value in tensor.tolist()]

    sentences = []
    for i, text in enumerate(SENTENCES):
        size = int(batch["attention_mask"][i].sum())
        sentences.append({
            "text": text,
            "input_ids": batch["input_ids"][i, :size].tolist(),
            "first_token_first_8": numbers(hidden[i, 0, :8]),
            "last_token_first_8": numbers(hidden[i, size - 1, :8]),
            "mean_first_16": numbers(pooled[i, :16]),
            "mean_l2_norm": round(float(pooled[i].norm()), 7),
        })
    write_lines(path, {
        "source": f"scripts/record-reference: transformers {transformers.__version__}, torch {torch.__version__} on "
                  "the CPU, BertModel of all-MiniLM-L6-v2, fp32, evaluation mode, eager attention",
        "batch_shape": list(batch["input_ids"].shape),
        "padding_id": tokenizer.pad_token_id,
    }, {"sentences": sentences})
