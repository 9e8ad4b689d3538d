"""Makes tables from the figures of runs: medians, ratios between runs of one round, and the spread over rounds."""
import statistics

COMPARED_STEPS = 10  # in later steps rounding alone makes losses differ
MOST_APART = 1e-4  # largest difference of losses that rounding alone explains
LEFT_OUT_STEPS = 2  # the first steps of a timed run allocate memory and are not counted


def freezes(plan_or_run):
    """Returns [(step, layers)]: from each step on, that many layers are frozen."""
    found, frozen = [], 0
    for phase in plan_or_run["phases"]:
        if phase["first_trainable_layer"] != frozen:
            frozen = phase["first_trainable_layer"]
            found.append((phase["from_step"], frozen))
    return found


def step_seconds(run):
    """Returns the median time of a step, without the first steps if others remain."""
    steps = run["step_seconds"]
    return statistics.median(steps[LEFT_OUT_STEPS:] or steps)


def time_of(job, run):
    return run["seconds"] if job.whole_run else step_seconds(run)


def with_spread(values, digits):
    if not values:
        return ""
    middle, low, high = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({low}..{high})"


def ratios(job, runs, row):
    """Returns a ratio per round: for a whole run, its time divided by the reference's; for a step, the reference's time
    divided by its own."""
    found = []
    for number, run in sorted(runs.get(row.name, {}).items()):
        reference = runs.get(getattr(row, "against", "") or job.reference, {}).get(number)
        if reference:
            ratio = time_of(job, run) / time_of(job, reference)
            found.append(ratio if job.whole_run else 1 / ratio)
    return found


def measure_of_losses(job, runs):
    """Returns the row with whose losses the others are compared: the first row, usually one plain process; if all must
    have the same losses, the first row that has run."""
    if job.same_losses:
        return next((row.name for row in job.rows if runs.get(row.name)), job.rows[0].name)
    return job.rows[0].name


def compared_steps(runs):
    """Returns the number of steps whose losses are compared; a short run has fewer."""
    return min([COMPARED_STEPS, *(len(run["losses"]) for by_round in runs.values() for run in by_round.values())])


def losses_apart(job, runs, name):
    """Returns the largest difference to the losses of the reference row in the first steps; None if either has not
    run."""
    first, own = ([*runs.get(row, {}).values()] for row in (measure_of_losses(job, runs), name))
    if not first or not own:
        return None
    pairs = zip(first[0]["losses"][:COMPARED_STEPS], own[0]["losses"][:COMPARED_STEPS])
    return max((abs(a - b) for a, b in pairs), key=lambda apart: (apart != apart, apart))  # nan above all


def difference(job, runs):
    """Returns an error message if rows do not train the same job: all must hold out the same samples (otherwise they
    train on different ones; a run on text without labels names none), and have the same losses if the job requires
    it."""
    held_out = [(name, sorted(run["test_items"])) for name, by_round in runs.items() for run in by_round.values()
                if run["test_items"]]
    for name, items in held_out:
        if items != held_out[0][1]:
            return (f"{name} and {held_out[0][0]} hold out different samples; bench/peers/order.py must follow "
                    "executor/data/split.h")
    for row in job.rows if job.same_losses else ():
        apart = losses_apart(job, runs, row.name)
        if apart is not None and not apart <= MOST_APART:
            return (f"losses of {row.name} are up to {apart:.0e} from those of "
                    f"{measure_of_losses(job, runs)}, and at most {MOST_APART:.0e} are allowed: they do not train the "
                    "same job")
    return ""


def row_of(job, runs, row):
    name = row.name
    done = [run for _, run in sorted(runs[name].items())]
    times = [time_of(job, run) for run in done]
    accuracies = [run["accuracy"] for run in done if run.get("accuracy") is not None]
    apart = losses_apart(job, runs, name)
    return {
        "name": name,
        "times": times,
        "samples_per_second": [run["samples_per_second"] for run in done],
        "ratios": ratios(job, runs, row),
        "accuracies": accuracies,
        "losses_apart": apart,
    }


def table(job, runs):
    """Returns the rows as values, and as lines of text."""
    rows = [row_of(job, runs, row) for row in job.rows if runs.get(row.name)]
    if job.whole_run:
        head = ["run", "training [s]", "samples/s", f"times as long as {job.reference}", "accuracy [%]"]
    else:
        head = ["run", "step [ms]", "samples/s", f"times as fast as {job.reference or 'its peer'}"]
    head.append(f"losses of {compared_steps(runs)} steps apart")
    cells = []
    for row in rows:
        times = [time * (1 if job.whole_run else 1000) for time in row["times"]]
        cell = [row["name"], with_spread(times, 1), with_spread(row["samples_per_second"], 1),
                with_spread(row["ratios"], 2)]
        if job.whole_run:
            cell.append(with_spread([100 * accuracy for accuracy in row["accuracies"]], 1))
        cell.append("" if row["losses_apart"] is None else f"{row['losses_apart']:.0e}")
        cells.append(cell)
    widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
    text = ["| " + " | ".join(value.ljust(width) for value, width in zip(line, widths)) + " |"
            for line in [head, ["-" * width for width in widths], *cells]]
    return rows, [job.title, "", *text, ""]
