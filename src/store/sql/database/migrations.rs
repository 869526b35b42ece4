//! The schema, as numbered steps. A released step never changes: the next change is another step, and the filled database of
//! the previous version remains among the fixtures, from which a test migrates it.

/// Step `n` leads from version `n` to version `n + 1`.
pub(crate) const STEPS: [&str; 1] = [FIRST];

// `seq` preserves the order in which rows were created: times may be equal or go backwards. Large texts are last in their
// row, or in a separate table, so that reading the rest of a row does not read them. The `child` of a request and the
// `frame` of a log entry are not references: the child of a withdrawn request is deleted, and the log remains. Values that
// follow from another column are generated from it, so that the two cannot differ.
const FIRST: &str = "
-- What holds for all of a chain. Its root and its first frame refer to each other. name: what a person calls it. detached: what it
-- keeps of the chain in which an agent has detached it. family: the first of the chains that come from one another in this way;
-- NULL: it is alone. removed_usd, removed_agents: of chains of this family that were removed, so that the others do not get their
-- budget again; each removed chain is counted in only one chain. host: the state directory with the files of its agents; NULL: the
-- one that contains this database, or none yet if the database is on a server. labels: what its host must offer; NULL: nothing.
CREATE TABLE chains (
    root TEXT PRIMARY KEY REFERENCES frames (id) DEFERRABLE INITIALLY DEFERRED,
    limits TEXT NOT NULL,
    max_budget_usd REAL GENERATED ALWAYS AS (CAST(json_extract(limits, '$.max_budget_usd') AS REAL)) STORED,
    name TEXT,
    host TEXT,
    labels TEXT,
    family TEXT,
    detached TEXT,
    removed_usd REAL NOT NULL DEFAULT 0,
    removed_agents INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX chains_by_family ON chains (family) WHERE family IS NOT NULL;
CREATE INDEX chains_by_name ON chains (name) WHERE name IS NOT NULL;

-- session: the one that the agent has now. suspended: the call at which its checkpoint stands. baseline: what its first
-- session is a fork of. started_from: the session of Claude Code in which a person's command made a root. situation: what
-- the agent has besides its conversation; NULL: nothing. outcome: the state in which its parent sees it for good, although a person
-- has continued it since; NULL: the one that it is in. afresh: whether its agent writes a summary next, or the summary with which
-- its session begins; NULL: neither. pushed: how much of its own worktree is on a git remote; NULL: nothing.
CREATE TABLE frames (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent TEXT REFERENCES frames (id),
    root TEXT NOT NULL REFERENCES chains (root),
    depth INTEGER NOT NULL,
    status TEXT NOT NULL GENERATED ALWAYS AS (json_extract(state, '$.state')) STORED,
    seen_status TEXT NOT NULL GENERATED ALWAYS AS (json_extract(coalesce(outcome, state), '$.state')) STORED,
    waits_for TEXT GENERATED ALWAYS AS (json_extract(state, '$.wait.for')) STORED,
    is_group INTEGER NOT NULL GENERATED ALWAYS AS (json_type(task, '$.group') IS NOT NULL) STORED,
    wants_summary INTEGER NOT NULL GENERATED ALWAYS AS (json_type(afresh, '$.wanted') IS NOT NULL) STORED,
    is_unrecorded INTEGER NOT NULL GENERATED ALWAYS AS (coalesce(json_type(trouble, '$.unrecorded') = 'true', FALSE)) STORED,
    baseline_frame TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(baseline) THEN json_extract(baseline, '$.agent') END) STORED,
    baseline_checkpoint TEXT
        GENERATED ALWAYS AS (CASE WHEN json_valid(baseline) THEN json_extract(baseline, '$.checkpoint') END) STORED,
    worktree TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(launch) THEN json_extract(launch, '$.worktree') END) STORED,
    worktree_path TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(launch) THEN json_extract(launch, '$.worktree.path') END) STORED,
    repository TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(launch) THEN json_extract(launch, '$.worktree.repository') END) STORED,
    is_pushed INTEGER NOT NULL GENERATED ALWAYS AS (json_type(pushed, '$.snapshot') IS NOT NULL) STORED,
    has_unpushed INTEGER NOT NULL GENERATED ALWAYS AS (json_type(pushed, '$.failure') IS NOT NULL) STORED,
    program TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(launch) THEN json_extract(launch, '$.claude') END) STORED,
    config_dir TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(launch) THEN json_extract(launch, '$.config_dir') END) STORED,
    questions_per_hour INTEGER GENERATED ALWAYS AS (CASE
        WHEN json_valid(launch) THEN CAST(json_extract(launch, '$.questions_per_hour') AS INTEGER) END) STORED,
    task_file TEXT GENERATED ALWAYS AS (json_extract(task, '$.file')) STORED,
    state TEXT NOT NULL,
    since INTEGER NOT NULL,
    created INTEGER NOT NULL,
    session TEXT NOT NULL,
    checkpoint TEXT,
    suspended TEXT,
    started_from TEXT,
    title TEXT NOT NULL,
    cwd TEXT NOT NULL,
    baseline TEXT,
    situation TEXT,
    trouble TEXT,
    outcome TEXT,
    afresh TEXT,
    pushed TEXT,
    launch TEXT NOT NULL,
    task TEXT NOT NULL
) STRICT;
CREATE INDEX frames_by_parent ON frames (parent, id);
CREATE INDEX frames_by_root ON frames (root);
-- The frames that the limits of a tree are about, few in a tree of any size.
CREATE INDEX running_frames ON frames (root) WHERE status = 'running';
CREATE INDEX usage_limits ON frames (root) WHERE waits_for = 'usage_limit';
-- What removal asks of each tree: who else needs it, and who works in its worktrees.
CREATE INDEX frames_by_checkpoint ON frames (checkpoint) WHERE checkpoint IS NOT NULL;
CREATE INDEX frames_by_baseline ON frames (baseline_frame) WHERE baseline_frame IS NOT NULL;
CREATE INDEX unfinished_frames_by_cwd ON frames (cwd) WHERE status <> 'done';
-- What `resume --all` asks of all chains at once. The order of the ids is that in which their open requests are looked for.
CREATE INDEX stirring_frames ON frames (id, status, root) WHERE status IN ('ready', 'running', 'waiting');
-- The agents that write a summary next, few of all that wait.
CREATE INDEX wanted_summaries ON frames (id) WHERE wants_summary;
-- The agents whose last turn claude could not record.
CREATE INDEX unrecorded_frames ON frames (status) WHERE is_unrecorded;
-- The agents that make a chain look another way than its root says: someone runs, rests or was interrupted in it.
CREATE INDEX unusual_frames ON frames (status, root) WHERE status IN ('running', 'paused', 'cancelled');
-- The agents that a person has continued after they had ended, as their chains may have.
CREATE INDEX continued_frames ON frames (root, status) WHERE outcome IS NOT NULL AND status NOT IN ('done', 'failed');
-- What lists read of all chains: how many there are of each project and state, and the newest of them.
CREATE INDEX roots ON frames (cwd, status, seq, id, parent) WHERE parent IS NULL;
-- The chains whose projects are those of their repositories.
CREATE INDEX roots_in_worktrees ON frames (worktree_path) WHERE parent IS NULL AND worktree_path IS NOT NULL;
-- The chains that have ended, in the order in which they did.
CREATE INDEX ended_roots ON frames (since, status, parent, id) WHERE parent IS NULL AND status IN ('done', 'failed');
-- Whether a child is finished, without reading its row.
CREATE INDEX unfinished_frames ON frames (id, status, outcome) WHERE status NOT IN ('done', 'failed') AND outcome IS NULL;

