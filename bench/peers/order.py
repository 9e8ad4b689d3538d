"""The training and test samples and their order, by the rules of executor/data/split.h.

Samples and order depend only on the seed, so a peer has the same mini-batches as `frostpipe train`. scripts/bench-peers
checks that the held-out samples of both are the same.
"""

WORD = 2**64 - 1


def splitmix64(value):
    value = (value + 0x9E3779B97F4A7C15) & WORD
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = ((value ^ (value >> shift)) * factor) & WORD
    return value ^ (value >> 31)


def mersenne_twister_64(seed):
    """Yields the numbers of std::mt19937_64; the constants are named as in [rand.eng.mers] of the C++ standard."""
    n, m, r, a = 312, 156, 31, 0xB5026F5AA96619E9
    tempering = ((29, 0x5555555555555555), (-17, 0x71D67FFFEDA60000), (-37, 0xFFF7EEE000000000), (43, WORD))
    low = (1 << r) - 1
    state = [seed & WORD]
    while len(state) < n:
        last = state[-1]
        state.append((6364136223846793005 * (last ^ (last >> 62)) + len(state)) & WORD)
    while True:
        for i in range(n):
            joined = (state[i] & ~low & WORD) | (state[(i + 1) % n] & low)
            state[i] = state[(i + m) % n] ^ (joined >> 1) ^ (a if joined & 1 else 0)
        for word in tuple(state):
            for shift, mask in tempering:
                word ^= (word >> shift if shift > 0 else word << -shift) & mask
            yield word


def uniform_below(bound, words):
    """Draws a number below `bound`. Words below 2^64 mod bound are drawn again, so that all remainders are equally
    likely."""
    lowest = (1 << 64) % bound
    return next(word for word in words if word >= lowest) % bound


def shuffle(items, words):
    for last in reversed(range(1, len(items))):
        other = uniform_below(last + 1, words)
        items[last], items[other] = items[other], items[last]


def test_counts(sizes, fraction):
    """Returns the number of samples of each label to hold out, by largest remainders and never all of a label."""
    counts = [min(int(size * fraction), max(size - 1, 0)) for size in sizes]
    wanted = min(max(int(sum(sizes) * fraction + 0.5), 1 if fraction > 0 else 0), sum(max(s - 1, 0) for s in sizes))
    neediest_first = sorted(range(len(sizes)), key=lambda label: (counts[label] - sizes[label] * fraction, label))
    while sum(counts) < wanted:
        for label in neediest_first:
            if sum(counts) < wanted and counts[label] + 1 < sizes[label]:
                counts[label] += 1
    return counts


def hold_out(labels, fraction, seed):
    """Returns the training and the test samples, ascending; `labels` are numbers from 0, one per sample."""
    of_label = [[] for _ in range(max(labels) + 1)]
    for sample, label in enumerate(labels):
        of_label[label].append(sample)
    words = mersenne_twister_64(splitmix64(seed))
    train, test = [], []
    for samples, count in zip(of_label, test_counts([len(samples) for samples in of_label], fraction)):
        shuffle(samples, words)
        test += samples[:count]
        train += samples[count:]
    return sorted(train), sorted(test)


def epoch_order(samples, seed, epoch):
    """Returns `samples` in the order of an epoch; epochs count from 0."""
    words = mersenne_twister_64(splitmix64((splitmix64(seed) + epoch) & WORD))
    places = list(range(len(samples)))
    shuffle(places, words)
    return [samples[place] for place in places]
