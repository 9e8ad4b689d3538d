"""The recordings of scripts/record-reference: one module per file of tests/data/. Each imports transformers, torch or
Pillow inside its functions, so that --gpt2 needs no torch."""
