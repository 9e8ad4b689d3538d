"""Small models as test cases: computes each with transformers, in float32 and in float64, and writes them to a file."""
import contextlib
import copy
import json
import pathlib
import tempfile
import typing
import unittest.mock

from reference.models import set_by_formula

IDS = [[2, 7, 11, 8, 2, 8, 3], [3, 11, 4, 11, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]]
PADDED = [[1] * 7, [1] * 6 + [0], [1] * 5 + [0] * 2]
WHOLE = [[1] * 7] * 3
TOKEN_TYPES = [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 1, 0], [0, 0, 0, 1, 1, 0, 0]]
LOGITS, GRADIENTS = {"single": 76, "double": 28}, {"single": 6, "double": 3}  # approximate numbers of recorded values

EXPLANATION = {
    "weights": "tensor number n by its name has 0.3 sin(0.7 i + n) at place i, in float32; tensors of one dimension "
               "whose names end with \"weight\" have 1 more, Gemma's norms, which compute with 1 + weight, too",
    "config": "config.json as this transformers saves it, without its version",
    "config_v4": "the same model as transformers 4 wrote its config.json",
    "thinned": "of a tensor of n values every s-th is recorded, s = max(1, n // count) | 1, if n is more than count; "
               "count is 76 for logits, 6 for gradients and updated weights; of `double` 28 and 3",
    "loss": "the mean over samples, or over all labelled tokens (labels of -100 are left out)",
    "gradients": "float32, eager attention; a tensor that is not listed has none",
    "double": "the same code in float64: torch.float32, which transformers names inside of norms, softmax, rotary "
              "positions and losses, stands for torch.float64 there. The weights are the float32 ones",
    "updated": "weights after 3 steps of AdamW (lr 1e-3, betas 0.9 and 0.999, eps 1e-8, no decay) on the same batch; "
               "tensors whose gradients are zero but for rounding are left out",
}


class Case(typing.NamedTuple):
    """A test case: a model that is built again for every precision."""
    name: str
    architecture: str
    config: object
    head: str  # a key of HEADS
    token_types: bool = False
    config_v4: dict | None = None
    double: bool = False  # whether `double` is recorded
    steps: bool = False  # whether `updated` is recorded


def classes(case):
    """Returns one label of three for each text, or labels for `problem_type`."""
    kind = case.config.problem_type
    if kind == "regression":
        return {"labels": [0.5, -1.25, 2.0]}, PADDED
    if kind == "multi_label_classification":
        return {"labels": [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 1.0]]}, PADDED
    return {"labels": [2, 0, 1]}, PADDED


HEADS = {
    "causal": lambda case: ({"labels": IDS}, WHOLE),
    "classes": classes,
    "spans": lambda case: ({"start_positions": [3, 4, 5], "end_positions": [5, 4, 6]}, WHOLE),
    "tokens": lambda case: ({"labels": [[0, 1, 2, 0, 0, 1, 2], [2, 2, 0, 1, 1, 0, 0], [1, 0, 0, 2, 1, 1, 0]]}, WHOLE),
    "some tokens": lambda case: ({"labels": [[-100, 1, 2, 0, -100, 1, -100], [-100, 2, 0, 1, 1, -100, -100],
                                             [-100, 0, 0, 2, -100, -100, -100]]}, PADDED),
    "pictures": lambda case: ({"labels": [2, 0, 1]}, None),
}


