"""
Scheduled tasks of Windows, which start at logon: schtasks, and the Task Scheduler's XML.

https://learn.microsoft.com/windows/win32/taskschd/task-scheduler-schema
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from xml.sax.saxutils import escape

from qmd.errors import InputError
from qmd.system.services.definition import Command, Service, Step
from qmd.system.user_dirs import user_dir

_XML = """\
<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>{description}</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      <UserId>{user}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{user}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>99</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>{program}</Command>
      <Arguments>{arguments}</Arguments>
      <WorkingDirectory>{folder}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
"""


class TaskScheduler:
    """The Task Scheduler of Windows."""

    name = "windows"

    def file(self, service_name: str) -> Path:
        return user_dir("state") / f"{service_name}.task.xml"

    def content(self, service: Service) -> bytes:
        if service.environment:
            names = ", ".join(sorted(service.environment))
            raise InputError(
                f"A scheduled task has no environment, and these are set: {names}",
                hint="Put settings into config.toml (qmd config), and use --token auto.",
            )
        program, *arguments = service.command
        windowless = Path(program).with_name("pythonw.exe")
        if windowless.is_file():  # qmd.exe would show a console window
            program, arguments = str(windowless), ["-I", "-m", "qmd", *arguments]
        user = os.environ.get("USERNAME", "")
        domain = os.environ.get("USERDOMAIN", "")
        text = _XML.format(
            description=escape(service.description),
            user=escape(f"{domain}\\{user}" if domain else user),
            program=escape(program),
            arguments=escape(subprocess.list2cmdline(arguments)),
            folder=escape(str(service.folder)),
        )
        return text.replace("\n", "\r\n").encode("utf-16")

    def install_steps(self, service_name: str) -> tuple[Step, ...]:
        file = str(self.file(service_name))
        return (
            Step(("schtasks", "/End", "/TN", service_name), may_fail=True),
            Step(("schtasks", "/Create", "/TN", service_name, "/XML", file, "/F")),
            Step(("schtasks", "/Run", "/TN", service_name)),
        )

    def uninstall_steps(self, service_name: str) -> tuple[Step, ...]:
        return (
            Step(("schtasks", "/End", "/TN", service_name), may_fail=True),
            Step(("schtasks", "/Delete", "/TN", service_name, "/F")),
        )

    def steps_after_uninstall(self, service_name: str) -> tuple[Step, ...]:
        return ()

    def state_command(self, service_name: str) -> Command:
        return ("schtasks", "/Query", "/TN", service_name)

    def remark(self) -> str | None:
        return None
