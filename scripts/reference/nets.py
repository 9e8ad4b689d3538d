"""nets_reference.json: scores of small convolutional nets in evaluation mode, by transformers and torchvision."""
import json


def set_by_formula(model):
    """Sets weights that a test can compute too: number n (by its name) has sin(0.7 i + n) at index i, times 2 /
    sqrt(inputs) if it is a kernel or matrix, else times 0.3, and 1 more if it is a scale or a variance."""
    import numpy
    import torch
    stored = {name: tensor for name, tensor in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    with torch.no_grad():
        for n, (name, tensor) in enumerate(sorted(stored.items())):
            waves = numpy.sin(0.7 * numpy.arange(tensor.numel()) + n)
            if tensor.dim() > 1:
                values = 2 / numpy.sqrt(tensor[0].numel()) * waves
            else:
                values = 0.3 * waves + name.endswith(("weight", "running_var"))
            tensor.copy_(torch.from_numpy(values.astype(numpy.float32)).view(tensor.shape))
    return {name: list(tensor.shape) for name, tensor in stored.items()}


def small_nets():
    """Returns each net with its config.json and the size of its pictures."""
    import torch
    import torchvision
    import transformers

    def of(model_class, config):
        return model_class(config), {**config.to_dict(), "architectures": [model_class.__name__]}

    def mobilenet_v1(picture_size, **options):
        config = transformers.MobileNetV1Config(image_size=picture_size, num_labels=3, depth_multiplier=0.25, **options)
        return *of(transformers.MobileNetV1ForImageClassification, config), picture_size

    def mobilenet_v2(picture_size, **options):
        config = transformers.MobileNetV2Config(image_size=picture_size, num_labels=3, **options)
        return *of(transformers.MobileNetV2ForImageClassification, config), picture_size

    def resnet(layer_type, **options):
        config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 2, 1, 1],
                                           layer_type=layer_type, num_labels=3, **options)
        return *of(transformers.ResNetForImageClassification, config), 32

    vgg = torchvision.models.vgg11_bn()
    vgg.avgpool, vgg.classifier = torch.nn.AdaptiveAvgPool2d(1), torch.nn.Linear(512, 3)
    of_vgg = {"architecture": "vgg11_bn", "num_classes": 3, "head_hidden_size": 512,
              "pretrained_cfg": {"input_size": [3, 48, 48]}}
    return [resnet("basic"), resnet("bottleneck", downsample_in_bottleneck=True),
            mobilenet_v1(32), mobilenet_v1(33), mobilenet_v1(32, tf_padding=False, hidden_act="relu"),
            mobilenet_v2(40, depth_multiplier=0.25),
            mobilenet_v2(36, depth_multiplier=0.35, tf_padding=False, first_layer_is_expansion=False,
                         finegrained_output=False),
            (vgg, of_vgg, 48)]


def scored(model, config, picture_size):
    """Returns the scores of two pictures, computed in float64."""
    import torch
    shapes = set_by_formula(model)
    model.double().eval()
    pictures = torch.sin(0.9 * torch.arange(2 * 3 * picture_size**2, dtype=torch.float64)).float().double()
    with torch.no_grad():
        answer = model(pictures.view(2, 3, picture_size, picture_size))
    kept = (int, float, str, bool, list, dict)
    return {"config": {key: value for key, value in config.items()
                       if isinstance(value, kept) and key != "transformers_version"},
            "picture_size": picture_size, "shapes": shapes,
            "scores": [float(f"{value:.9g}") for value in getattr(answer, "logits", answer).reshape(-1).tolist()]}


def record_nets(path):
    """Records the scores of small nets of every family."""
    import torch
    import torchvision
    import transformers
    content = {"transformers": transformers.__version__, "torch": torch.__version__,
               "torchvision": torchvision.__version__, "nets": [scored(*case) for case in small_nets()]}
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")
