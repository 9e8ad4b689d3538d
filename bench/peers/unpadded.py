"""GPT-2, BERT and Llama of transformers on samples without padding: texts of several lengths are concatenated into one
sequence, and attention is limited to each text. In bfloat16 on CUDA it uses flash attention from flash_attn or, if that
is not installed, from torch.nn.attention.varlen; otherwise scaled_dot_product_attention with a mask that has a block
for each text."""
import importlib.util

import torch
from own_models import class_loss, next_token_loss, padded

FLASH, VARLEN, BLOCKS = "flash_attention_2", "torch_varlen", "sdpa"
WORDS = {FLASH: "flash_attn", VARLEN: "torch.nn.attention.varlen", BLOCKS: "scaled_dot_product_attention"}


class NotHere(Exception):
    """Raised if a library cannot be imported or does not work; the text says which."""


def kernel_for(device, dtype):
    if device != "cuda" or dtype != "bfloat16":
        return BLOCKS
    if importlib.util.find_spec("flash_attn"):
        return FLASH
    return VARLEN if importlib.util.find_spec("torch.nn.attention.varlen") else BLOCKS


def register_varlen(transformers):
    from torch.nn.attention.varlen import varlen_attn
    from transformers.masking_utils import flash_attention_mask

    def attend(module, query, key, value, _, scaling=None, cu_seq_lens_q=None, max_length_q=None, **__):
        """Computes attention: [1, heads, tokens, head size] -> [1, tokens, heads, head size]."""
        groups = query.shape[1] // key.shape[1]
        query, key, value = (one[0].transpose(0, 1) for one in (query, key.repeat_interleave(groups, 1),
                                                                value.repeat_interleave(groups, 1)))
        window = (-1, 0) if module.is_causal else (-1, -1)
        mixed = varlen_attn(query, key, value, cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q, scale=scaling,
                            window_size=window)
        return mixed[None], None

    transformers.AttentionInterface.register(VARLEN, attend)
    transformers.AttentionMaskInterface.register(VARLEN, flash_attention_mask)


class Unpadded:
    def __init__(self, folder, config, device, dtype):
        try:
            import transformers
        except ImportError as error:
            raise NotHere(f"transformers cannot be imported: {error}") from None
        self.is_classifier = config["model_type"] == "bert"
        kernel = kernel_for(device, dtype)
        if kernel == VARLEN:
            register_varlen(transformers)
        task = (transformers.AutoModelForSequenceClassification if self.is_classifier
                else transformers.AutoModelForCausalLM)
        self.model = task.from_pretrained(folder, attn_implementation=kernel, dtype=torch.float32)
        self.model.eval()  # without dropout
        self.kernel, self.how = kernel, f"transformers {transformers.__version__}, {WORDS[kernel]}"

    @property
    def weights(self):
        return dict(self.model.named_parameters())

    def to(self, device):
        self.model.to(device)

    def prepared(self, samples):
        """Returns, on the host, the model's arguments for these samples, and where each sample begins (None if samples
        are equally long and thus rows of one tensor)."""
        ids, is_token = padded(samples)
        if is_token is None and self.kernel != VARLEN:
            return {"input_ids": ids}, None
        lengths = torch.tensor([len(sample) for sample in samples])
        ends = lengths.cumsum(0)
        given = {"input_ids": torch.cat(samples)[None],
                 "position_ids": torch.cat([torch.arange(length) for length in lengths])[None]}
        if self.kernel == BLOCKS:
            text = torch.repeat_interleave(torch.arange(len(samples)), lengths)
            given["attention_mask"] = (text[:, None] == text)[None, None]
            if not self.is_classifier:
                given["attention_mask"] = given["attention_mask"].tril()
        else:
            bounds = torch.nn.functional.pad(ends, (1, 0)).int()
            longest = int(lengths.max())
            given |= {"cu_seq_lens_q": bounds, "cu_seq_lens_k": bounds, "max_length_q": longest,
                      "max_length_k": longest}
        return given, ends - lengths

    def loss(self, given, starts, labels):
        if not self.is_classifier:
            return next_token_loss(self.model(**given, use_cache=False).logits, labels)
        bert = self.model.bert
        hidden = bert(**given).last_hidden_state
        first = hidden[:, 0] if starts is None else hidden[0, starts]
        return class_loss(self.model.classifier(bert.pooler(first[:, None])), labels)
