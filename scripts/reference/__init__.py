"""The recordings of scripts/record-reference: modules that each write one or two files of tests/data/, and what they
share. They import transformers and torch inside their functions, so that --gpt2 needs no torch; images.py needs Pillow
and numpy when it is imported."""
