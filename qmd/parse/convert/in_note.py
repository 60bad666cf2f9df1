"""
What strangers and models wrote, as the text of a note: it shows the same and means less.

Other than the text of a file, which is read as text, a note would have its tags, links, tasks and
facts, and other programs would run its queries, scripts and templates. So only the form stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from qmd.parse.convert.blocks import code_span, inert
from qmd.parse.markdown import outline
from qmd.parse.notation import WORD

#: A tag begins after white space, and has a letter or an emoji; and ``#+BEGIN_QUERY`` of Logseq.
_TAG = r"(?<!\S)#(?=\+\w|[\w/\-\ufe0f\u200d]*(?:[^\W\d_]|[\u2600-\u27bf\U0001f1e6-\U0001faff]))"
#: Wikilinks; of Logseq ``{{query}}``, of which the second brace is the sign, and ``[:img]``.
_PAIR = r"\[(?=\[|:[a-z])|(?<=\{)\{"
#: Code, tags, wikilinks, fields, tasks, formulas, and emphasis that the page did not mean.
_OF_NOTES = re.compile(
    rf"\\.|`|{_TAG}|{_PAIR}|\A\](?=\])|::(?=\s)|\[(?=[ xX/\-]\]\s)"
    r"|\$(?=[^\s$][^$\n]*\$)|\*(?=\*|[^\s*][^*\n]*\*)|(?<!\w)_(?=\w)|~(?=~)|=(?==\w)",
    re.DOTALL,
)
#: Languages that programs for notes colour and do not run.
_COLOURED = """
    abap ada ahk apache applescript arduino asciidoc asm assembly astro autohotkey awk bash basic
    bat batch bibtex c c# c++ cfg clj clojure cmake cmd cobol coffeescript conf console cpp crystal
    cs csharp css csv cuda cython d dart diff docker dockerfile dockerignore dot dotenv ebnf ejs
    elisp elixir elm erb erlang f# f90 fish fortran fsharp gdscript gherkin gitignore glsl go golang
    gradle graphql groovy haml handlebars haskell hcl hlsl hs html http ini java javascript jinja
    jinja2 js json json5 jsonc jsonl jsx julia kotlin kt latex less liquid lisp log lua makefile
    markdown matlab md mermaid mysql nasm nginx nim nix objc objective-c objectivec ocaml octave
    odin pascal patch perl php pl plain plaintext plpgsql plsql postgresql powershell prolog
    properties proto protobuf ps1 pug purescript pwsh py pycon python python3 qml r racket raku rb
    regex rs rst ruby rust sas sass scala scheme scss sh shell shell-session solidity sql stata
    stylus svelte svg swift systemd systemverilog tcl terraform tex text tf toml ts tsql tsx twig
    txt typescript v vb vba vbnet verilog vhdl vim vue wasm wat wgsl x86asm xhtml xml yaml yml zig
    zsh
