"""The paper's end-to-end tests with a compressed cache: ``python -m spiked.e2e longbench|needles|table``.

====================================  ==============================================================
`spiked.e2e.__main__.main`            the command
`spiked.e2e.runner`                   a model that answers prompts by a method
`spiked.e2e.cost.cost_lines`          what that costs
`spiked.e2e.tokens.Tokens`            tokenizer and chat template of a model's folder
`spiked.e2e.metrics.score`            the metrics of LongBench
`spiked.e2e.needles.recall`           the metric of needles
`spiked.e2e.results.Results`          a file of results
`spiked.e2e.table`                    means of results and their errors
`spiked.e2e.lm_eval.SpikedLM`         a model for lm-eval
====================================  ==============================================================
"""
