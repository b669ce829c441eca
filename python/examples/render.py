"""Runs the cells of tutorial.py and writes them, with what they print and draw, into docs/PYTHON.md.

python3 python/examples/render.py
"""

import contextlib
import io
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- tutorial: written by python/examples/render.py -->\n", "<!-- end of the tutorial -->\n"


def rendered(source, pictures):
    """The tutorial as Markdown; its pictures are written to the folder `pictures`."""
    from matplotlib import pyplot

    parts, names, count = [], {"__name__": "tutorial"}, 0
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        for cell in re.split(r"(?m)^# %%", source.read_text())[1:]:
            kind, _, body = cell.partition("\n")
            if "[markdown]" in kind:
                parts.append("\n".join(re.sub("^# ?", "", line) for line in body.strip().splitlines()))
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(body, str(source), "exec"), names)
            parts.append(f"```py\n{body.strip()}\n```")
            if printed.getvalue():
                parts.append(f"```text\n{printed.getvalue().rstrip()}\n```")
            for figure in map(pyplot.figure, pyplot.get_fignums()):
                count += 1
                name = f"python-{count}.png"
                figure.set_size_inches(6, 3.6)
                figure.tight_layout()
                figure.savefig(pathlib.Path(pictures) / name, dpi=110, metadata={"Software": None})
                title = figure.axes[0].get_title()
                parts.append(f"![{title}]({name})")
            pyplot.close("all")
    finally:
        os.chdir(before)
    return "\n\n".join(parts) + "\n"


def main():
    import matplotlib

    matplotlib.use("Agg")
    page = ROOT / "docs/PYTHON.md"
    before, _, rest = page.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(
        before + BEGIN + "\n" + rendered(ROOT / "python/examples/tutorial.py", ROOT / "docs") + "\n" + END + after
    )


if __name__ == "__main__":
    main()
