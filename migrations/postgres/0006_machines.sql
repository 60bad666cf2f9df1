-- Which machine a temporary file is on: paths of other machines mean nothing here.
ALTER TABLE pending_writes ADD COLUMN machine text COLLATE "C" NOT NULL DEFAULT '';
COMMENT ON COLUMN pending_writes.machine IS 'The name of the machine whose process writes the file.';
COMMENT ON COLUMN chat_turns.process IS
    'The process that runs the turn. It holds an advisory lock as long as it runs, so that others see its end from any machine.';
