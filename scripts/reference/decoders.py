"""decoders_reference.json: models like Llama, Mistral and Qwen; rotary_reference.json: models with every scaling of
rotary positions."""
from reference.cases import Case, record_cases

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24,
         "vocab_size": 40, "max_position_embeddings": 12, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 39,
         "attn_implementation": "eager"}
HEADS = {"causal": "ForCausalLM", "classes": "ForSequenceClassification", "spans": "ForQuestionAnswering",
         "tokens": "ForTokenClassification"}
OTHER_NAMES = {"GPT2ForCausalLM": "GPT2LMHeadModel", "Gemma3TextForCausalLM": "Gemma3ForCausalLM"}


def version_4(config, **changes):
    """Returns a config.json of transformers 4, with the base of rotary positions and their scaling at the top level."""
    fields = {key: value for key, value in config.to_diff_dict().items()
              if key not in ("rope_parameters", "dtype", "transformers_version", "layer_types",
                             "_sliding_window_pattern")}
    rotary = dict(config.rope_parameters)
    by_window = rotary.pop("sliding_attention", None)
    if by_window is not None:
        if config.model_type != "olmo3":  # its two bases are the same
            fields["rope_local_base_freq"] = by_window["rope_theta"]
        rotary = dict(rotary["full_attention"])
    fields["rope_theta"] = rotary.pop("rope_theta")
    if "partial_rotary_factor" in rotary:
        fields["partial_rotary_factor"] = rotary.pop("partial_rotary_factor")
    fields["rope_scaling"] = rotary if rotary["rope_type"] != "default" else None
    if config.model_type == "gpt_neox":
        fields["rotary_emb_base"], fields["rotary_pct"] = fields.pop("rope_theta"), fields.pop("partial_rotary_factor")
    return {**fields, "torch_dtype": "float32", **changes}


def case(name, kind, head="causal", saved_by_4=None, steps=False, sizes=None, **changes):
    """`saved_by_4`: the differing fields in the config.json of transformers 4; None if it is not recorded."""
    import transformers
    labels = {"num_labels": 3} if head in ("classes", "tokens") else {}
    config = getattr(transformers, kind + "Config")(**{**(sizes or SIZES), **labels, **changes})
    architecture = OTHER_NAMES.get(kind + HEADS[head], kind + HEADS[head])
    config_v4 = None if saved_by_4 is None else version_4(config, architectures=[architecture], **saved_by_4)
    return Case(name, architecture, config, head, config_v4=config_v4, double=head == "causal", steps=steps)


def llamas():
    shared = {"num_key_value_heads": 2, "head_dim": 4, "rms_norm_eps": 1e-5}
    return [
        case("llama", "Llama", saved_by_4={}, steps=True, **shared),
        case("llama, classes", "Llama", "classes", saved_by_4={}, **shared),
        case("llama, spans", "Llama", "spans", **shared),
        case("llama, tokens", "Llama", "tokens", **shared),
        case("llama, tied", "Llama", tie_word_embeddings=True, **shared),
        case("llama, biases", "Llama", attention_bias=True, mlp_bias=True, **shared),
    ]


def scalings():
    """Bases and lengths are chosen such that the four frequencies of a head include slow, fast and mixed ones."""
    def scaled(name, kind, theta=100.0, max_position_embeddings=32, **values):
        return case(name, "Llama", saved_by_4={}, num_key_value_heads=2, head_dim=8,
                    max_position_embeddings=max_position_embeddings,
                    rope_parameters={"rope_type": kind, "rope_theta": theta, "factor": 4.0, **values})

    return [
        scaled("linear", "linear"),
        scaled("dynamic, texts longer than before", "dynamic", max_position_embeddings=5),
        scaled("dynamic, texts as before", "dynamic"),
        scaled("llama3", "llama3", low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32,
               max_position_embeddings=128),
        scaled("yarn", "yarn", original_max_position_embeddings=64, beta_fast=4.0, beta_slow=1.0,
               max_position_embeddings=256),
        scaled("yarn as by default", "yarn", theta=10000.0, original_max_position_embeddings=64,
               max_position_embeddings=256),
        scaled("yarn, not truncated, with a factor of attention", "yarn", attention_factor=1.25, truncate=False,
               original_max_position_embeddings=64, beta_fast=4.0, max_position_embeddings=256),
        scaled("yarn, mscale", "yarn", mscale=1.0, mscale_all_dim=0.5, original_max_position_embeddings=64,
               beta_fast=4.0, max_position_embeddings=256),
    ]


def mistral_and_qwen():
    grouped = {"num_key_value_heads": 2}
    own_size = {**grouped, "head_dim": 8}
    windows = {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1, "num_hidden_layers": 3}
    return [
        case("mistral, window", "Mistral", sliding_window=3, **grouped),
        case("mistral, one key head", "Mistral", sliding_window=None, num_key_value_heads=1),
        case("mistral, classes", "Mistral", "classes", sliding_window=3, **grouped),
        case("qwen2", "Qwen2", saved_by_4={"sliding_window": 3}, **grouped),
        case("qwen2, tied", "Qwen2", tie_word_embeddings=True, **grouped),
        case("qwen2, windows by layer", "Qwen2", **windows, **grouped),
        case("qwen2, classes", "Qwen2", "classes", **grouped),
        case("qwen3", "Qwen3", steps=True, **own_size),
        case("qwen3, tied", "Qwen3", tie_word_embeddings=True, **own_size),
        case("qwen3, biases", "Qwen3", attention_bias=True, **own_size),
        case("qwen3, tokens", "Qwen3", "tokens", **own_size),
    ]


def record_decoders(folder):
    """Writes both files into a folder."""
    record_cases(folder / "decoders_reference.json", llamas() + mistral_and_qwen())
    record_cases(folder / "rotary_reference.json", scalings())
