"""encoders_reference.json: models like BERT, RoBERTa, DistilBERT, ELECTRA and ModernBERT."""
from reference.cases import Case, record_cases

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
         "vocab_size": 40, "max_position_embeddings": 12, "pad_token_id": 0, "attn_implementation": "eager"}
HEADS = {"classes": "ForSequenceClassification", "spans": "ForQuestionAnswering", "tokens": "ForTokenClassification",
         "some tokens": "ForTokenClassification"}


def case(name, kind, head, sizes=None, token_types=False, double=False, steps=False, saved_by_4=None, **changes):
    import transformers
    labels = {} if head == "spans" else {"num_labels": 3}
    config = getattr(transformers, kind + "Config")(**{**(sizes or SIZES), **labels, **changes})
    config_v4 = saved_by_4 and saved_by_4(config, [kind + HEADS[head]])
    return Case(name, kind + HEADS[head], config, head, token_types, config_v4, double, steps)


def berts():
    def bert(name, head, **changes):
        return case(name, "Bert", head, token_types=True, **changes)

    return [
        bert("bert, tokens", "some tokens", double=True),
        bert("bert, several labels", "classes", problem_type="multi_label_classification", double=True),
        bert("bert, regression", "classes", problem_type="regression", num_labels=1, double=True),
        bert("bert, relu", "classes", hidden_act="relu", layer_norm_eps=1e-5),
    ]


def robertas():
    sizes = {**SIZES, "pad_token_id": 1, "max_position_embeddings": 14, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
    return [
        case("roberta, classes", "Roberta", "classes", sizes, double=True, steps=True),
        case("roberta, spans", "Roberta", "spans", sizes),
        case("roberta, tokens", "Roberta", "some tokens", sizes),
        case("roberta, regression", "Roberta", "classes", sizes, problem_type="regression", num_labels=1),
        case("xlm-roberta, classes", "XLMRoberta", "classes", sizes),
        case("camembert, tokens", "Camembert", "tokens", sizes),
    ]


def distilberts_and_electras():
    distil = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24, "vocab_size": 40, "max_position_embeddings": 12,
              "attn_implementation": "eager"}
    electra = {**SIZES, "embedding_size": 8}
    return [
        case("distilbert, classes", "DistilBert", "classes", distil, double=True),
        case("distilbert, spans", "DistilBert", "spans", distil),
        case("distilbert, tokens", "DistilBert", "some tokens", distil),
        case("distilbert, several labels", "DistilBert", "classes", distil,
             problem_type="multi_label_classification"),
        case("electra, classes", "Electra", "classes", electra, token_types=True, double=True),
        case("electra, spans", "Electra", "spans", electra, token_types=True),
        case("electra, tokens", "Electra", "some tokens", electra, token_types=True),
        case("electra, embeddings as wide as the blocks", "Electra", "classes", electra, token_types=True,
             embedding_size=16),
    ]


def modernbert_version_4(config, architectures):
    """Returns a config.json of transformers 4, with a window in every n-th layer and two bases of rotary positions."""
    fields = {key: value for key, value in config.to_diff_dict().items()
              if key not in ("rope_parameters", "dtype", "transformers_version", "layer_types")}
    return {**fields, "global_rope_theta": config.rope_parameters["full_attention"]["rope_theta"],
            "local_rope_theta": config.rope_parameters["sliding_attention"]["rope_theta"],
            "global_attn_every_n_layers": 3, "torch_dtype": "float32", "architectures": architectures}


def modernberts():
    sizes = {**SIZES, "num_hidden_layers": 4, "local_attention": 4, "cls_token_id": 2, "sep_token_id": 3,
             "bos_token_id": 2, "eos_token_id": 3}

    def modernbert(name, head, **changes):
        return case(name, "ModernBert", head, sizes, **changes)

    return [
        modernbert("modernbert, classes", "classes", saved_by_4=modernbert_version_4, double=True),
        modernbert("modernbert, classes by the mean", "classes", classifier_pooling="mean", num_hidden_layers=2),
        modernbert("modernbert, tokens", "some tokens", num_hidden_layers=3),
        modernbert("modernbert, spans", "spans", num_hidden_layers=2),
        modernbert("modernbert, biases", "classes", attention_bias=True, mlp_bias=True, norm_bias=True,
                   classifier_bias=True, num_hidden_layers=2),
    ]


def record_encoders(folder):
    """Writes the file into a folder."""
    record_cases(folder / "encoders_reference.json",
                 berts() + robertas() + distilberts_and_electras() + modernberts())
