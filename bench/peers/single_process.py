"""Trains the job with plain PyTorch and transformers in one process, which uses all threads."""
import job
import torch
import workloads


class Cache:
    """A dictionary with the output of the frozen layers for each sample's own tokens: {sample: (layers,
    activation)}."""

    def __init__(self, bert):
        self.bert, self.known = bert, {}

    def frozen(self, samples, batch, layers):
        """Returns the input of layer number `layers`; a sample with a cached activation starts from it."""
        ids, mask = batch["input_ids"], batch["attention_mask"]
        rows_at = {}
        for row, sample in enumerate(samples):
            rows_at.setdefault(self.known.get(sample, (0, None))[0], []).append(row)
        hidden = torch.zeros(*ids.shape, self.bert.model.config.hidden_size)
        with torch.no_grad():
            for depth, rows in rows_at.items():
                if depth > 0:
                    for row in rows:
                        activation = self.known[samples[row]][1]
                        hidden[row, :len(activation)] = activation
                if depth < layers:
                    begin = hidden[rows] if depth > 0 else ids[rows]
                    hidden[rows] = self.bert.run(depth, layers, begin, mask[rows])
                    for row in rows:
                        self.known[samples[row]] = (layers, hidden[row, :int(mask[row].sum())].clone())
        return hidden


def evaluated(model, workload):
    """Returns the numbers of correct and of all answers."""
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for batch in workloads.test_batches(workload):
            right, count = workload.correct(model(**{k: v for k, v in batch.items() if k != "labels"}).logits, batch)
            correct, total = correct + right, total + count
    return correct, total


def main():
    parser = job.parser(__doc__)
    parser.add_argument("--freeze", type=job.freezing, default={}, metavar="STEP:LAYERS,...",
                        help="from each step on, that many layers are frozen (texts)")
    parser.add_argument("--cache", action="store_true",
                        help="cache the output of the frozen layers of each sample (texts)")
    parser.add_argument("--autocast", action="store_true", help="compute in bfloat16 where PyTorch's autocast does")
    parser.add_argument("--no-evaluation", action="store_true")
    options = parser.parse_args()
    if (options.freeze or options.cache) and options.kind != "texts":
        parser.error("--freeze and --cache: are of --kind texts")
    torch.set_num_threads(options.threads)
    lengths = {"tokens": options.block_tokens} if options.kind == "plain-text" else {}
    workload = workloads.KINDS[options.kind](options.model, options.data, options.seed, **lengths)
    model = workload.model().train()
    optimizer = job.optimizer_of(model.parameters())
    bert = job.Bert(model) if options.freeze or options.cache else None
    cache = Cache(bert)
    steps = job.mini_batches(workload, options)
    frozen = 0
    clock = job.Clock()
    for step, samples in enumerate(steps):
        if step in options.freeze:
            frozen = options.freeze[step]
            bert.freeze(frozen)
        for group in optimizer.param_groups:
            group["lr"] = job.learning_rate(step, options)
        batch = workload.batch(samples)
        optimizer.zero_grad()
        if frozen and options.cache:
            hidden = cache.frozen(samples, batch, frozen)
            logits = bert.run(frozen, len(bert.modules), hidden, batch["attention_mask"])
            loss = torch.nn.functional.cross_entropy(logits, batch["labels"])
        else:
            with torch.autocast("cpu", torch.bfloat16, enabled=options.autocast):
                loss = workload.loss(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_((p for p in model.parameters() if p.grad is not None), job.MAX_GRADIENT_NORM)
        optimizer.step()
        clock.step_done(loss.item())
    correct = None if options.no_evaluation else evaluated(model, workload)
    clock.report(sum(map(len, steps)), workload.test, correct)


main()
