"""gemma_reference.json: models like the three versions of Gemma; more_decoders_reference.json: models like Phi-3, OLMo
2 and 3, GPT-NeoX, GPT-2, SmolLM3, Granite and StarCoder2."""
from reference.cases import record_cases
from reference.decoders import SIZES, case


def gemmas():
    shared = {"num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}
    windows = {**shared, "num_hidden_layers": 3, "sliding_window": 3, "query_pre_attn_scalar": 5}
    no_caps = {"final_logit_softcapping": None, "attn_logit_softcapping": None}
    bases = {"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1000.0},
             "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}
    gemma3 = {**windows, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
    return [
        case("gemma", "Gemma", **shared),
        case("gemma, one key head", "Gemma", **{**shared, "num_key_value_heads": 1}),
        case("gemma, classes", "Gemma", "classes", **shared),
        case("gemma2", "Gemma2", saved_by_4={}, steps=True, final_logit_softcapping=1.5, attn_logit_softcapping=0.75,
             **windows),
        case("gemma2, no caps", "Gemma2", **no_caps, **{**windows, "num_hidden_layers": 2}),
        case("gemma2, classes", "Gemma2", "classes", attn_logit_softcapping=0.75,
             **{**windows, "num_hidden_layers": 2}),
        case("gemma3_text", "Gemma3Text", saved_by_4={"sliding_window_pattern": 2}, rope_parameters=bases, **gemma3),
        case("gemma3_text, classes", "Gemma3Text", "classes", rope_parameters=bases, **gemma3),
    ]


def others():
    grouped = {"num_key_value_heads": 2}
    gpt2 = {**SIZES, "n_inner": 24}
    del gpt2["intermediate_size"]
    neox = {"num_attention_heads": 2, "pad_token_id": 39}

    granite = {**grouped, "embedding_multiplier": 3.0, "attention_multiplier": 0.4, "residual_multiplier": 0.3,
               "logits_scaling": 2.5}
    by_kind = {"full_attention": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 500000.0, "beta_fast": 4.0,
                                  "original_max_position_embeddings": 64},
               "sliding_attention": {"rope_type": "default", "rope_theta": 500000.0}}
    olmo3 = {**grouped, "sliding_window": 3, "rope_parameters": by_kind, "max_position_embeddings": 256,
             "layer_types": ["sliding_attention", "full_attention"]}  # float32 is too inexact for more layers

    def rotating(part):
        return {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": part}

    return [
        case("phi3", "Phi3", **grouped),
        case("phi3, window, a part of the head rotates", "Phi3", saved_by_4={}, sliding_window=3,
             num_attention_heads=2, num_key_value_heads=1, rope_parameters=rotating(0.5)),
        case("phi3, tokens", "Phi3", "tokens", **grouped),
        case("olmo2", "Olmo2", **grouped),
        case("olmo2, tied", "Olmo2", tie_word_embeddings=True, **grouped),
        case("olmo2, classes", "Olmo2", "classes", **grouped),
        case("gpt_neox", "GPTNeoX", saved_by_4={}, steps=True, rope_parameters=rotating(0.25), **neox),
        case("gpt_neox, sequential residual", "GPTNeoX", use_parallel_residual=False, rope_parameters=rotating(0.5),
             **neox),
        case("gpt_neox, no biases, tied", "GPTNeoX", attention_bias=False, tie_word_embeddings=True,
             rope_parameters=rotating(1.0), hidden_act="gelu_new", **neox),
        case("gpt_neox, classes", "GPTNeoX", "classes", rope_parameters=rotating(0.25), **neox),
        case("gpt_neox, spans", "GPTNeoX", "spans", rope_parameters=rotating(0.25), **neox),
        case("gpt_neox, tokens", "GPTNeoX", "tokens", rope_parameters=rotating(0.25), **neox),
        case("gpt2", "GPT2", sizes=gpt2),
        case("gpt2, tokens", "GPT2", "tokens", sizes=gpt2),
        case("gpt2, scaled by layer, untied, relu", "GPT2", sizes=gpt2, scale_attn_by_inverse_layer_idx=True,
             tie_word_embeddings=False, activation_function="relu"),
        case("olmo3", "Olmo3", steps=True, saved_by_4={"layer_types": olmo3["layer_types"]}, **olmo3),
        case("olmo3, tied, windows as by default", "Olmo3", tie_word_embeddings=True, **{**olmo3, "layer_types": None}),
        case("olmo3, classes", "Olmo3", "classes", **olmo3),
        case("smollm3", "SmolLM3", steps=True, saved_by_4={}, **{**grouped, "num_hidden_layers": 4}),
        case("smollm3, untied, biases, listed", "SmolLM3", tie_word_embeddings=False, attention_bias=True,
             mlp_bias=True, no_rope_layers=[0, 1], **grouped),
        case("smollm3, windows", "SmolLM3", use_sliding_window=True, sliding_window=3, no_rope_layer_interval=2,
             **grouped),
        case("smollm3, classes", "SmolLM3", "classes", **grouped),
        case("smollm3, spans", "SmolLM3", "spans", no_rope_layer_interval=2, **grouped),
        case("smollm3, tokens", "SmolLM3", "tokens", **grouped),
        case("granite", "Granite", steps=True, saved_by_4={}, **granite),
        case("granite, tied, biases", "Granite", tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
             **granite),
        case("starcoder2", "Starcoder2", steps=True, saved_by_4={}, sliding_window=3, **grouped),
        case("starcoder2, untied, no biases", "Starcoder2", tie_word_embeddings=False, use_bias=False, **grouped),
        case("starcoder2, classes", "Starcoder2", "classes", **grouped),
        case("starcoder2, tokens", "Starcoder2", "tokens", **grouped),
    ]


def record_more_decoders(folder):
    """Writes both files into a folder."""
    record_cases(folder / "gemma_reference.json", gemmas())
    record_cases(folder / "more_decoders_reference.json", others())