"""
_SHOWN = frozenset(_COLOURED.split())
_PASSES = 4
_SPAN = re.compile(r"`[^`]*`")
_HIDDEN = "\0"
#: What may stand before the text of a line: quotes and items.
_LEAD = r"(?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*"
_FENCE = re.compile(
    rf"(?m)^({_LEAD}(?:\[\^[^\]\n]{{1,99}}\]:[ \t]*)?(?:`{{3,}}(?!`)|~{{3,}}(?!~))[^\S\n]*)"
    r"(\S+)([^\n]*)$"
)
_FENCE_BEGINNING = re.compile(rf"({_LEAD})(?:`{{3}}|~{{3}})")
_BLANK = re.compile(r"(?m)^[^\S\n]+$")
#: What runs in code: ``= this.file`` and ``$= dv.pages()`` of Dataview, fields and buttons.
_RUNS = r"[\s\ufeff]*(?:\$?=|(?:INPUT|VIEW|BUTTON)\[|button-)"
#: Code that begins so. An escape is taken whole.
_INLINE_QUERY = re.compile(rf"\\.|`(?={_RUNS})")
_RUN_FIRST = re.compile(_RUNS)
_BACKTICK = re.compile(r"\\.|`", re.DOTALL)
#: A link leads to the web or to a heading of its own note; others would lead into the notes.
_OUTSIDE = r"<?(?i:https?://|mailto:|#)"
#: Images, embeds, HTML, tags, wikilinks, fields and other links. An escape is taken whole.
_ACTIVE = re.compile(
    rf"\\.|!(?=\[)|<(?=[A-Za-z/!?])(?!https?://)|{_TAG}|{_PAIR}|(?<=:):(?=\s)"
    rf"|(?<=\])\((?!{_OUTSIDE})"
)
#: The box of a task, or the category of a fact; a word of Logseq.
_BOX = r"\[(?=.\](?:\s|\Z)|[^\[\]\n!^][^\[\]\n]{1,99}\][ \t])"
_DEFINITION = rf"\[(?!\^)(?=[^\[\]]{{1,999}}\]:(?![ \t]*{_OUTSIDE}))"
_BEGINNING = re.compile(
    rf"(?m)^{_LEAD}(?:(?P<sign>(?<=[ \t]){_BOX}|{_DEFINITION})|(?<=[-*] )(?P<word>{WORD}))"
)
_ITEM_BEGINNING = re.compile(rf"(?P<sign>{_BOX})|(?P<word>{WORD})")
#: Commands of Templater, which it runs wherever they stand in a new note, also in code.
_TEMPLATE = re.compile(r"<(?=%)")
#: What would act where a reader takes a formula for text, as one that holds a dollar sign.
_IN_FORMULA = re.compile(rf"\\.|`|\$|{_TAG}|(?<=:):(?=\s)|\[(?=\[)|\{{(?=\{{)", re.DOTALL)
#: Between these MathJax and KaTeX find the source of a formula.
_FORMULA_SIGN = re.compile(
    r"(?<!\\)(\\[()\[\]]"
    r"|\\(?:begin|end)\{(?:align|alignat|eqnarray|equation|flalign|gather|multline)\*?\})"
)
_FORMULA_ENDS = {"\\(": ("\\)", "$"), "\\[": ("\\]", "$$")}
#: Such commands, and what would make a property a link or a macro.
_IN_VALUE = re.compile(r"<(?=%)|\[(?=\[)|\](?=\()|\{(?=\{)")
_NO_BREAK = "\xa0"


def inert_in_note(text: str) -> str:
    """
    Text inside a paragraph of a note: also without tags, wikilinks, fields, tasks and formulas.

    Other than the text of a file, which is read as text, a note would have them.
    """
    return in_note(inert(text))


def in_note(markdown: str) -> str:
    """Markdown of text without what only a note would have."""
    return _OF_NOTES.sub(_marked_in_note, markdown)


def _marked_in_note(match: re.Match[str]) -> str:
    sign = match.group()
    if sign[0] == "\\":
        return sign
    if sign == "::":  # a field is a key, two colons and a blank
        return ":\\:"
    return f"\\{sign}"


def inert_markdown(markdown: str) -> str:
    """
    Markdown that shows the same and means less: what becomes a note, and others have written.

    Images, embeds, HTML, queries, scripts, links into the notes, tags, fields, tasks and facts are
    text. What stands in code stays, but for the names of languages that are not known to be
    harmless, and the commands of Templater.
    """
    text = markdown.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    # Not all readers take a line of U+2028 for a blank one.
    text = _BLANK.sub("", text)
    # First, because a fence or a span that ends elsewhere makes other text code.
    text = _INLINE_QUERY.sub(_shown, _FENCE.sub(_plain_fence, without_templates(text)))
    for _ in range(_PASSES):
        shown = _escaped(text, _without_code(text))
        if shown == text:
            break
        text = shown  # what was HTML is text now, in which a fence may begin or end elsewhere
    else:
        text = _escaped(text, text)
    return text


def inert_heading(line: str) -> str:
    """As `inert_markdown`, for a line that is written after the signs of a heading."""
    return inert_markdown(f"# {line}").removeprefix("# ")


def inert_item(markdown: str) -> str:
    """What an item of a list may have as its text, so that it is neither a task nor a fact."""
    match = _ITEM_BEGINNING.match(markdown)
    if match is None:
        return markdown
    word = match["word"]
    return f"{word}{_NO_BREAK}{markdown[len(word) + 1 :]}" if word else f"\\{markdown}"


def inert_value(text: str) -> str:
    """The value of a property, which is no link, macro or command of a template."""
    return _IN_VALUE.sub(r"\g<0> ", text)


def without_templates(markdown: str) -> str:
    """Markdown without commands of Templater: a backslash would not keep them from running."""
    return _TEMPLATE.sub("< ", markdown)


def code_in_note(text: str) -> str:
    """As `code_span`; what other programs would run stands between signs that are shown."""
    if _RUN_FIRST.match(text) is None:
        return code_span(text)
    inside = _BACKTICK.sub(_shown, inert_in_note(" ".join(text.split())))
    return f"\\`{inside}\\`"


def inert_formula(source: str, sign: str, *, is_in_note: bool) -> str:
    """A formula; in a note its source neither ends it nor acts if it is text."""
    written = inert(source)
    if is_in_note:
        written = _IN_FORMULA.sub(_marked_in_formula, written)
    return f"{sign}{written}{sign}"


def with_formulas(text: str) -> Iterator[tuple[str, str]]:
    """
    The parts of a text of which MathJax or KaTeX makes formulas.

    Returns:
        The sign of a formula and its source, or "" and what stays text.
    """
    pieces = _FORMULA_SIGN.split(text)
    at = 0
    while at < len(pieces):
        is_named = pieces[at].startswith("\\begin{")
        named = (pieces[at].replace("begin", "end", 1), "$$") if is_named else ("", "")
        closing, sign = _FORMULA_ENDS.get(pieces[at], named)
        source = pieces[at + 1].strip() if closing else ""
        if is_named and source:
            source = f"{pieces[at]}{pieces[at + 1]}{closing}"
        if source and not source.endswith("\\") and pieces[at + 2 : at + 3] == [closing]:
            yield sign, source
            at += 3
        else:
            yield "", pieces[at]
            at += 1


def _marked_in_formula(match: re.Match[str]) -> str:
    sign = match.group()
    if sign in ("[", "{"):  # with a backslash they would be another sign
        return f"{sign} "
    return sign if sign[0] == "\\" else f"\\{sign}"


def _shown(backtick: re.Match[str]) -> str:
    return "\\`" if backtick[0] == "`" else backtick[0]


def language_in_note(language: str) -> str:
    """The language of code in a note, "text" for one that a program for notes may run."""
    return language if not language or language.lower() in _SHOWN else "text"


def _without_code(text: str) -> str:
    """
    The text with what is surely code overwritten.

    HTML and formulas are none, though `Outline` hides both. Code in a line counts in paragraphs in
    which all readers of Markdown find the same: with single backticks, in pairs on each line.
    """
    structure = outline(text)
    others = {(block.start, block.end) for block in structure.blocks if block.kind == "html"}
    others.update(structure.formulas)
    code = {
        number
        for start, end in structure.hidden
        if (start, end) not in others
        for number in range(start, _end_of_code(structure.lines, start, end))
    }
    pieces: list[str] = []
    paragraph: list[str] = []
    starts = [*structure.starts, len(text)]
    for number, begin in enumerate(structure.starts):
        line = text[begin : starts[number + 1]]
        if number not in code and line.strip():
            paragraph.append(line)
            continue
        pieces += _without_spans(paragraph)
        paragraph = []
        length = len(line.rstrip("\n")) if number in code else 0
        pieces.append(_HIDDEN * length + line[length:])
    return "".join([*pieces, *_without_spans(paragraph)])


def _end_of_code(lines: Sequence[str], start: int, end: int) -> int:
    """Where a fence ends for readers to whom a tab is four columns, and no more."""
    match = _FENCE_BEGINNING.match(lines[start])
    column = len(match[1].expandtabs(4)) if match else 0
    if column <= 4:
        return end
    for number in range(start + 1, end):
        blanks = lines[number][: len(lines[number]) - len(lines[number].lstrip(" \t"))]
        if blanks.startswith("\t") and len(blanks.expandtabs(4)) < column:
            return number
    return end


def _without_spans(paragraph: list[str]) -> list[str]:
    """The lines of a paragraph with code between backticks overwritten, if it surely is."""
    is_sure = all(
        line.count("`") % 2 == 0 and "``" not in line and "\\`" not in line and "<http" not in line
        for line in paragraph
    )
    return [_SPAN.sub(_overwritten, line) for line in paragraph] if is_sure else paragraph


def _overwritten(match: re.Match[str]) -> str:
    return _HIDDEN * len(match[0])


def _escaped(text: str, masked: str) -> str:
    """The text with a backslash before each sign that acts; ``masked`` says which are code."""
    changes = {  # between braces a blank, which changes no formula
        (match.start(), match.start(), " " if match[0] == "{" else "\\")
        for match in _ACTIVE.finditer(masked)
        if match[0][0] != "\\"
    }
    for match in _BEGINNING.finditer(masked):
        if match["word"]:
            changes.add((match.end(), match.end() + 1, _NO_BREAK))
        else:
            changes.add((match.start("sign"), match.start("sign"), "\\"))
    pieces: list[str] = []
    at = 0
    for start, end, sign in sorted(changes):
        pieces += [text[at:start], sign]
        at = end
    return "".join([*pieces, text[at:]])


def _plain_fence(match: re.Match[str]) -> str:
    opening, language, rest = match.groups()
    if "`" in f"{language}{rest}" and "`" in opening:  # code in a line of text
        return match[0]
    return f"{opening}{'text' if rest.strip() else language_in_note(language)}"
