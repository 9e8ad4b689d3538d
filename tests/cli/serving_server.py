"""A server of a made-up plan on emulated devices."""

import http.client
import json
import re
import resource
import shutil
import ssl
import subprocess
import time
from pathlib import Path

from support import FROSTPIPE, HANG_SECONDS, CliTest, synthetic_serving_plan


def children_of(pid):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields and int(fields[1]) == pid and fields[0] not in "ZX":
            found.append(int(entry.name))
    return sorted(found)


class ServerCase(CliTest):
    def setUp(self):
        super().setUp()
        self.write("serving.json", synthetic_serving_plan())
        self.tls = None  # the TLS context of ask(), if any

    def with_certificate(self):
        """Options of a server with TLS; ask() trusts only its certificate."""
        if not shutil.which("openssl"):
            self.skipTest("there is no `openssl` to make a certificate, so TLS is NOT tested")
        made = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=h -addext subjectAltName=IP:127.0.0.1"
        subprocess.run(["openssl", "req", "-x509", *made.split(), "-keyout", "key.pem", "-out", "certificate.pem"],
                       cwd=self.folder, check=True, capture_output=True)
        self.tls = ssl.create_default_context(cafile=self.folder / "certificate.pem")
        return "--ssl-certfile", "certificate.pem", "--ssl-keyfile", "key.pem"

    def start(self, *options, limit_descriptors=None):
        def limit():
            if limit_descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit_descriptors, limit_descriptors))

        self.errors = self.folder / "errors"
        with open(self.errors, "w") as errors:
            server = subprocess.Popen([FROSTPIPE, "serving", "run", "serving.json", "--device", "emulated", "--format",
                                       "json", *map(str, options)], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                      stderr=errors, preexec_fn=limit)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.wait_until(self.said(" loaded\n"), "workers")
        return server

    def http_port(self):
        self.wait_until(lambda: re.search(r" on https?://.*\n", self.errors.read_text()), "HTTP")
        return int(re.search(r" on https?://\S+:(\d+)", self.errors.read_text())[1])

    def ask(self, port, model, headers=None, seconds=HANG_SECONDS):
        """The status of the answer to one row of one token."""
        connection = (http.client.HTTPSConnection("127.0.0.1", port, timeout=seconds, context=self.tls) if self.tls else
                      http.client.HTTPConnection("127.0.0.1", port, timeout=seconds))
        body = {"inputs": [{"name": "input_ids", "shape": [1, 1], "datatype": "INT64", "data": [1]}]}
        connection.request("POST", f"/v2/models/{model}/infer", json.dumps(body),
                           {"Content-Type": "application/json", **(headers or {})})
        status = connection.getresponse().status
        connection.close()
        return status

    def wait_until(self, condition, what):
        end = time.monotonic() + HANG_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}: {self.errors.read_text()}")
            time.sleep(0.02)

    def said(self, text):
        return lambda: text in self.errors.read_text()

    def result(self, server, code=0):
        out, _ = server.communicate(timeout=HANG_SECONDS)
        self.assertEqual(server.returncode, code, self.errors.read_text())
        return json.loads(out)["models"] if code == 0 else out

    def assert_all_have_an_end(self, model):
        self.assertEqual(model["in_time"] + model["late"] + sum(model["drops"].values()), model["requests"])
