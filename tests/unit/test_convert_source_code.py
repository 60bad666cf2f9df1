"""Source code is a section for each definition, with its line in the file."""

from __future__ import annotations

import pytest

from qmd.parse.convert.source_code import LANGUAGES, convert

PYTHON = '''"""A module."""

import re

# About the class.
class Bread:
    """Docstring."""

    @property
    def hours(self):
        def inner():
            return "```"
        return 12

    flour = "rye"  # tag [[x]]

    async def bake(self): ...

def __main__():
    pass


if True:
    Bread()
'''


def test_python() -> None:
    code = convert("a/bread.py", PYTHON.encode())
    assert code.markdown == (
        '````python\n"""A module."""\n\nimport re\n````\n\n'.replace("````", "```")
        + '## `Bread`\n\n```python\n# About the class.\nclass Bread:\n    """Docstring."""\n```\n\n'
        "### `hours`\n\n````python\n    @property\n    def hours(self):\n        def inner():\n"
        '            return "```"\n        return 12\n````\n\n'
        '## `Bread`\n\n```python\n    flour = "rye"  # tag [[x]]\n```\n\n'
        "### `bake`\n\n```python\n    async def bake(self): ...\n```\n\n"
        "## `__main__`\n\n```python\ndef __main__():\n    pass\n```\n\n"
        "## `bread.py`\n\n```python\nif True:\n    Bread()\n```\n"
    )
    assert code.title == "bread.py"
    lines = PYTHON.split("\n")
    for anchor, beginning in zip(
        code.anchors,
        ['"""A', "# About", "    @property", "    flour", "    async", "def __m", "if True"],
        strict=True,
    ):
        assert anchor.kind == "line"
        number = int(anchor.label)
        assert "\n".join(lines[number - 1 :]).lstrip("\n").startswith(beginning)
        assert beginning in code.markdown[anchor.start_char :][:60]


@pytest.mark.parametrize(
    ("name", "source", "names"),
    [
        ("a.js", "class A { m() {\n} }\nexport const f = () => 1\nconst x = 2\nfunction* g() {}",
         "A f a.js g"),
        ("a.ts", "interface I { a: number }\nenum E { X }\nnamespace N {\nfunction f() {}\n}",
         "I E N f"),
        ("a.tsx", "export default function View() { return <p/> }",
         "View"),
        ("a.go", "type S struct {}\n// doc\nfunc (s *S) M() {}\nfunc main() {}",
         "S M main"),
        ("a.rs", "struct S { a: i32 }\nimpl D for S {\nfn f(&self) {}\n}\ntrait T { fn a(&self); }",
         "S|D for S|f|T"),
        ("A.java", "public class A {\n int f = 1;\n /** doc */\n public int m() { return 1; }\n}",
         "A m"),
        ("a.c", "struct s { int a; };\nint f(int);\nstatic int *g(void) { return 0; }",
         "s a.c g"),
        ("a.cpp", "namespace n {\nclass A {\n int m() { return 1; }\n};\n}\nint A::k() {}",
         "n A m A::k"),
        ("a.cs", "namespace N {\nclass A {\n int M() { return 1; }\n}\n}",
         "N A M"),
        ("a.rb", "module M\n class A\n  def b\n  end\n end\nend",
         "M A b"),
        ("a.php", "<?php\nfunction a() {}\nclass B {\n public function c() {}\n}",
         "a B c"),
        ("a.sh", "f() {\n echo\n}\nf",
         "f a.sh"),
        ("a.zig", "fn f() void {}",
         ""),
    ],
)  # fmt: skip
def test_languages(name: str, source: str, names: str) -> None:
    text = convert(name, source.encode()).markdown
    headings = [line.lstrip("# ").strip("`") for line in text.split("\n") if line.startswith("#")]
    assert headings == (names.split("|") if "|" in names else names.split())


@pytest.mark.parametrize("suffix", sorted(LANGUAGES))
def test_any_text_is_kept(suffix: str) -> None:
    for source in (
        "",
        "(" * 5000,
        "class A{m(){" * 2000,
        "数据 { } ; def class fn #include\n" * 50,
    ):
        text = convert(f"a.{suffix}", source.encode()).markdown
        lines = [line for line in text.split("\n") if line and line[0] not in "#`"]
        kept = [line for line in source.split("\n") if line.strip() and line[0] not in "#`"]
        assert [line.rstrip() for line in lines] == [line.rstrip() for line in kept]
