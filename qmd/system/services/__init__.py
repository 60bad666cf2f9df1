"""
Runs a server as a service of the system: a systemd user unit, a launch agent, a scheduled task.

Each manager is a module that turns a `Service` into a file and into the commands that install,
remove and ask for it. `managers` picks one and runs the commands.
"""
