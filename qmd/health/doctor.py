"""Runs the checks of `qmd doctor` on this installation and this database."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from qmd.engine_text import engine_text, sentences, with_cause
from qmd.errors import ExifToolError, InputError, NotFoundError, QmdError, StoreError
from qmd.files.photos.exiftool import ExifTool
from qmd.health import clients
from qmd.health.status import folder_state
from qmd.inference.embedded import build
from qmd.ingest import parse_workers
from qmd.ingest.embedding import count_lacking_english
from qmd.ingest.keep import freshness
from qmd.ingest.keep.freshness import is_kept, lock_name
from qmd.ingest.keep.watch import REMOTE, file_system
from qmd.ingest.patterns import compile_mask
from qmd.ingest.rules import Rules
from qmd.ingest.scan import ScannedFile, is_readable, printable, scan
from qmd.models import catalogue
from qmd.models.choice import Backends, EmbedderChoice, is_set, open_expander, open_reranker
from qmd.models.guard import ModelGuard
from qmd.parse.formats import PHOTO
from qmd.system import installation, running, telemetry
from qmd.system.peer import Peers
from qmd.system.worker.jobs import MB
from qmd.values import Check, Collection, Progress

if TYPE_CHECKING:
    from qmd.store import Reader, Store
    from qmd.values import ProgressCallback
    from qmd.values.location import DatabaseLocation


def examine(
    store: Store,
    choice: EmbedderChoice,
    backends: Backends,
    home: Path,
    exiftool: str | Path | None = None,
    *,
    version: str,
    progress: ProgressCallback | None = None,
) -> list[Check]:
    """
    Run all checks, and return also those that report no problem.

    Models at servers are tested with a small request, and what AI clients start is started.
    """
    checks: list[Check] = []
    for findings in (
        python_check(),
        _engine(store),
        _database(store, progress),
        _collections(store),
        model_checks(store, choice, backends),
        keeping_checks(store),
        parser_check(),
        exiftool_check(store, exiftool),
        port_check(store.location),
        clients.examine(store.location, home, version),
    ):
        try:
            checks.extend(findings)
        except StoreError as error:  # a damaged part must not stop the other checks
            checks.append(Check.error("database", error.message, error.hint))
    return checks


def _engine(store: Store) -> Iterator[Check]:
    is_file = isinstance(store.location, Path)
    yield Check.ok("sqlite" if is_file else "postgresql", store.engine())
    vectors = "sqlite-vec" if is_file else "pgvector"
    with store.reading() as reader:
        try:
            engine = reader.vectors.require_engine()
        except QmdError as error:
            yield Check.warning(vectors, error.message, error.hint)
        else:
            yield Check.ok(vectors, engine)


def _database(store: Store, progress: ProgressCallback | None) -> Iterator[Check]:
    def tick(done: int, total: int, subject: str) -> None:
        if progress is not None:
            progress(Progress("check", done, total, subject))

    with store.reading() as reader:
        problems = reader.upkeep.problems(tick)
        applied = reader.upkeep.migrations()
        size = reader.upkeep.size_bytes()
    yield Check.ok(
        "schema",
        "{location} ({size} bytes), migration {name}",
        location=store.location,
        size=f"{size:,}",
        name=applied[-1],
    )
    if problems:
        message = with_cause("The database is damaged", "; ".join(problems))
        yield Check.error("integrity", message, store.damage_hint)
    else:
        is_file = isinstance(store.location, Path)
        sound = "SQLite finds no damage" if is_file else "The server checks its own pages"
        yield Check.ok("integrity", sound)


#: What is wrong with a collection's folder, by its state (`folder_state`), and what to do.
_UNREACHABLE = {
    "silent": ("The disk of {path} does not answer.", "Connect it again, or unmount it."),
    "missing": (
        "Its directory {path} is not there.",
        "Mount its disk, or 'qmd collection remove' it and add it where it is now.",
    ),
    "unreadable": (
        "Its directory {path} cannot be read.",
        "Give yourself permission to read it, then run 'qmd index'.",
    ),
}


def _collections(store: Store) -> Iterator[Check]:
    with store.reading() as reader:
        stored_collections = reader.collections.all()
        skipped = reader.files.all_skips()
        warned = reader.files.warned(offset=0, limit=2)
        count_warned = reader.files.count_warned() if warned else 0
    if not stored_collections:
        yield Check.warning("collections", "There is no collection.", "qmd collection add FOLDER")
    for collection in stored_collections:
        name = f"collection {collection.name}"
        state = folder_state(Path(collection.path))
        if state in _UNREACHABLE:
            problem, remedy = _UNREACHABLE[state]
            yield Check.error(name, problem, remedy, path=collection.path)
        elif collection.last_indexed is None:
            message = "It has not been indexed to the end yet."
            yield Check.warning(name, message, _index_it(collection))
        else:
            message = "{count} documents from {path}"
            yield Check.ok(name, message, count=collection.documents, path=collection.path)
    if skipped:
        message = "{count} files could not be read as documents."
        remedy = "qmd status lists them; qmd why FILE explains one."
        yield Check.warning("skipped files", message, remedy, count=len(skipped))
    if warned:
        names = [document.file for document in warned]
        if count_warned > len(names):
            names[1:] = [engine_text("{count} more documents", count=f"{count_warned - 1:,}")]
        remedy = "qmd why FILE says what; the page lists all such documents."
        message = "Something is wrong inside {files}."
        yield Check.warning("warnings", message, remedy, files=_both(names))


def python_check() -> Iterator[Check]:
    """The interpreter, and whether its libraries report anything to anybody."""
    yield Check.ok(
        "python",
        "Python {version} on {platform}",
        version=platform.python_version(),
        platform=platform.platform(),
    )
    if telemetry.is_off():
        yield Check.ok("telemetry", "Off: onnxruntime and the Hugging Face hub report nothing")
    else:
        yield Check.warning(
            "telemetry",
            "This program imported onnxruntime before qmd: it looks up a host of Microsoft's and"
            " keeps a device id in your cache.",
            "Import qmd first, or set ORT_DISABLE_TELEMETRY=1 before the program starts.",
        )


def parser_check() -> Iterator[Check]:
    """Whether a separate process can parse files, and its limits; one is started for this."""
    problem = parse_workers.try_it()
    if problem is not None:
        risk = "A file that is too much for its parser stops indexing, or the server."
        remedy = "Let qmd start processes: look at 'ulimit -u', 'ulimit -v' and what confines it."
        yield Check.warning("parser", sentences(problem, risk), remedy)
        return
    budget = parse_workers.budget_of("", 0)
    message = engine_text(
        "A process of its own parses files; each may use {seconds} s of CPU time and {size} MB,"
        " more for large texts",
        seconds=f"{budget.cpu_s:g}",
        size=budget.memory_bytes // MB,
    )
    if sys.platform == "win32":
        message = "A process of its own parses files; one that gives no answer is ended"
    elif sys.platform != "linux":
        message = engine_text("{limits} (this system does not limit the memory)", limits=message)
    yield Check.ok("parser", message)


def exiftool_check(store: Store, command: str | Path | None) -> Iterator[Check]:
    """
    Whether metadata can be written into photos; a problem only where there are photos.

    ``command``: the exiftool that the settings name; None if they name none.
    """
    tool = ExifTool(command)
    try:
        yield Check.ok("exiftool", "exiftool {version} writes into photos", version=tool.version())
    except ExifToolError as error:
        if command is None and error.cause == "missing" and not _has_photos(store):
            yield Check.ok("exiftool", "exiftool is not installed; only photos would need it")
        else:
            message = "Metadata cannot be written into photos: {reason}."
            yield Check.warning("exiftool", message, error.hint, reason=error.reason)
    finally:
        tool.close()


def _has_photos(store: Store) -> bool:
    """Whether the mask of a collection includes photos."""
    with store.reading() as reader:
        masks = [compile_mask(collection.pattern) for collection in reader.collections.all()]
    names = [f"photo{suffix}" for suffix in PHOTO.suffixes]
    return any(matches(name, name) for matches in masks for name in names)


def port_check(database: DatabaseLocation) -> Iterator[Check]:
    """Whom the running server answers; if none runs, a server with default settings."""
    server = running.find(database)
    who = (
        "No server runs; without a token, one"
        if server is None
        else engine_text("The server at {url}", url=server.url)
    )
    if server is not None and server.guard == "token":
        yield Check.ok("port", "{server} answers who has its token", server=who)
    elif server is not None and server.guard == "user":
        message = "{server} answers programs of its own user (and of root) only"
        yield Check.ok("port", message, server=who)
    elif Peers.open() is None:  # this system does not tell whose program is at the other end
        yield Check.warning(
            "port",
            "{server} answers every user of this machine: this system does not tell whose"
            " program connects.",
            "If others use this machine: qmd server --token auto, or QMD_TOKEN.",
            server=who,
        )
    elif server is None:
        message = "No server runs; one would answer programs of its own user (and of root) only"
        yield Check.ok("port", message)
    else:
        remedy = "Start it anew, without --allow-other-users or with --token auto."
        yield Check.warning(
            "port", "{server} answers every user of this machine.", remedy, server=who
        )


LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
#: The share of the limit that qmd may use: other programs of the same user watch folders too.
SHARE = 0.5


class Drift(NamedTuple):
    """
    The numbers of files that an index run would add, update, remove and leave unchanged.

    ``directories`` is the number of directories that the run walks. ``unreadable`` are files among
    those left unchanged that cannot be read any more, which a run does not notice.
    """

    new: int
    changed: int
    gone: int
    unchanged: int
    directories: int
    unreadable: Sequence[str] = ()


def keeping_checks(store: Store) -> Iterator[Check]:
    """Check whether a process keeps the index, what it reports, and how far the index is behind."""
    pid = freshness.keeper_pid(store)
    fresh = freshness.read_freshness(store)
    kept = is_kept(store)
    if kept and not freshness.is_kept_by_older(store):  # of which a notice tells
        who = "A process" if pid is None else engine_text("Process {pid}", pid=pid)
        if fresh.keeper is not None:
            who = fresh.keeper.replace("process", "Process", 1)
        how = {
            "native": "{keeper} keeps the index",
            "polling": "{keeper} keeps the index, by looking again and again",
            "off": "{keeper} keeps the index, without watching",
        }
        yield Check.ok("keeper", how[fresh.watch], keeper=who)
    elif not kept:
        yield Check.ok(
            "keeper",
            "No process keeps the index just now ('qmd watch', 'qmd up' and 'qmd server' do);"
            " {lock} is free",
            lock=lock_name(store),
        )
    for notice in fresh.notices:
        yield Check.warning("keeper", notice, "'qmd doctor' again when it is mended")
    collections = store.read(lambda reader: reader.collections.all())
    directories = 0
    for collection in collections:
        if folder_state(Path(collection.path)) == "silent":
            continue  # a walk would wait for its disk
        try:
            drift = find_drift(store, collection)
        except (NotFoundError, InputError):
            continue  # `doctor` reports what is wrong with its folder
        directories += drift.directories
        yield _drift(collection, drift, kept=is_kept(store))
        if drift.unreadable:
            yield _unreadable(collection, drift.unreadable)
        kind = file_system(Path(collection.path))
        if kind in REMOTE:
            yield Check.warning(
                f"events {collection.name}",
                "It lies on {kind}, which does not report what other machines change;"
                " a keeper looks again and again.",
                "Keep the index on the machine that holds the files, if that is too slow.",
                kind=kind,
            )
    yield from _watch_limit(directories)


def find_drift(store: Store, collection: Collection) -> Drift:
    """
    Compare the stored states of files with the disk, without reading any file.

    Raises:
        NotFoundError, InputError: The folder cannot be scanned.
    """
    root = Path(collection.path)
    walk = scan(root, Rules(root, collection.pattern, collection.ignore))
    with store.reading() as reader:
        stored = reader.files.in_collection(collection.id)
        skips = reader.files.skips_in_collection(collection.id)
    new = changed = unchanged = 0
    unreadable = []
    unlisted: list[str] = []
    for item in walk:
        if not isinstance(item, ScannedFile):
            if item.is_directory and item.reason == "unreadable":
                unlisted.append(f"{item.path}/")
            continue
        document = stored.pop(item.path, None)
        if document is not None:
            present, recorded = item.state, document.state
            # The state of a file that changed just before it was indexed has the inode -1.
            is_same = present == recorded or (recorded.inode == -1 and present[:2] == recorded[:2])
            unchanged, changed = unchanged + is_same, changed + (not is_same)
            if is_same and not is_readable(f"{collection.path}/{item.path}"):
                unreadable.append(printable(item.path))
        elif item.path not in skips:
            new += 1
    below = [path for path in stored if path.startswith(tuple(unlisted))]
    unreadable += map(printable, below)
    gone, unchanged = len(stored) - len(below), unchanged + len(below)
    return Drift(new, changed, gone, unchanged, walk.directories, unreadable)


def _drift(collection: Collection, drift: Drift, *, kept: bool) -> Check:
    name = f"drift {collection.name}"
    if not (drift.new or drift.changed or drift.gone):
        return Check.ok(name, "The index is as the disk: {files}", files=_files(drift.unchanged))
    remedy = "Nothing, if it is gone in a minute; else 'qmd index --verify'." if kept else None
    return Check.warning(
        name,
        "The disk is ahead of the index: {new} new, {changed} changed, {gone} gone.",
        remedy or _index_it(collection),
        new=drift.new,
        changed=drift.changed,
        gone=drift.gone,
    )


def _unreadable(collection: Collection, paths: Sequence[str]) -> Check:
    names = [f"{collection.name}/{paths[0]}"]
    if others := len(paths) - 1:
        template = "1 more file" if others == 1 else "{count} more files"
        names.append(engine_text(template, count=f"{others:,}"))
    return Check.warning(
        f"unreadable {collection.name}",
        "{files} cannot be read any more; searches show what was in the index before.",
        "Give yourself permission to read it, or leave it out of the index: qmd collection set"
        " {name} --ignore PATTERN",
        files=_both(names),
        name=collection.name,
    )


def _watch_limit(directories: int) -> Iterator[Check]:
    """Check that the kernel (Linux only) lets a user watch ``directories`` directories."""
    if sys.platform != "linux":
        return
    try:
        limit = int(LIMIT.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return
    if directories > limit * SHARE:
        yield Check(
            "file events",
            "warning",
            engine_text(
                "The collections have {count} folders, and the kernel lets a user watch {most};"
                " where that does not suffice, a keeper looks again and again.",
                count=f"{directories:,}",
                most=f"{limit:,}",
            ),
            engine_text(
                "sudo sysctl fs.inotify.max_user_watches={most} (and the same line in"
                " /etc/sysctl.d/)",
                most=max(524288, 4 * directories),
            ),
        )
    else:
        template = "{count} folders to watch; the kernel allows {most}"
        if directories == 1:
            template = "1 folder to watch; the kernel allows {most}"
        yield Check.ok("file events", template, count=f"{directories:,}", most=f"{limit:,}")


def _files(number: int) -> str:
    return engine_text("1 file" if number == 1 else "{count} files", count=f"{number:,}")


def _both(names: Sequence[str]) -> str:
    """One or two names."""
    return (
        names[0]
        if len(names) == 1
        else engine_text("{one} and {other}", one=names[0], other=names[1])
    )


def _index_it(collection: Collection) -> str:
    return engine_text("qmd index -c {name}", name=collection.name)


#: Longer than a query waits, so that "slow" and "not at all" are told apart.
PATIENCE_S = 20.0


def model_checks(store: Store, choice: EmbedderChoice, backends: Backends) -> Iterator[Check]:
    yield from _embedding(store, choice, backends.settings.budget_s)
    yield from _query_models(backends, choice)


def _embedding(store: Store, choice: EmbedderChoice, budget_s: float) -> Iterator[Check]:
    with store.reading() as reader:
        target, chosen = choice.target_name(reader), reader.models.chosen_name()
        active = reader.models.active()
    try:
        ready = choice.is_available(target)
        fits = active is None or choice.spec().fingerprint == active.fingerprint
    except QmdError as error:
        yield Check.error("model", error.message, error.hint)
        return
    if choice.custom_embedder is None and catalogue.is_endpoint(target):
        yield _ask("model", target, budget_s, lambda: choice.open(target).embed_query("hello"))
    elif ready:
        yield Check.ok("model", "{model} is on this machine", model=target)
    else:
        message = "{model} is not on this machine yet."
        yield Check.warning("model", message, "qmd embed", model=target)
    if choice.custom_embedder is None:
        yield from _setting(choice.configured_model, chosen)
    with store.reading() as reader:
        problem = _problem_of_vectors(reader, target, fits=fits)
        waiting = reader.upkeep.count_contents_waiting()
        embeds = freshness.activity(store, reader)[1]
    if problem is not None:
        yield problem
    elif not waiting:
        yield Check.ok("vectors", "Every document has its vectors")
    else:
        template = "{count} documents wait for vectors."
        if waiting == 1:
            template = "1 document waits for vectors."
        message = engine_text(template, count=f"{waiting:,}")
        if embeds:
            message = sentences(message, "A process makes them in the background.")
            yield Check.ok("vectors", message)
        else:
            yield Check.warning("vectors", message, "qmd embed")
    if choice.custom_embedder is None and target == catalogue.DEFAULT_MODEL:
        yield _english(store, embeds=embeds)


def _english(store: Store, *, embeds: bool) -> Check:
    """The model of English beside the default one, and how many chunks it has not looked at."""
    name = "model of English"
    facts = {
        "model": catalogue.ENGLISH_MODEL,
        "package": build.ENGLISH_REQUIREMENT,
        "license": catalogue.ENGLISH_LICENSE,
    }
    if build.english_file() is None:
        message = "{model} is not here ({package}, {license}): English hits are ordered without it."
        remedy = installation.current().install(build.ENGLISH_REQUIREMENT)
        return Check.warning(name, message, remedy, **facts)
    with store.reading() as reader:
        active = reader.models.active()
        is_default = active is not None and active.name == catalogue.DEFAULT_MODEL
        waiting = count_lacking_english(reader, active) if active and is_default else 0
    if not waiting:
        message = "{model} is on this machine ({package}, {license})"
        return Check.ok(name, message, **facts)
    message = "{model} is on this machine ({package}, {license}); it has {count} chunks to look at."
    count = f"{waiting:,}"
    if embeds:
        return Check.ok(name, message, **facts, count=count)
    return Check.warning(name, message, "qmd embed", **facts, count=count)


def _setting(setting: str | None, chosen: str | None) -> Iterator[Check]:
    """A warning where the settings name another model than the one chosen for the database."""
    if setting is not None and chosen is not None and setting != chosen:
        yield Check.warning(
            "model setting",
            "The settings name {setting}, but {chosen} was chosen for this database, and counts.",
            "Remove the setting, or change the database: qmd models use {setting}",
            setting=setting,
            chosen=chosen,
        )


def _problem_of_vectors(reader: Reader, target: str, *, fits: bool) -> Check | None:
    """
    What is wrong with the vectors.

    Args:
        target: The model that the index is to have.
        fits: Whether the active model is still what it was when it made the vectors.
    """
    active, coming = reader.models.active(), reader.models.coming()
    if active is None:
        return None
    if not fits:
        message = "The vectors are those of the model {model}, which has changed since."
        return Check.warning("vectors", message, "qmd embed", model=active.name)
    if coming is not None:
        return Check.warning(
            "vectors",
            "Those of {model} answer until {coming} has all of its own: {count} chunks are"
            " missing.",
            "qmd embed, or wait for the process that keeps the index",
            model=active.name,
            coming=coming.name,
            count=f"{reader.embeddings.count_waiting(coming):,}",
        )
    if target != active.name:
        message = "The vectors are those of the model {model}, and the settings name {other}."
        remedy = f"qmd models use {target}"
        return Check.warning("vectors", message, remedy, model=active.name, other=target)
    return None


def _query_models(backends: Backends, choice: EmbedderChoice) -> Iterator[Check]:
    """Expander and reranker, each given a small task, as a query would."""
    settings = backends.settings
    if is_set(settings.expander):
        yield _ask(
            "expander",
            str(settings.expander),
            settings.budget_s,
            lambda: open_expander(settings).expand(
                "how is the database backed up", limit=5, timeout_s=PATIENCE_S
            ),
        )
    if is_set(settings.reranker):
        reranker = cache(lambda: open_reranker(settings, choice.cache_dir))
        yield _ask(
            "reranker",
            str(settings.reranker),
            settings.budget_s,
            lambda: reranker().rerank(
                "how is the database backed up",
                ["Copy the file every night.", "Knead the dough for ten minutes."],
                timeout_s=PATIENCE_S,
            ),
            again=True,
        )


def _ask(
    name: str, setting: str, budget_s: float, ask: Callable[[], Any], *, again: bool = False
) -> Check:
    """``again``: the second answer is timed, since the first waits for weights to be read."""
    guard = ModelGuard(setting)
    try:
        if again:
            guard.call(ask, PATIENCE_S)
        began = monotonic()
        guard.call(ask, PATIENCE_S)
    except QmdError as error:
        return Check.warning(name, with_cause(setting, error.message), error.hint)
    seconds = monotonic() - began
    if seconds > budget_s:
        return Check.warning(
            name,
            "{model} answers, but takes {seconds} s, and a query waits for {budget} s.",
            "A smaller model, or a larger model_budget (QMD_MODEL_BUDGET).",
            model=setting,
            seconds=f"{seconds:.1f}",
            budget=f"{budget_s:g}",
        )
    message = "{model} answers in {seconds} s"
    return Check.ok(name, message, model=setting, seconds=f"{seconds:.1f}")
