"""
Runs the MCP server: the tools and, with the toolset ``qmd``, documents as resources.

It uses the SDK's low-level server, because the schemas, checks and texts of the tools are specified
to the letter; `MCPServer` would derive them from function signatures and add prefixes. The SDK
implements the protocol: the versions before and since 2026-07-28, negotiation and cancellation.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, TypeVar

import mcp_types as types

from qmd import __version__, errors
from qmd.kb import KnowledgeBase
from qmd.operations import texts
from qmd.operations.bounds import MAX_PATH
from qmd.operations.problems import closest, shortened
from qmd.operations.reading import document_block
from qmd.operations.replies import Reply
from qmd.server import mcp_wire
from qmd.server.activity import Activity, Caller, caller_named, session_of
from qmd.server.mcp_sdk import InitializationOptions, MCPError, NotificationOptions, Server
from qmd.server.subscriptions import Subscriptions
from qmd.server.workers import BULKY_AT_ONCE, CallQueue, TooBusyError
from qmd.system.session import in_session, new_session
from qmd.tools.definition import Tool, listing
from qmd.tools.toolsets import ToolSelection, select, toolset_of

_log = logging.getLogger(__name__)

_COMPLETIONS = 100  # the most that the protocol allows in one answer
_WORKERS = 8  # calls that run at once; more wait for their turn
_MAX_WAITING = 1000
_CALL_S = 60.0  # a first call may load the model
_ASK_FOR_LESS = "Try again, or ask for less."
_LOOK_FIRST = "It may still be done: look at the file before you try again."

#: Clients that give a model the structured content and every block that is no text: it would read
#: each document in an embedded resource twice. Claude Code 2.1 does so, and leaves out the texts.
_PASS_ON_BOTH = frozenset({"claude-code"})

ResultT = TypeVar("ResultT")


class _Server(Server[Any]):
    """The SDK's server, which tells clients of the handshake era whether its tools may change."""

    def __init__(self, name: str, *, tools_change: bool, **options: Any) -> None:
        super().__init__(name, **options)
        self._tools_change = tools_change

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=self._tools_change)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class McpFace:
    """
    Presents one `KnowledgeBase` as an MCP server, for any transport.

    Attributes:
        server: The SDK's server, which a transport runs.
        subscriptions: The documents that the clients watch.
        activity: The latest calls of tools; the other faces of the process record theirs there too.
        plain_text: Whether each reply is one text.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        selection: ToolSelection | None = None,
        *,
        plain_text: bool = False,
        activity: Activity | None = None,
    ) -> None:
        """
        Args:
            selection: The tools to offer; None for the toolset ``qmd`` alone.
            plain_text: Each reply is one text, for clients that refuse embedded resources or read
                only the first text.
            activity: Where calls are recorded; None for a new one.
        """
        chosen = selection or select(["qmd"])
        self.activity = activity or Activity()
        self._kb = kb
        self.plain_text = plain_text
        self._tools = {tool.name: tool for tool in chosen.tools}
        self._withheld = {tool.name: tool for tool in chosen.withheld}
        self._selection = chosen
        self._listed: tuple[str, ...] | None = None  # the names that clients know
        self._session = new_session("mcp")  # of the clients that name none
        self._workers = CallQueue(_WORKERS, max_waiting=_MAX_WAITING)
        self._bulk_workers = CallQueue(BULKY_AT_ONCE, max_waiting=_MAX_WAITING)
        self.subscriptions = Subscriptions(
            self._document_name, self._tools_changed if chosen.conditions else None
        )
        knowledge: dict[str, Any] = {}
        if "qmd" in chosen.toolsets:
            knowledge = {
                "instructions": mcp_wire.instructions(kb.collections(), chosen.language),
                "on_list_resources": self._list_resources,
                "on_list_resource_templates": self._list_resource_templates,
                "on_read_resource": self._read_resource,
                "on_list_prompts": self._list_prompts,
                "on_get_prompt": self._get_prompt,
                "on_completion": self._complete,
                "on_subscribe_resource": self._subscribe,
                "on_unsubscribe_resource": self._unsubscribe,
                "on_subscriptions_listen": self.subscriptions.listen,
            }
        self.server: Server[Any] = _Server(
            chosen.server_name,
            tools_change=bool(chosen.conditions),
            version=__version__,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            lifespan=self._lifespan,
            **knowledge,
        )
        self.server.middleware.append(mcp_wire.name_documents)

    # -- tools -------------------------------------------------------------------------

    async def _list_tools(
        self, ctx: mcp_wire.Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        self.subscriptions.follow_tools(ctx)
        try:
            tools = await self._in_thread(lambda: self._selection.listed(self._kb))
        except errors.QmdError as error:
            raise MCPError(types.INTERNAL_ERROR, texts.error_text(error)) from error
        if self._listed is None:
            self._listed = tuple(tool.name for tool in tools)
        return types.ListToolsResult(
            tools=[mcp_wire.listed_tool(tool) for tool in listing(tools, texts.MCP)]
        )

    async def _tools_changed(self) -> bool:
        """Whether the database calls for other tools than when this was last asked."""
        try:
            tools = await self._in_thread(lambda: self._selection.listed(self._kb))
        except errors.DatabaseReplacedError:  # the store has logged it
            return False
        except errors.QmdError as error:  # the next event, or the next list, sees it
            _log.warning("The list of tools was not compared: %s", error)
            return False
        names = tuple(tool.name for tool in tools)
        has_changed = self._listed is not None and names != self._listed
        if has_changed:
            self._listed = names
        return has_changed

    async def _call_tool(
        self, ctx: mcp_wire.Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None and not self._kb.policy.writable:
            tool = self._withheld.get(params.name)  # its error names the option that allows it
        if tool is None:
            message = _unknown("tool", params.name, self._listed or tuple(self._tools))
            toolset = toolset_of(params.name)
            if toolset is not None and toolset not in self._selection.toolsets:
                message += f". It is in the toolset {toolset}; --toolset adds it to a server"
            raise MCPError(types.INVALID_PARAMS, message)
        with self.activity.recorded(self._caller(ctx), tool.name) as outcome:
            try:
                reply = await self._reply(ctx, tool, params.arguments)
            except errors.ProtocolError as error:
                data = None if error.data is None else dict(error.data)
                raise MCPError(error.number, str(error), data) from error
            outcome.is_ok = not reply.is_error
            if outcome.kind is not None:
                outcome.hits = len((reply.structured or {}).get("results", ()))
        return types.CallToolResult(
            content=mcp_wire.content_of(
                reply, plain_text=self.plain_text or _passes_on_both(ctx, reply)
            ),
            structured_content=reply.structured,
            is_error=reply.is_error,
            _meta={mcp_wire.ERROR_CODE: reply.code} if reply.code else None,
        )

    async def _reply(
        self, ctx: mcp_wire.Context, tool: Tool[Any], arguments: dict[str, Any] | None
    ) -> Reply:
        """
        Run a tool on a worker thread.

        Raises:
            ProtocolError: The specification of the tool demands an error of the protocol.
            MCPError: An unexpected error, which is logged.
        """
        timeout_hint = _ASK_FOR_LESS if tool.read_only else _LOOK_FIRST
        session = self._session_of(ctx)

        def call() -> Reply:
            with in_session(session, face="mcp"):
                return tool.call(self._kb, arguments, texts.MCP)

        try:
            return await self._in_thread(call, timeout_hint=timeout_hint, bulky=tool.bulky)
        except errors.ProtocolError:
            raise
        except errors.QmdError as error:  # no thread was free in time
            return tool.failure(error)
        except Exception:  # noqa: BLE001 - logged; the SDK would send its message to the client
            _log.exception("%s failed", tool.name)
            raise MCPError(types.INTERNAL_ERROR, texts.INTERNAL) from None

    def _session_of(self, ctx: mcp_wire.Context) -> str:
        headers = None if ctx.request is None else ctx.request.headers
        return session_of(headers, otherwise=self._session)

    def _caller(self, ctx: mcp_wire.Context) -> Caller:
        params = ctx.session.client_params
        name, version = ("", "") if params is None else _name_and_version(params.client_info)
        return caller_named("mcp", name, version, self._session_of(ctx))

    # -- resources ---------------------------------------------------------------------

    async def _list_resources(
        self, ctx: mcp_wire.Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])  # clients search for documents instead

    async def _list_resource_templates(
        self, ctx: mcp_wire.Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=mcp_wire.URI_SCHEME + "{+path}",
            name="document",
            title="QMD Document",
            description=(
                "A markdown document from your QMD knowledge base. "
                "Use search tools to discover documents."
            ),
            mime_type=mcp_wire.MARKDOWN,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def _read_resource(
        self, ctx: mcp_wire.Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        path = mcp_wire.document_path(params.uri)
        if path is None:
            raise mcp_wire.not_found_error(
                ctx, params.uri, f"Document not found: {mcp_wire.decoded(params.uri)}"
            )
        try:
            document = await self._in_thread(lambda: self._kb.get(params.uri))
        except errors.DocumentNotFoundError as error:
            raise mcp_wire.not_found_error(
                ctx, params.uri, f"Document not found: {path}"
            ) from error
        except (errors.AmbiguousNameError, errors.SectionNotFoundError) as error:
            raise mcp_wire.not_found_error(ctx, params.uri, texts.error_text(error)) from error
        except errors.QmdError as error:
            message = texts.error_text(error)
            raise MCPError(types.INTERNAL_ERROR, message, {"uri": params.uri}) from error
        contents = mcp_wire.contents_of(document_block(document), uri=params.uri)
        return types.ReadResourceResult(contents=[contents])

    @asynccontextmanager
    async def _lifespan(self, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        async with self.subscriptions.attached(self._kb.events):
            yield {}

    async def _subscribe(
        self, ctx: mcp_wire.Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        if mcp_wire.document_path(params.uri) is None:
            raise mcp_wire.not_found_error(
                ctx, params.uri, f"Document not found: {mcp_wire.decoded(params.uri)}"
            )
        await self.subscriptions.add(ctx, params.uri)
        return types.EmptyResult()

    async def _unsubscribe(
        self, ctx: mcp_wire.Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self.subscriptions.remove(ctx, params.uri)
        return types.EmptyResult()

    async def _document_name(self, uri: str) -> str:
        """The ``collection/path`` of the document that a URI names; else the decoded URI."""
        if mcp_wire.document_path(uri) is None:
            return uri
        try:
            excerpt = await self._in_thread(lambda: self._kb.get(uri, max_lines=1))
            return excerpt.document.file
        except errors.QmdError:  # the document does not exist yet, or the name is ambiguous
            return mcp_wire.decoded(uri)

    # -- prompts -----------------------------------------------------------------------

    async def _list_prompts(
        self, ctx: mcp_wire.Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[mcp_wire.PROMPT])

    async def _get_prompt(
        self, ctx: mcp_wire.Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        if params.name != mcp_wire.PROMPT.name:
            raise MCPError(
                types.INVALID_PARAMS, _unknown("prompt", params.name, [mcp_wire.PROMPT.name])
            )
        message = types.PromptMessage(role="user", content=types.TextContent(text=mcp_wire.guide()))
        return types.GetPromptResult(description=mcp_wire.PROMPT.description, messages=[message])

    # -- completion ----------------------------------------------------------------------

    async def _complete(
        self, ctx: mcp_wire.Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        values: list[str] = []
        is_path = isinstance(params.ref, types.ResourceTemplateReference)
        if is_path and len(params.argument.value) <= MAX_PATH:
            values = await self._in_thread(lambda: self._paths_from(params.argument.value))
        shown = values[:_COMPLETIONS]
        return types.CompleteResult(
            completion=types.Completion(
                values=shown, total=len(values), has_more=len(values) > len(shown)
            )
        )

    def _paths_from(self, prefix: str) -> list[str]:
        """
        The paths that ``prefix`` may become: collections and documents whose file name begins so,
        or documents of its folder.
        """
        if "/" in prefix:
            return self._kb.files_beginning(prefix)
        names = sorted(f"{collection.name}/" for collection in self._kb.collections())
        begun = [name for name in names if name.startswith(prefix)]
        return begun + self._kb.files_named(prefix, limit=max(0, _COMPLETIONS + 1 - len(begun)))

    # -- worker threads ----------------------------------------------------------------

    async def _in_thread(
        self,
        function: Callable[[], ResultT],
        *,
        timeout_hint: str = _ASK_FOR_LESS,
        bulky: bool = False,
    ) -> ResultT:
        """
        Run a blocking call on a worker thread; it is ended if it is cancelled or takes too long.

        Args:
            timeout_hint: The hint of the error if the call takes too long.
            bulky: The call reads much, and waits in a separate queue.

        Raises:
            QmdError: The call took longer than `_CALL_S` seconds, or too many calls are waiting.
        """
        try:
            workers = self._bulk_workers if bulky else self._workers
            return await workers.run(function, timeout_s=_CALL_S)
        except TooBusyError:
            raise errors.QmdError(
                "Too many requests are waiting.", hint="Try again in a moment."
            ) from None
        except TimeoutError:
            raise errors.QmdError(
                f"It took longer than {_CALL_S:g} s.", hint=timeout_hint
            ) from None

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Whether all calls have ended within ``timeout_s``."""
        deadline = monotonic() + timeout_s
        return all(
            workers.wait_until_idle(max(0.0, deadline - monotonic()))
            for workers in (self._workers, self._bulk_workers)
        )


def _passes_on_both(ctx: mcp_wire.Context, reply: Reply) -> bool:
    params = ctx.session.client_params
    name = "" if params is None else params.client_info.name
    return reply.structured is not None and name in _PASS_ON_BOTH


def _name_and_version(client: types.Implementation) -> tuple[str, str]:
    return client.title or client.name, client.version


#: Tools of earlier versions of tobi/qmd → what they are called here.
_OF_TOBI = {"deep_search": "query", "structured_search": "query", "vector_search": "vsearch"}


def _unknown(kind: str, name: str, names: Sequence[str] | dict[str, Any]) -> str:
    there = _OF_TOBI.get(name, name)
    similar_name = there if there in names else closest(name, names)
    hint = f" (did you mean {similar_name}?)" if similar_name else ""
    return f"Unknown {kind}: {shortened(name)}{hint}. Known: {', '.join(names)}"
