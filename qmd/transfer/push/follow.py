"""Pushes folders again whenever they change, until the process ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from qmd.errors import ServerUnreachableError
from qmd.ingest.keep.watch import ChangedPaths, WatchFactory
from qmd.transfer.push.folder import FolderPush, LocalFolder, PushSummary
from qmd.values import Collection

#: Seconds after which all folders are compared again, whatever the system has reported.
COMPARE_S = 600.0
#: The shortest and the longest pause before an unreachable server is asked again, in seconds.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0

Pushing = tuple[LocalFolder, FolderPush]


def follow(
    pushes: Sequence[Pushing],
    notice: Callable[[str], None],
    *,
    changes: ChangedPaths | None = None,
) -> Iterator[PushSummary]:
    """
    Push folders as they change; yields what each push has done. It does not end by itself.

    Args:
        pushes: What has been pushed once.
        notice: Called with a sentence on each difficulty, such as a server that does not answer.
        changes: What gathers the changes; `ChangedPaths.wake` makes it compare all folders.

    Raises:
        NotFoundError, InputError: A folder cannot be read or watched.
        WritesForbiddenError, ConflictError: The server does not take a folder any more.
    """
    changes = changes or ChangedPaths()
    factory = WatchFactory(changes)
    try:
        for number, (folder, _) in enumerate(pushes):
            _, reason = factory.start(_as_collection(number, folder))
            if reason is not None:
                notice(reason)
        due = set(range(len(pushes)))  # they may have changed before the watches began
        pause_s = FIRST_PAUSE_S
        while True:
            for number in sorted(due):
                push = pushes[number][1]
                try:
                    yield push.run()
                except ServerUnreachableError as error:
                    push.forget()
                    problem = str(error).rstrip(".")
                    notice(f"{problem}. It is tried again in {pause_s:.0f} s.")
                    break
                due.discard(number)
                pause_s = FIRST_PAUSE_S
            changed = changes.take(pause_s if due else COMPARE_S)
            if due:
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                due |= changed.keys()
            else:
                due = set(changed) or set(range(len(pushes)))
    finally:
        factory.close()


def _as_collection(number: int, folder: LocalFolder) -> Collection:
    """The folder in the form that the watches take."""
    return Collection(
        number, folder.name, str(folder.root), folder.pattern, folder.ignore, 0, None, None
    )
