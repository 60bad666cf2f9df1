"""Links lead where Obsidian would go."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd import KnowledgeBase, Settings
from qmd.search.lookup.link_targets import LinkedFiles, LinkTarget, LinkTargets
from qmd.store.sql.links import NamedFile
from qmd.values.text import fold
from tests.support.corpus import Corpus
from tests.support.embedder import HashEmbedder

VAULT = [
    "MOC.md", "note.md", "a/note.md", "a/b/note.md", "a/b/c/src.md", "z/note.md", "Note.md.md",
    "v1.2.md", "v1.2.png", "Albums.md", "Albums.base", "img/pic.png", "a/img/pic.png",
    "LICENSE", "LICENSE.md", "Cafe\u0301.md", "笔记/数据.md", "deep/one/two/only.md", "x/dup.md",
    "y/z/dup.md", "y/dup-long.md", "old.markdown", "a#b.md", "50%.md", "sp ace.md", "Case.md",
    "case.md", "b/Ma\u00a0x.md", "z/note/index.md",
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "source", "target"),
    [
        # Any case; .md may be left out, no other suffix may.
        ("MOC", "a/src.md", "MOC.md"),
        ("moc", "a/src.md", "MOC.md"),
        ("moc.MD", "a/src.md", "MOC.md"),
        ("Albums", "src.md", "Albums.md"),
        ("Albums.base", "src.md", "Albums.base"),
        ("pic", "src.md", None),
        ("PIC.png", "src.md", "img/pic.png"),
        ("old", "src.md", "old.markdown"),
        ("LICENSE", "src.md", "LICENSE.md"),
        ("LICENSE.md", "src.md", "LICENSE.md"),
        # Dots in names.
        ("v1.2", "src.md", "v1.2.md"),
        ("v1.2.md", "src.md", "v1.2.md"),
        ("v1.2.png", "src.md", "v1.2.png"),
        ("v1", "src.md", None),
        ("Note.md", "src.md", "note.md"),
        ("Note.md.md", "src.md", "Note.md.md"),
        # The root first, then the folder of the note, then the shortest path.
        ("note", "a/b/c/src.md", "note.md"),
        ("b/note", "z/src.md", "a/b/note.md"),
        ("pic.png", "a/src.md", "a/img/pic.png"),
        ("pic.png", "a/b/src.md", "img/pic.png"),
        ("img/pic.png", "a/src.md", "img/pic.png"),
        ("dup", "src.md", "x/dup.md"),
        ("dup", "y/src.md", "y/z/dup.md"),
        ("dup", "Y/src.md", "y/z/dup.md"),
        ("only", "a/b/src.md", "deep/one/two/only.md"),
        ("two/only", "src.md", "deep/one/two/only.md"),
        ("wo/only", "src.md", None),
        ("deep/two/only", "src.md", None),
        # From the root and from the folder.
        ("/note", "a/b/src.md", "note.md"),
        ("/b/note", "a/src.md", None),
        ("./note", "a/b/src.md", "a/b/note.md"),
        ("../note", "a/b/src.md", "a/note.md"),
        ("../note.md", "a/b/src.md", "a/note.md"),
        ("../../note", "a/b/src.md", "note.md"),
        ("../../../note", "a/b/src.md", "note.md"),
        ("./only", "src.md", None),
        ("./MOC", "src.md", "MOC.md"),
        ("./", "a/src.md", None),
        ("..", "a/src.md", None),
        ("z/../a/note", "src.md", "a/note.md"),
        ("a//note", "src.md", "a/note.md"),
        ("z/note/", "src.md", None),
        # Unicode.
        ("Caf\u00e9", "src.md", "Cafe\u0301.md"),
        ("CAFE\u0301", "src.md", "Cafe\u0301.md"),
        ("数据", "src.md", "笔记/数据.md"),
        ("Ma x", "src.md", "b/Ma\u00a0x.md"),
        # Characters that mean something elsewhere.
        ("a#b.md", "src.md", "a#b.md"),
        ("50%", "src.md", "50%.md"),
        ("sp ace", "src.md", "sp ace.md"),
        # Case decides only between files that nothing else tells apart.
        ("case", "src.md", "case.md"),
        ("Case", "src.md", "Case.md"),
        ("CASE", "src.md", "Case.md"),
        ("nothing", "src.md", None),
        ("\0", "src.md", None),
    ],
)  # fmt: skip
def test_a_link_path_leads_where_obsidian_goes(path: str, source: str, target: str | None) -> None:
    files = LinkedFiles()
    files.add(NamedFile(name, number) for number, name in enumerate(VAULT))
    file = files.find(path, source)
    assert (None if file is None else file.path) == target
    # The order in which files are added does not matter.
    files = LinkedFiles()
    for number, name in reversed(list(enumerate(VAULT))):
        files.add([NamedFile(name, number)])
        files.find(path, source)
    assert files.find(path, source) == file


FOLDERS = [
    "README.md", "test2.md", "docs/README.md", "docs/test2.md", "docs/setup.md", "docs/img/a.png",
    "docs/api/Index.md", "docs/api/call.md", "a.png", "src/docs/setup.md", "setup.md", "api/x.md",
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "path", "source", "target"),
    [
        # From the folder of the note first; a wikilink not.
        ("link", "test2.md", "docs/x.md", "docs/test2.md"),
        ("link", "test2", "docs/x.md", "docs/test2.md"),
        ("wikilink", "test2", "docs/x.md", "test2.md"),
        ("embed", "test2.md", "docs/x.md", "test2.md"),
        ("link", "docs/setup.md", "src/x.md", "src/docs/setup.md"),
        ("link", "docs/setup.md", "x.md", "docs/setup.md"),
        ("link", "/docs/setup.md", "src/x.md", "docs/setup.md"),
        ("link", "README.md", "docs/x.md", "docs/README.md"),
        ("link", "readme.md", "docs/api/call.md", "README.md"),
        ("link", "../README.md", "docs/x.md", "README.md"),
        ("image", "img/../img/a.png", "docs/x.md", "docs/img/a.png"),
        # Then as in Obsidian.
        ("link", "call.md", "x.md", "docs/api/call.md"),
        ("link", "api/call", "x.md", "docs/api/call.md"),
        ("link", "../../README.md", "docs/x.md", None),
        # A folder.
        ("link", "docs/", "x.md", "docs/README.md"),
        ("link", "docs", "x.md", "docs/README.md"),
        ("link", "/docs/", "src/x.md", "docs/README.md"),
        ("link", "api", "docs/x.md", "docs/api/Index.md"),
        ("link", ".", "docs/x.md", "docs/README.md"),
        ("link", "../", "docs/x.md", "README.md"),
        ("link", "..", "docs/api/call.md", "docs/README.md"),
        ("link", "setup.md/", "x.md", None),
        ("link", "docs/img/", "x.md", None),
        ("wikilink", "docs", "x.md", None),
        ("wikilink", "docs/", "x.md", None),
    ],
)  # fmt: skip
def test_outside_vaults_a_markdown_link_leads_from_the_folder_of_its_note(
    kind: str, path: str, source: str, target: str | None
) -> None:
    files = LinkedFiles(is_vault=False)
    files.add(NamedFile(name, number) for number, name in enumerate(FOLDERS))
    file = files.find(path, source, kind)
    assert (None if file is None else file.path) == target


NAMES = st.text(st.sampled_from("aB\u00e9."), min_size=1, max_size=3).filter(
    lambda name: name not in {".", ".."}
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


@given(st.lists(PATHS, unique_by=fold, max_size=12), PATHS, PATHS)
def test_the_quick_lookup_equals_a_plain_ranking(paths: list[str], link: str, source: str) -> None:
    files = LinkedFiles()
    files.add(NamedFile(f"{path}.md", number) for number, path in enumerate(paths))
    file = files.find(f"{link}.md", source)
    end, folder = fold(f"{link}.md"), fold(source).rpartition("/")[0]
    ranked = sorted(
        (
            (
                candidate != end,
                bool(folder) and not candidate.startswith(f"{folder}/"),
                len(candidate),
                candidate,
            )
            for path in paths
            if f"/{(candidate := fold(f'{path}.md'))}".endswith(f"/{end}")
        ),
    )
    assert (fold(file.path) if file else None) == (ranked[0][3] if ranked else None)


NOTES = {
    "a/one.md": "[[Two]] [x](../b/t%20wo.md#top) [y](t%2520wo.md) ![[Pic.png|100]] [[#here]]"
    " <https://x.org> [w](https://x.org/Two.md) [[gone]] ![](<sp ace.png>) [m](mailto:a@b.org)"
    " [[Other/Two]]\n",
    "two.md": "",
    "b/t wo.md": "---\naliases: [gone]\ntitle: gone\n---\n",
    unicodedata.normalize("NFD", "é.md"): "[[É]]\n",
    "img/pic.PNG": "",
    "img/sp ace.png": "",
}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(
        tmp_path / "kb.sqlite", Settings(embedder=HashEmbedder()), create=True
    ) as kb:
        for collection, notes in (("notes", NOTES), ("other", {"other/two.md": "[[one]]"})):
            for name, text in notes.items():
                (tmp_path / collection / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / collection / name).write_text(text, encoding="utf-8")
            kb.add_collection(tmp_path / collection, name=collection)
        kb.index()
        yield kb


def test_links_of_a_collection_are_resolved_together(kb: KnowledgeBase) -> None:
    with kb._store.reading() as reader:
        number = {path: number for number, _, path, _ in reader.documents.identities()}
        links = reader.links.of_documents([number["a/one.md"]])
        targets = LinkTargets(reader, "notes").resolve(links)
        assert [(link.target, target.kind, target.path)
                for link, target in zip(links, targets, strict=True)] == [
            ("Two", "document", "two.md"),
            ("../b/t%20wo.md", "document", "b/t wo.md"),
            ("t%2520wo.md", "nothing", None),
            ("Pic.png", "attachment", "img/pic.PNG"),
            ("", "document", "a/one.md"),
            ("https://x.org/Two.md", "web", None),
            ("gone", "nothing", None),
            ("sp ace.png", "attachment", "img/sp ace.png"),
            ("mailto:a@b.org", "web", None),
            ("Other/Two", "nothing", None),
        ]  # fmt: skip
        assert targets[0] == LinkTarget("document", "two.md", number["two.md"])
        accented = unicodedata.normalize("NFD", "é.md")
        [target] = LinkTargets(reader, "notes").resolve(reader.links.to_keys("notes", ["é"]))
        assert target.path == accented
        [link] = reader.links.in_collection("other")
        assert LinkTargets(reader, "other").resolve([link])[0].kind == "nothing"


SECTIONS = """# Top

