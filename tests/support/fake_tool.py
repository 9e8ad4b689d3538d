"""A frostpipe that does what a test says."""

import pathlib
import tempfile
import unittest


class FakeToolTest(unittest.TestCase):
    """In a folder of its own, `self.folder`, with `self.tool` to be started in frostpipe's place."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="frostpipe-fake-tool-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tool = self.folder / "frostpipe"

    def tool_does(self, script):
        self.tool.write_text(f"#!/bin/sh\n{script}\n")
        self.tool.chmod(0o755)
