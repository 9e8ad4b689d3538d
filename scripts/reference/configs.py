"""configs_reference.json: config.json of every family, as transformers writes all fields of its defaults."""
from reference.files import write_lines

TYPES = ("bert vit gpt2 roberta xlm-roberta camembert distilbert electra modernbert llama mistral qwen2 qwen3 gemma "
         "gemma2 gemma3_text olmo2 phi3 gpt_neox deit dinov2 mixtral qwen3_moe olmoe deepseek_v3 smollm3 granite "
         "starcoder2 olmo3").split()


def record_configs(path):
    """Writes the file `path`."""
    import transformers
    configs = [transformers.CONFIG_MAPPING[name]().to_dict() for name in TYPES]
    write_lines(path, {"transformers": transformers.__version__}, {"configs": configs})