## My *heading*: one

text ^block-1

### Sub
"""


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        ("[[s#Top]]", "document"),
        ("[[S#my heading one]]", "document"),
        ("[[s#Top#Sub]]", "document"),
        ("[[s#Sub#Top]]", "section missing"),
        ("[[s#Nowhere]]", "section missing"),
        ("[[s#^block-1]]", "document"),
        ("[[s#^BLOCK-1]]", "document"),
        ("[[s#^block-2]]", "section missing"),
        ("![[s#^block-2]]", "section missing"),
        ("[x](s.md#My%20heading%20one)", "document"),
        ("[x](s.md#my-heading-one)", "document"),
        ("[x](s.md#%5Eblock-1)", "document"),
        ("[x](s.md#%5Eblock-2)", "section missing"),
        ("[[#Own]]", "document"),
        ("[[#Other]]", "section missing"),
        ("[[p.pdf#page=3]]", "attachment"),
        ("[[nothing#Top]]", "nothing"),
        ("[x](https://x.org/s.md#Nowhere)", "web"),
    ],
)
def test_a_missing_section_is_told(tmp_path: Path, link: str, kind: str) -> None:
    corpus = Corpus(tmp_path)
    corpus.fill({"s.md": SECTIONS, "source.md": f"# Own\n\n{link}\n"})
    corpus.store.write(lambda w: w.files.change_attachments(corpus.number, ["p.pdf"], []))
    with corpus.store.reading() as reader:
        links = list(reader.links.of_documents([1, 2]))
        [target] = LinkTargets(reader, "notes").resolve(links, check_sections=True)
        assert target.kind == kind
        [plain] = LinkTargets(reader, "notes").resolve(links)
        assert plain == (target._replace(kind="document") if target.document_id else target)
    corpus.kb.close()