def thinned(values, count, digits):
    """Returns some of a tensor's values, rounded; the step is odd, so that all columns are sampled."""
    flat = values.detach().reshape(-1)
    step = max(1, flat.numel() // count) | 1 if flat.numel() > count else 1
    return [float(f"{value:.{digits}g}") for value in flat[::step].tolist()]


@contextlib.contextmanager
def float64_by_every_name():
    """Makes transformers compute in float64 even where its code asks for float32."""
    import torch
    default = torch.get_default_dtype()
    with contextlib.ExitStack() as stack:
        for owner, name, value in ((torch, "float32", torch.float64), (torch, "float", torch.float64),
                                   (torch.Tensor, "float", torch.Tensor.double)):
            stack.enter_context(unittest.mock.patch.object(owner, name, value))
        torch.set_default_dtype(torch.float64)
        stack.callback(torch.set_default_dtype, default)
        yield


def inputs_of(case, mask):
    """Returns the arguments of the model's forward function; masked tokens are padding tokens."""
    import torch
    if mask is None:
        return {"pixel_values": torch.sin(0.9 * torch.arange(3 * 3 * 6 * 6, dtype=torch.float64))
                .to(torch.float32).view(3, 3, 6, 6)}
    ids = [[i if kept else case.config.pad_token_id for i, kept in zip(*rows)] for rows in zip(IDS, mask)]
    inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
    if case.token_types:
        inputs["token_type_ids"] = torch.tensor(TOKEN_TYPES)
    return inputs


def computed(case, with_steps):
    """Returns the saved config, shapes by the names in a file, loss, logits, and gradients and updated weights by name,
    all in the default precision."""
    import torch
    import transformers
    model = getattr(transformers, case.architecture)(copy.deepcopy(case.config))
    stored = set_by_formula(model)
    model.eval()
    assert model.config._attn_implementation == "eager", case.name
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        config = json.loads((pathlib.Path(folder) / "config.json").read_text(encoding="utf-8"))
    labels, mask = HEADS[case.head](case)
    inputs = {**inputs_of(case, mask), **{name: torch.tensor(values) for name, values in labels.items()}}
    answer = model(**inputs)
    answer.loss.backward()
    assert {answer.loss.dtype, *(tensor.dtype for tensor in model.parameters())} == {torch.float32}, case.name
    has_spans = hasattr(answer, "start_logits")
    logits = torch.stack([answer.start_logits, answer.end_logits], -1) if has_spans else answer.logits
    result = {"config": config, "loss": answer.loss.item(), "logits": logits.detach(),
              "shapes": {name: list(torch.cat(pieces).shape) for name, pieces in stored.items()},
              "gradients": {name: torch.cat([piece.grad for piece in pieces]) for name, pieces in stored.items()
                            if pieces[0].grad is not None}}
    if with_steps:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0)
        optimizer.step()
        for _ in range(2):
            optimizer.zero_grad()
            model(**inputs).loss.backward()
            optimizer.step()
        result["updated"] = {name: torch.cat(pieces).detach() for name, pieces in stored.items()}
    return result


def config_of_version_4(case):
    """Returns the config that this version of transformers reads from one written by transformers 4."""
    return type(case.config).from_dict(dict(case.config_v4), attn_implementation="eager")


def thinned_all(tensors, count, digits):
    return {name: thinned(tensor, count, digits) for name, tensor in tensors.items()}


def record(case):
    """Returns a case as it is written to the file."""
    single = computed(case, case.steps)
    with float64_by_every_name():
        double = computed(case, case.steps)
    assert abs(single["loss"] - double["loss"]) < 1e-5, (case.name, single["loss"], double["loss"])
    if case.config_v4:
        reread = computed(case._replace(config=config_of_version_4(case)), with_steps=False)
        assert reread["loss"] == single["loss"], (case.name, reread["loss"], single["loss"])
    labels, mask = HEADS[case.head](case)
    config = {key: value for key, value in single["config"].items() if key != "transformers_version"}
    versions = {"config": config, **({"config_v4": case.config_v4} if case.config_v4 else {})}
    ids = None if mask is None else inputs_of(case, mask)["input_ids"].tolist()
    result = {
        "name": case.name, **versions, "shapes": single["shapes"], "input_ids": ids, "mask": mask,
        "token_types": TOKEN_TYPES if case.token_types else None, "labels": labels,
        "loss": single["loss"], "logits": thinned(single["logits"], LOGITS["single"], 7),
        "gradients": thinned_all(single["gradients"], GRADIENTS["single"], 7),
    }
    if case.double:
        result["double"] = {"loss": double["loss"], "logits": thinned(double["logits"], LOGITS["double"], 13),
                            "gradients": thinned_all(double["gradients"], GRADIENTS["double"], 13)}
    if case.steps:
        certain = {name: tensor for name, tensor in single["updated"].items()
                   if (tensor - double["updated"][name]).abs().max() < 1e-6}
        result["updated"] = thinned_all(certain, GRADIENTS["single"], 8)
    return result


def record_cases(path, cases):
    """Writes one case per line, so that a change of a case is a change of a line."""
    import torch
    import transformers
    head = {"transformers": transformers.__version__, "torch": torch.__version__, "explanation": EXPLANATION}
    lines = [json.dumps(record(case), separators=(",", ":")) for case in cases]
    text = json.dumps(head, indent=1)[:-2] + ',\n "models": [\n' + ",\n".join(lines) + "\n]}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")
    print(f"{path}: {len(lines)} models, {path.stat().st_size} bytes")
