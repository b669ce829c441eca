"""The 16 English tasks of LongBench (Bai et al. 2024): prompts, metrics and limits of its scripts, which are its protocol."""

from __future__ import annotations

from typing import Dict, NamedTuple


class Task(NamedTuple):
    """What the protocol says of a task."""

    group: str
    metric: str
    answer_tokens: int  # generated at most
    template: str  # {context} and {input} are texts of a line of its file
    chat: bool = True  # whether the prompt goes through the model's chat template
    first_line: bool = False  # whether only the first line of the answer counts
    ends_at_newline: bool = False


GROUPS = {
    "single": "SingQA",
    "multi": "MultQA",
    "summary": "Summ",
    "few-shot": "Few",
    "synthetic": "Synth",
    "code": "Code",
}

PASSAGES = (
    "Answer the question based on the given passages. Only give me the answer and do not output any other words.\n\n"
    "The following are given passages.\n{context}\n\n"
    "Answer the question based on the given passages. Only give me the answer and do not output any other words.\n\n"
    "Question: {input}\nAnswer:"
)
# "asconcisely" is how the protocol has it.
STORY = (
    "You are given a story, which can be either a novel or a movie script, and a question. Answer the question asconcisely "
    "as you can, using a single phrase if possible. Do not provide any explanation.\n\nStory: {context}\n\n"
    "Now, answer the question based on the story asconcisely as you can, using a single phrase if possible. Do not provide "
    "any explanation.\n\nQuestion: {input}\n\nAnswer:"
)
CONCISELY = (
    "as concisely as you can, using a single phrase or sentence if possible. If the question cannot be answered based on the "
    'information in the article, write "unanswerable". If the question is a yes/no question, answer "yes", "no", or '
    '"unanswerable". Do not provide any explanation.\n\n'
)
ARTICLE = (
    "You are given a scientific article and a question. Answer the question "
    + CONCISELY
    + "Article: {context}\n\n Answer the question based on the above article "
    + CONCISELY
    + "Question: {input}\n\nAnswer:"
)
TEXT = (
    "Read the following text and answer briefly.\n\n{context}\n\nNow, answer the following question based on the above text, "
    "only give me the answer and do not output any other words.\n\nQuestion: {input}\nAnswer:"
)
REPORT = (
    "You are given a report by a government agency. Write a one-page summary of the report.\n\nReport:\n{context}\n\n"
    "Now, write a one-page summary of the report.\n\nSummary:"
)
MEETING = (
    "You are given a meeting transcript and a query containing a question or instruction. Answer the query in one or more "
    "sentences.\n\nTranscript:\n{context}\n\nNow, answer the query based on the above meeting transcript in one or more "
    "sentences.\n\nQuery: {input}\nAnswer:"
)
NEWS = (
    "You are given several news passages. Write a one-page summary of all news. \n\nNews:\n{context}\n\n"
    "Now, write a one-page summary of all the news.\n\nSummary:"
)
QUESTION_TYPE = (
    "Please determine the type of the question below. Here are some examples of questions.\n\n{context}\n{input}"
)
PASSAGE = (
    "Answer the question based on the given passage. Only give me the answer and do not output any other words. The following "
    "are some examples.\n\n{context}\n\n{input}"
)
DIALOGUE = "Summarize the dialogue into a few short sentences. The following are some examples.\n\n{context}\n\n{input}"
COUNT = (
    "There are some paragraphs below sourced from Wikipedia. Some of them may be duplicates. Please carefully read these "
    "paragraphs and determine how many unique paragraphs there are after removing duplicates. In other words, how many "
    "non-repeating paragraphs are there in total?\n\n{context}\n\nPlease enter the final count of unique paragraphs after "
    "removing duplicates. The output format should only contain the number, such as 1, 2, 3, and so on.\n\n"
    "The final answer is: "
)
ABSTRACT = (
    "Here are 30 paragraphs from Wikipedia, along with an abstract. Please determine which paragraph the abstract is from."
    "\n\n{context}\n\nThe following is an abstract.\n\n{input}\n\nPlease enter the number of the paragraph that the abstract "
    'is from. The answer format must be like "Paragraph 1", "Paragraph 2", etc.\n\nThe answer is: '
)
CODE = "Please complete the code given below. \n{context}Next line of code:\n"
FILES = "Please complete the code given below. \n{context}{input}Next line of code:\n"

TASKS: Dict[str, Task] = {
    "narrativeqa": Task("single", "f1", 128, STORY),
    "qasper": Task("single", "f1", 128, ARTICLE),
    "multifieldqa_en": Task("single", "f1", 64, TEXT),
    "hotpotqa": Task("multi", "f1", 32, PASSAGES),
    "2wikimqa": Task("multi", "f1", 32, PASSAGES),
    "musique": Task("multi", "f1", 32, PASSAGES),
    "gov_report": Task("summary", "rouge-l", 512, REPORT),
    "qmsum": Task("summary", "rouge-l", 512, MEETING),
    "multi_news": Task("summary", "rouge-l", 512, NEWS),
    "trec": Task("few-shot", "class", 64, QUESTION_TYPE, chat=False, first_line=True),
    "triviaqa": Task("few-shot", "f1", 32, PASSAGE, chat=False, first_line=True),
    "samsum": Task("few-shot", "rouge-l", 128, DIALOGUE, chat=False, first_line=True, ends_at_newline=True),
    "passage_count": Task("synthetic", "count", 32, COUNT),
    "passage_retrieval_en": Task("synthetic", "paragraph", 32, ABSTRACT),
    "lcc": Task("code", "code", 64, CODE, chat=False),
    "repobench-p": Task("code", "code", 64, FILES, chat=False),
}
