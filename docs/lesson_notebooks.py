"""Write the lessons of the course as notebooks: python docs/lesson_notebooks.py FOLDER

Each page of docs/learn/lessons becomes a notebook. Its Python blocks are cells of code. The blocks of text
after them, their outputs, are left out. Needs nbformat (extra ``test``).
"""

import re
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

LESSONS = Path(__file__).parent / "learn" / "lessons"
_CODE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.M | re.S)


def notebook(page: str) -> nbformat.NotebookNode:
    cells = []
    end = 0
    for block in _CODE.finditer(page):
        cells += [new_markdown_cell(page[end : block.start()].strip()), new_code_cell(block[1].rstrip())]
        end = block.end()
    cells.append(new_markdown_cell(page[end:].strip()))
    return new_notebook(cells=[cell for cell in cells if cell.source])


def main() -> None:
    """Write one notebook for each lesson."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page in sorted(LESSONS.glob("*.md")):
        if page.stem != "index":
            nbformat.write(notebook(page.read_text(encoding="utf-8")), folder / f"{page.stem}.ipynb")


if __name__ == "__main__":
    main()
