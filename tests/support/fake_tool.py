"""A script in place of frostpipe that follows a test's instructions."""

import pathlib
import tempfile
import unittest


class FakeToolTest(unittest.TestCase):
    """A test in a separate folder, `self.folder`, with the script `self.tool` in place of frostpipe."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="frostpipe-fake-tool-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tool = self.folder / "frostpipe"

    def tool_does(self, script):
        self.tool.write_text(f"#!/bin/sh\n{script}\n")
        self.tool.chmod(0o755)
