"""`frostpipe serving run` on emulated devices, as seen by a user: results of requests, lost workers, replaced plans,
and its end. No test depends on the speed of the machine: every request ends, and none sooner than planned."""

import http.client
import json
import os
import resource
import signal
import socket
import ssl
import unittest
from pathlib import Path

from serving_server import ServerCase, children_of
from support import MS, serving_pool, synthetic_serving_plan


class ServeTest(ServerCase):
    def test_every_request_of_a_load_has_an_end_and_none_a_shorter_one_than_planned(self):
        done = self.run_tool("serving", "run", "serving.json", "--device", "emulated", "--rate", "x0.5", "--arrivals",
                             "even", "--seconds", 2, "--format", "json")
        answer = json.loads(done.stdout)
        self.assertEqual((answer["format"], answer["version"], answer["window_ns"]),
                         ("frostpipe.serving_run", 1, 2000 * MS))
        large, small = answer["models"]
        # The number that `simulate` has for this load.
        self.assertEqual((large["requests"], small["requests"]), (99, 124))
        for model, least_ms in (large, 26), (small, 8):
            self.assert_all_have_an_end(model)
            self.assertEqual(model["drops"]["failed"], 0)
            self.assertGreater(model["in_time"], 0)
            self.assertGreaterEqual(model["median_latency_ns"], least_ms * MS)
            self.assertEqual(model["simulated"]["requests"], model["requests"])
        self.assertEqual(large["pools"][1]["requests"], large["in_time"] + large["late"])

    def test_too_much_load_is_dropped_and_the_rest_is_answered(self):
        server = self.start("--rate", "x3", "--seconds", 2)
        large, small = self.result(server)
        for model in large, small:
            self.assert_all_have_an_end(model)
            self.assertGreater(model["drops"]["no device in time"], model["requests"] // 3)

    def test_a_killed_worker_loses_its_own_requests_only_and_is_started_again(self):
        server = self.start("--rate", "x0.5", "--seconds", 4)
        self.assertEqual(len(children_of(server.pid)), 4)
        victim = children_of(server.pid)[0]
        os.kill(victim, signal.SIGKILL)
        self.wait_until(self.said(f"(process {victim}) was lost"), "the loss to be noticed")
        self.assertRegex(self.errors.read_text(),
                         r"worker 0 of large's pipeline 0, partition 0 \(process \d+\) was lost, with \d+ batches; it "
                         r"is started again\n")
        self.wait_until(lambda: len(children_of(server.pid)) == 4, "another worker")
        large, small = self.result(server)
        for model in large, small:
            self.assert_all_have_an_end(model)
        self.assertLessEqual(large["drops"]["failed"], 4)
        self.assertEqual(small["drops"]["failed"], 0)

    def test_a_worker_that_is_lost_again_and_again_is_given_up(self):
        server = self.start("--rate", 0, "--seconds", 600)  # a computed batch in between would reset the count
        known = set(children_of(server.pid))
        os.kill(max(known), signal.SIGKILL)  # the only worker of "small"
        for _ in range(3):
            self.wait_until(lambda: set(children_of(server.pid)) - known, "another worker")
            new = set(children_of(server.pid)) - known
            known |= new
            os.kill(max(new), signal.SIGKILL)
        self.wait_until(self.said("it is given up, and the others go on"), "the worker to be given up")
        self.assertEqual(len(children_of(server.pid)), 3)
        server.terminate()
        self.assertEqual([model["requests"] for model in self.result(server)], [0, 0])

    def test_sighup_takes_the_plan_as_it_is_now(self):
        server = self.start("--rate", "x0.5", "--seconds", 5)
        before = set(children_of(server.pid))
        self.write("serving.json", "{}")
        server.send_signal(signal.SIGHUP)
        self.wait_until(self.said("the previous plan goes on: serving.json: "), "the refusal")
        plan = synthetic_serving_plan()
        self.write("serving.json", {**plan, "dtype": "bfloat16"})
        server.send_signal(signal.SIGHUP)
        self.wait_until(self.said("the new plan computes in bfloat16, not float32; it is not used"), "the refusal")
        plan["device_classes"][1]["count"] = 4
        small = plan["models"][1]
        small["requests_per_second"] = small["pipelines"][0]["requests_per_second"] = 250
        small["pipelines"][0]["partitions"] = [serving_pool(0, 1, "slow", 2, [8], 250)]
        self.write("serving.json", plan)
        server.send_signal(signal.SIGHUP)
        self.wait_until(self.said("the new plan's workers have loaded: requests go to them"), "the new plan")
        self.wait_until(lambda: len(children_of(server.pid)) == 5 and not before & set(children_of(server.pid)),
                        "the old workers to end")
        models = self.result(server)
        self.assertEqual(models[1]["pools"][0]["num_virtual_devices"], 2)
        for model in models:
            self.assert_all_have_an_end(model)
            self.assertEqual(model["drops"]["failed"], 0)

    def test_sigterm_and_sigint_end_it_with_its_result(self):
        for number in signal.SIGTERM, signal.SIGINT:
            server = self.start("--rate", "x0.5", "--seconds", 600)
            workers = children_of(server.pid)
            server.send_signal(number)
            for model in self.result(server):
                self.assert_all_have_an_end(model)
            self.assertFalse([worker for worker in workers if Path(f"/proc/{worker}").exists()])

    def test_workers_end_with_their_server(self):
        server = self.start("--rate", "x0.5", "--seconds", 600)
        workers = children_of(server.pid)
        server.kill()
        server.wait()
        self.wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), "their end")

    def test_silent_connections_take_no_descriptor_that_a_worker_needs(self):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        server = self.start("--port", 0, limit_descriptors=64)
        port = self.http_port()
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(150)]
        for one in silent:
            self.addCleanup(one.close)
        os.kill(max(children_of(server.pid)), signal.SIGKILL)  # the only worker of "small"
        self.wait_until(lambda: len(children_of(server.pid)) == 4, "another worker")
        for model in "small", "large":  # 503 if the machine is too slow for the objective
            self.wait_until(lambda: self.ask(port, model) == 200, "an answer")
        server.send_signal(signal.SIGTERM)
        self.result(server)
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), limits)

    def test_a_key_is_required_and_a_public_address_without_one_gives_a_warning(self):
        self.write("key", "0123456789abcdef\n")
        server = self.start("--port", 0, "--host", "0.0.0.0", "--api-key-file", "key")
        port = self.http_port()
        self.assertEqual(self.ask(port, "small"), 401)
        self.assertIn(self.ask(port, "small", {"Authorization": "Bearer 0123456789abcdef"}), (200, 503))
        self.assertIn("WARNING: 0.0.0.0 is reached from other hosts without encryption", self.errors.read_text())
        self.assertNotIn("any client", self.errors.read_text())
        server.send_signal(signal.SIGTERM)
        self.result(server)
        server = self.start("--port", 0, "--host", "0.0.0.0")
        self.http_port()
        self.assertIn("WARNING: 0.0.0.0 is reached from other hosts, and any client that reaches it may send requests",
                      self.errors.read_text())
        self.write("key", "short\n")
        done = self.run_tool("serving", "run", "serving.json", "--device", "emulated", "--api-key-file", "key", code=1)
        self.assertIn("key: must hold one line, the key, of 16 to 1024 printable characters", done.stderr)

    def test_with_a_certificate_only_https_works_and_a_stalled_handshake_delays_no_other_client(self):
        server = self.start("--port", 0, "--host", "0.0.0.0", *self.with_certificate())
        port = self.http_port()
        self.assertIn(f" on https://0.0.0.0:{port}\n", self.errors.read_text())
        self.assertNotIn("without encryption", self.errors.read_text())
        self.assertIn("WARNING: 0.0.0.0 is reached from other hosts, and any client that reaches it may send requests",
                      self.errors.read_text())
        with socket.create_connection(("127.0.0.1", port), timeout=30) as stalled, \
                socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
            stalled.send(b"\x16\x03\x01\x02\x00\x01")  # the start of a record of 512 bytes; the rest never comes
            plain.send(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n")
            self.assert_is_closed(plain)
            self.assertIn(self.ask(port, "small"), (200, 503))
            self.assert_is_closed(stalled)
        health = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=self.tls)
        health.request("GET", "/v2/health/ready")
        self.assertEqual(health.getresponse().status, 200)
        health.close()
        self.tls = ssl.create_default_context()  # trusts other authorities
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.ask(port, "small")
        server.send_signal(signal.SIGTERM)
        self.result(server)

    def assert_is_closed(self, client):
        try:
            self.assertEqual(client.recv(1 << 16), b"")
        except ConnectionResetError:
            pass

    def test_certificates_that_cannot_be_used_are_refused_before_the_plan_is_read(self):
        options = self.with_certificate()
        self.assert_refused("serving", "run", "none.json", "--device", "emulated", *options[:2], code=2,
                            says="--ssl-certfile requires --ssl-keyfile")
        self.assert_refused("serving", "run", "none.json", "--device", "emulated", "--ssl-certfile", "key.pem",
                            *options[2:],
                            says="key.pem: must hold a certificate in PEM form")
        self.assert_refused("serving", "run", "none.json", "--device", "emulated", *options[:2], "--ssl-keyfile",
                            "certificate.pem", says="certificate.pem: must hold a private key in PEM form")

    def test_a_plan_with_heads_is_emulated_and_one_with_fewer_is_not_taken(self):
        plan = {**synthetic_serving_plan(), "version": 5}
        plan["models"][0]["shared_prefix"] = {"layers": 1, "heads": 3}
        self.write("serving.json", plan)
        server = self.start("--rate", "x0.5", "--seconds", 600)
        plan["models"][0]["shared_prefix"]["heads"] = 2
        self.write("serving.json", plan)
        server.send_signal(signal.SIGHUP)
        self.wait_until(self.said("the new plan has 2 heads behind 1 shared layers of large, not 3 heads behind 1 "
                                  "shared layers; it is not used"), "the refusal")
        server.terminate()
        for model in self.result(server):
            self.assert_all_have_an_end(model)

    def test_an_ipv6_address_is_in_brackets_in_the_url(self):
        if not socket.has_ipv6:
            self.skipTest("there is no IPv6, so its URL is NOT tested")
        server = self.start("--host", "::1", "--port", 0)
        self.wait_until(self.said(" on http://[::1]:"), "the URL")
        server.terminate()
        self.result(server)

    def test_a_port_in_use_and_arrivals_that_are_missing_are_refused_before_workers_load(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for option, value, says in (
                    ("--port", port, f"127.0.0.1:{port}: cannot be listened on: Address already in use"),
                    ("--host", "no.such.host.invalid", "no.such.host.invalid:8000: cannot be listened"),
                    ("--arrivals", "none.csv", "--arrivals: must be a file of times or one of")):
                said = self.assert_refused("serving", "run", "serving.json", "--device", "emulated", option, value,
                                           says=says)
                self.assertNotIn("loaded", said)

    def test_a_model_without_requests_has_no_percentage(self):
        done = self.run_tool("serving", "run", "serving.json", "--device", "emulated", "--rate", 0, "--seconds", 0.1)
        self.assertRegex(done.stdout, r"\nlarge +0 +0\.0 +- ")

    def test_workers_do_not_compute_longer_than_the_run_lasts(self):
        """All requests arrive within 0.1 s, and many answers come later."""
        done = self.run_tool("serving", "run", "serving.json", "--device", "emulated", "--rate", "x3", "--arrivals",
                             "even", "--seconds", 0.1, "--format", "json")
        for model in json.loads(done.stdout)["models"]:
            for pool in model["pools"]:
                self.assertLessEqual(pool["utilisation"], 1)

    def test_wrong_use_and_wrong_content_are_reported(self):
        self.assert_refused("serving", "run", "none.json", "--device", "emulated", says="none.json")
        self.assert_refused("serving", "run", "profile.json", "--device", "emulated", says="profile.json")
        self.assert_refused("serving", "run", "serving.json", "--device", "emulated", "--model", "folder", code=2,
                            says="--model: has no meaning with --device emulated")
        self.assert_refused("serving", "run", "serving.json", "--head", "a=x", code=2, says="use --model NAME=FOLDER")
        self.assert_refused("serving", "run", "serving.json", "--device", "emulated", "--rate", "1x", code=2,
                            says="--rate: must be requests per second such as 120, or a multiple of the planned")
        self.assert_refused("serving", "run", "serving.json", "--device", "emulated", "--port", 70000, code=2,
                            says="--port")


if __name__ == "__main__":
    unittest.main()
