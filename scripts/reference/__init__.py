"""What scripts/record-reference records: one module per file of tests/data/. Each imports transformers, torch or Pillow
within its functions, so that --gpt2 needs no torch."""