CREATE TABLE replies (
    frame TEXT PRIMARY KEY REFERENCES frames (id),
    reply TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- mode: the permission mode with which it began, where that is another than that of the launch options. notice: what its agent
-- is told of what it has no more. leaves: a digest of the transcript that an attempt which was not kept has left behind.
-- model: what it ran with. requests: answers of the API. estimated: whether its claude died before it said what it had cost.
-- total_usage: tokens of its session, as total_cost_usd; NULL: its version does not count them. ran: for how many milliseconds
-- it ran, without the time in which the machine slept; NULL: nobody has measured it. lingered: how many of its calls have stayed
-- open for a while. lingered_for: for how many milliseconds those that have returned did. lingers, lingers_until: since when one
-- of them does, and until when it may. given: the results that it was given, as long as it runs. denied: the
-- calls that were; NULL: none. summarises: the checkpoint of which it was to write a summary. context: how many tokens its last
-- request sent, and context_window: how many its model takes; NULL: this is not known. host: where it ran; NULL: here.
CREATE TABLE attempts (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    frame TEXT NOT NULL REFERENCES frames (id),
    resumed TEXT,
    waited TEXT,
    waited_since INTEGER NOT NULL,
    output_from INTEGER NOT NULL,
    errors_from INTEGER NOT NULL,
    runner INTEGER NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER,
    outcome TEXT,
    kept INTEGER,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cache_creation_input_tokens INTEGER NOT NULL DEFAULT 0,
    cache_read_input_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd REAL NOT NULL DEFAULT 0,
    total_cost_usd REAL NOT NULL DEFAULT 0,
    total_usage TEXT,
    requests INTEGER NOT NULL DEFAULT 0,
    estimated INTEGER NOT NULL DEFAULT 0,
    ran INTEGER,
    lingered INTEGER NOT NULL DEFAULT 0,
    lingered_for INTEGER NOT NULL DEFAULT 0,
    lingers INTEGER,
    lingers_until INTEGER,
    summarises TEXT,
    context INTEGER,
    context_window INTEGER,
    model TEXT,
    version TEXT,
    transcript TEXT,
    mode TEXT,
    notice TEXT,
    leaves TEXT,
    message TEXT,
    given TEXT,
    host TEXT,
    denied TEXT
) STRICT;
CREATE INDEX attempts_by_frame ON attempts (frame);
CREATE INDEX attempts_by_session ON attempts (session);
CREATE INDEX attempts_by_source ON attempts (resumed) WHERE resumed IS NOT NULL;
CREATE INDEX summaries ON attempts (frame) WHERE outcome = 'summary';
CREATE UNIQUE INDEX one_running_attempt ON attempts (frame) WHERE ended IS NULL;

-- call: the tool call that it suspends. delivered_in: the attempt that is or was given the result. used_in: the one in which a
-- call ran that a person had allowed once. question: the id of a question that is not open: what an answer refers to.
-- answered: that of one which has an answer. looked: how far the conditions of a wait are; NULL: nobody has looked. filed:
-- whether the files of a posted question say that it is over, or never will.
CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    frame TEXT NOT NULL REFERENCES frames (id),
    attempt TEXT NOT NULL REFERENCES attempts (id),
    kind TEXT NOT NULL GENERATED ALWAYS AS (CASE
        WHEN json_type(detail, '$.spawn') IS NOT NULL THEN 'spawn'
        WHEN json_type(detail, '$.wait') IS NOT NULL THEN 'wait'
        ELSE 'ask' END) STORED,
    child TEXT GENERATED ALWAYS AS (json_extract(detail, '$.spawn.child')) STORED,
    status TEXT NOT NULL GENERATED ALWAYS AS (json_extract(state, '$.state')) STORED,
    delivered_in TEXT GENERATED ALWAYS AS (json_extract(state, '$.attempt')) STORED REFERENCES attempts (id),
    used_in TEXT GENERATED ALWAYS AS (json_extract(state, '$.used_by')) STORED REFERENCES attempts (id),
    question TEXT GENERATED ALWAYS AS (CASE
        WHEN json_type(detail, '$.spawn') IS NULL AND json_type(detail, '$.wait') IS NULL
        AND json_extract(state, '$.state') <> 'open' THEN id END) STORED UNIQUE,
    answered TEXT GENERATED ALWAYS AS (CASE
        WHEN json_type(detail, '$.spawn') IS NULL AND json_type(detail, '$.wait') IS NULL
        AND json_extract(state, '$.state') IN ('resolved', 'delivering', 'delivered') THEN id END) STORED
        REFERENCES answers (question),
    is_background INTEGER NOT NULL GENERATED ALWAYS AS (coalesce(json_extract(detail, '$.spawn.form') = 'background', FALSE)) STORED,
    is_job INTEGER NOT NULL GENERATED ALWAYS AS (json_type(detail, '$.wait.scheduled.by.job') IS NOT NULL) STORED,
    is_native INTEGER NOT NULL GENERATED ALWAYS AS (coalesce(json_type(detail, '$.ask.native') = 'true', FALSE)) STORED,
    is_posted INTEGER NOT NULL GENERATED ALWAYS AS (json_type(detail, '$.ask.posted') IS NOT NULL) STORED,
    posted TEXT GENERATED ALWAYS AS (json_extract(detail, '$.ask.posted.id')) STORED,
    answer_file TEXT GENERATED ALWAYS AS (json_extract(detail, '$.ask.file')) STORED,
    expires TEXT GENERATED ALWAYS AS (json_extract(detail, '$.ask.expires_at')) STORED,
    batch TEXT GENERATED ALWAYS AS (json_extract(detail, '$.ask.batch.id')) STORED,
    made INTEGER NOT NULL,
    state TEXT NOT NULL,
    since INTEGER NOT NULL,
    call TEXT,
    filed INTEGER NOT NULL DEFAULT 0,
    looked TEXT,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX requests_by_frame ON requests (frame);
CREATE INDEX requests_by_attempt ON requests (attempt);
CREATE INDEX requests_by_call ON requests (frame, call) WHERE call IS NOT NULL;
CREATE INDEX requests_by_child ON requests (child) WHERE child IS NOT NULL;
CREATE INDEX open_questions ON requests (frame)
    WHERE kind = 'ask' AND status = 'open';
CREATE INDEX open_questions_in_order ON requests (seq) WHERE kind = 'ask' AND status = 'open';
-- What `resume --all` asks of all chains at once. Files may answer some of the open questions, others expire.
CREATE INDEX open_requests ON requests (frame) WHERE status = 'open';
CREATE INDEX open_waits ON requests (frame) WHERE kind = 'wait' AND status = 'open';
CREATE INDEX posted_questions ON requests (frame) WHERE status = 'open' AND is_posted;
CREATE INDEX questions_in_files ON requests (frame) WHERE status = 'open' AND answer_file IS NOT NULL;
CREATE INDEX expiring_questions ON requests (frame) WHERE status = 'open' AND expires IS NOT NULL;
CREATE INDEX unfiled_questions ON requests (frame)
    WHERE filed = 0 AND status IN ('resolved', 'expired', 'delivering', 'delivered') AND is_posted;
-- What is removed is looked for in every column that refers to it.
CREATE INDEX requests_by_delivery ON requests (delivered_in) WHERE delivered_in IS NOT NULL;
CREATE INDEX requests_by_use ON requests (used_in) WHERE used_in IS NOT NULL;
CREATE INDEX answered_requests ON requests (answered) WHERE answered IS NOT NULL;

-- origin: who gave it.
CREATE TABLE answers (
    question TEXT PRIMARY KEY REFERENCES requests (question) DEFERRABLE INITIALLY DEFERRED,
    answered INTEGER NOT NULL,
    origin TEXT,
    answer TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What a person, an agent above or a timeout wants stopped, a row for each agent. ended: NULL as long as its attempt runs.
CREATE TABLE stops (
    seq INTEGER PRIMARY KEY,
    frame TEXT NOT NULL REFERENCES frames (id),
    asked INTEGER NOT NULL,
    ended INTEGER,
    stop TEXT NOT NULL
) STRICT;
CREATE INDEX stops_by_frame ON stops (frame);
CREATE UNIQUE INDEX one_open_stop ON stops (frame) WHERE ended IS NULL;

-- What agents are told from outside. instructs: whether an agent that was over continues for it; reply is what it then said.
-- delivered_in: the attempt that is or was given it.
CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    frame TEXT NOT NULL REFERENCES frames (id),
    made INTEGER NOT NULL,
    delivered_in TEXT REFERENCES attempts (id),
    instructs INTEGER NOT NULL DEFAULT 0,
    origin TEXT,
    text TEXT NOT NULL,
    reply TEXT
) STRICT;
CREATE INDEX messages_by_frame ON messages (frame);
CREATE INDEX messages_by_delivery ON messages (delivered_in) WHERE delivered_in IS NOT NULL;
CREATE INDEX pending_messages ON messages (frame) WHERE delivered_in IS NULL;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    frame TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent TEXT GENERATED ALWAYS AS (CASE WHEN kind = 'deleted' THEN json_extract(detail, '$.parent') END) STORED,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_frame ON events (frame);
CREATE INDEX deleted_frames ON events (parent) WHERE parent IS NOT NULL;
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events BEGIN
    SELECT RAISE (ABORT, 'the event log is append-only');
END;
-- The log of a frame that is there is append-only. That of a frame that was removed may go.
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM frames WHERE id = OLD.frame) BEGIN
    SELECT RAISE (ABORT, 'the event log is append-only');
END;

CREATE TABLE versions (
    program TEXT PRIMARY KEY,
    modified INTEGER NOT NULL,
    version TEXT NOT NULL,
    refuses_forks INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- The events of which a person wants to be told, a row for each, in order, and the config file that says so.
CREATE TABLE subscription (
    seq INTEGER PRIMARY KEY,
    event TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL
) STRICT;

-- An outbox. subject: of several about one thing the first counts. due: when to send it; of one that is being sent, when it is
-- sent again if nobody says what became of it. claim: whose word about that counts.
CREATE TABLE notifications (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    frame TEXT NOT NULL REFERENCES frames (id) ON DELETE CASCADE,
    event TEXT NOT NULL,
    request TEXT,
    subject TEXT UNIQUE,
    made INTEGER NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    due INTEGER NOT NULL,
    claim TEXT,
    failures INTEGER NOT NULL DEFAULT 0,
    why TEXT,
    ended INTEGER,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX notifications_by_frame ON notifications (frame);
CREATE INDEX pending_notifications ON notifications (due) WHERE status = 'pending';
";
