"""The paper's end-to-end tests with a compressed cache: ``python -m spiked.e2e longbench|needles|table``."""
