"""bench/gpu/messages.py: the part of a pipeline's messages that overlaps with compute."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/gpu"))
import messages


class MessagesTest(unittest.TestCase):
    """Computed by hand: two stages, F of 10, B of 20, messages of 4. Rank 1 waits only for the first message, which is
    exposed; the second arrives while it computes. Rank 0 waits for both gradients."""

    SPANS = {"0F0": (0, 10), "0F1": (10, 20), "1RECV_F0": (0, 14), "1F0": (14, 24), "1B0": (24, 44),
             "1RECV_F1": (44, 44), "1F1": (44, 54), "1B1": (54, 74), "0RECV_B0": (20, 48), "0B0": (48, 68),
             "0RECV_B1": (68, 78), "0B1": (78, 98)}

    def trace(self, spans, step=5):
        return {"traceEvents": [{"name": "rank 0", "ph": "M"}, *(
            {"name": name, "ph": "X", "ts": begin, "dur": end - begin, "args": {"step": step, "stage": int(name[0])}}
            for name, (begin, end) in spans.items())]}

    def test_exposed_is_the_wait_after_what_is_received_has_been_computed(self):
        self.assertEqual(messages.median_exposed(self.trace(self.SPANS), 0),
                         {"1RECV_F0": 4, "1RECV_F1": 0, "0RECV_B0": 4, "0RECV_B1": 4})

    def test_first_steps_do_not_count(self):
        later, slow = self.trace(self.SPANS), self.trace(self.SPANS | {"1RECV_F1": (44, 99)}, step=2)
        both = {"traceEvents": later["traceEvents"] + slow["traceEvents"]}
        self.assertEqual(messages.median_exposed(both, 3)["1RECV_F1"], 0)
        self.assertEqual(messages.median_exposed(both, 0)["1RECV_F1"], 55 / 2)

    def test_a_message_counts_by_what_the_simulator_hides_of_it(self):
        simulated = {"a": 4, "b": 0, "c": 1}
        for measured, share in (({"a": 9, "b": 0, "c": 1}, 1), ({"a": 0, "b": 4, "c": 1}, 3 / 7),
                                ({"a": 4, "b": 2, "c": 0}, 5 / 7), ({"a": 4, "b": 50, "c": 50}, 0)):
            self.assertEqual(messages.hidden_share(4, simulated, measured), (share, 7))


if __name__ == "__main__":
    unittest.main()
