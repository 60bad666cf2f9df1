"""The options that a person typed, in the form in which another process takes them."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import click
from click.core import ParameterSource

from qmd.cli.session import Session, lasting_name
from qmd.config import SETTINGS, Setting
from qmd.system.user_dirs import moved_directories

#: What a server without a terminal sets itself: it serves HTTP and logs as text.
_FIXED = {"transport", "only_http", "daemon", "log_format", "token"}


def typed_server_options(ctx: click.Context, names: Collection[str] | None = None) -> list[str]:
    """The options that were typed (of these names), in the form in which the server takes them."""
    words: list[str] = []
    for param in ctx.command.params:
        name = str(param.name)
        if names is not None and name not in names:
            continue
        is_typed = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not is_typed or name in _FIXED or name not in ctx.params:
            continue
        value: Any = ctx.params[name]
        option = param.opts[-1]
        if value is True:
            words.append(option)
        elif name == "toolsets":
            words += [option, ",".join(value)]
        elif isinstance(value, tuple):
            words += [word for each in value for word in (option, str(each))]
        else:
            words += [option, str(value)]
    return words


def typed_setting_options(here: Session) -> list[str]:
    """The settings that were typed as options, with full paths."""
    words: list[str] = []
    for name, setting in SETTINGS.items():
        if here.settings.sources[name] != setting.option or name == "db" or not setting.option:
            continue
        value = getattr(here.settings, name)
        if setting.kind == "switch":
            words.append(setting.option)
        elif setting.is_list:
            words += [word for each in value for word in (setting.option, str(each))]
        else:
            words += [setting.option, _lasting(value, setting)]
    return words


def environment_of_settings(here: Session) -> dict[str, str]:
    """
    The variables from which this process took its settings and directories.

    A program that another one starts later may not have them. The full path of the database is
    left to an option.
    """
    environment = moved_directories()
    for name, setting in SETTINGS.items():
        if here.settings.sources[name] != setting.variable or name == "db":
            continue
        value = getattr(here.settings, name)
        if setting.kind == "paths":
            environment[setting.variable] = os.pathsep.join(map(str, value))
        elif setting.is_path:
            environment[setting.variable] = _lasting(value, setting)
        else:
            environment[setting.variable] = os.environ[setting.variable]
    return environment


def _lasting(value: Any, setting: Setting) -> str:
    """Raises InputError: A URL holds a password."""
    if setting.kind == "database":
        return lasting_name(value)
    return full_path(value) if setting.is_path else str(value)


def full_path(path: object) -> str:
    """The absolute path; links stay, as in the settings."""
    return os.path.abspath(str(path))  # noqa: PTH100 - Path.resolve follows links
