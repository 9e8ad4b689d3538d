"""pictures_reference.json: models like DeiT and DINOv2."""
from reference.cases import Case, record_cases

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 6, "patch_size": 2,
         "num_labels": 3, "attn_implementation": "eager"}


def case(name, kind, **changes):
    import transformers
    config = getattr(transformers, kind + "Config")(**{**SIZES, **changes})
    return Case(name, kind + "ForImageClassification", config, "pictures", double=True)


def record_pictures(folder):
    """Writes the file into a folder."""
    record_cases(folder / "pictures_reference.json", [
        case("vit, no biases of the projections", "ViT", intermediate_size=24, qkv_bias=False),
        case("deit", "DeiT", intermediate_size=24),
        case("dinov2", "Dinov2", mlp_ratio=2, layerscale_value=0.5),
        case("dinov2, SwiGLU", "Dinov2", mlp_ratio=2, use_swiglu_ffn=True),
    ])
