"""Claims about lines of docs/example: such as the lines support, and such as they do not."""

from __future__ import annotations

BAKING = (
    "Feed the starter twice a day. Bake at 230 °C for 45 minutes,"
    " and see [[release]]: never on a Tuesday."
)
RELEASE = "We deploy the parser every Tuesday at 9:00."
ROLLBACK = "Roll back to the last tag, then tell the team in the channel."
BACKUP = "每天夜里两点备份数据库，保留三十天。"
RESTORE = "恢复之前先停止写入，再用最近的备份覆盖，最后核对行数。"
DATE = "date: 2026-03-02"

TRUE_CLAIMS = [
    ("The starter is fed twice a day", BAKING),
    ("You should feed the sourdough starter two times a day.", BAKING),
    ("Bake it at 230 °C for 45 minutes", BAKING),
    ("Never bake on a Tuesday", BAKING),
    ("The bread bakes for 45 minutes", BAKING),
    ("The parser is deployed every Tuesday at 9:00", RELEASE),
    ("Deployments happen on Tuesdays at 9 am", RELEASE),
    ("The team deploys the parser on Tuesday", RELEASE),
    (
        "If a deployment goes wrong, roll back to the last tag and inform the team in the channel",
        ROLLBACK,
    ),
    ("First you roll back to the previous tag", ROLLBACK),
    ("After rolling back, the team is told in the channel", ROLLBACK),
    ("数据库每天凌晨两点备份", BACKUP),
    ("备份保留三十天", BACKUP),
    ("备份会保留 30 天", BACKUP),
    ("每天夜里 2:00 备份一次数据库", BACKUP),
    ("恢复前要先停止写入", RESTORE),
    ("用最近的备份覆盖", RESTORE),
    ("最后要核对行数", RESTORE),
    ("先停写，再用最近一次备份覆盖，然后核对行数", RESTORE),
    ("The plan is dated March 2, 2026", DATE),
    ("日期是2026年3月2日", DATE),
]

FALSE_CLAIMS = [
    ("The starter is fed three times a day", BAKING),
    ("Bake at 200 °C for 45 minutes", BAKING),
    ("Bake at 230 °C for 60 minutes", BAKING),
    ("Do not feed the starter twice a day", BAKING),
    ("The dough rests overnight in the fridge", BAKING),
    ("The parser is deployed every Tuesday at 10:00", RELEASE),
    ("The parser is deployed every Friday at 9:00", RELEASE),
    ("We never deploy the parser on Tuesday", RELEASE),
    ("The database is backed up on Tuesday nights", RELEASE),
    ("Deployments need the approval of two people", RELEASE),
    ("Tell the customers by mail and fix forward", ROLLBACK),
    ("Never roll back to the last tag", ROLLBACK),
    ("数据库每天夜里三点备份", BACKUP),
    ("备份保留六十天", BACKUP),
    ("备份保留 7 天", BACKUP),
    ("数据库不备份", BACKUP),
    ("每周备份一次服务器配置", BACKUP),
    ("恢复之前不需要停止写入", RESTORE),
    ("恢复时要先通知用户并重启服务", RESTORE),
    ("最后删除旧的备份文件夹", RESTORE),
    ("The plan is dated March 5, 2026", DATE),
    ("日期是2026年4月2日", DATE),
]
