"""The events of some collections."""

from __future__ import annotations

from collections.abc import Callable, Collection

from qmd.ingest.events import Event, EventBus


class ScopedEvents(EventBus):
    """Hands on the events of another bus that concern some collections."""

    def __init__(self, bus: EventBus, collections: Collection[str]) -> None:
        super().__init__()
        self._bus = bus
        self._collections = collections

    def subscribe(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """As `EventBus.subscribe`."""

        def hand_on(event: Event) -> None:
            if event.collection in self._collections:
                callback(event)

        return self._bus.subscribe(hand_on)
