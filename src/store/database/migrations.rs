//! The tables, as numbered steps. A step that was released is never changed: the next change is another step.

/// Step `n` leads from version `n` to version `n + 1`.
pub(crate) const STEPS: [&str; 15] = [
    FIRST,
    SUSPENDED_CALLS,
    RESUMED_CALLS,
    LIMITS_OF_TREES,
    GROUPS_AND_BASELINES,
    PERMISSIONS,
    REMOVABLE_LOGS,
    DENIED_CALLS,
    ORIGINS,
    REMOVAL_BY_INDEX,
    SHOWN_RESULTS,
    BATCHES_BY_INDEX,
    IDS_OF_ATTEMPTS,
    SITUATIONS,
    ONE_SESSION,
];

// `seq` keeps the order in which rows were made: times may be equal or go backwards. Large texts stand last in their
// row, or in a table of their own, so that reading the rest of a row does not read them. What a request was made for
// (`child`) and the log's `frame` are no references: the child of a withdrawn request is deleted, the log stays.
const FIRST: &str = "
CREATE TABLE frames (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    parent TEXT REFERENCES frames (id),
    root TEXT NOT NULL REFERENCES frames (id),
    depth INTEGER NOT NULL,
    status TEXT NOT NULL,
    state TEXT NOT NULL,
    since INTEGER NOT NULL,
    created INTEGER NOT NULL,
    checkpoint TEXT,
    title TEXT NOT NULL,
    cwd TEXT NOT NULL,
    limits TEXT NOT NULL,
    trouble TEXT,
    launch TEXT NOT NULL,
    task TEXT NOT NULL
) STRICT;
CREATE INDEX frames_by_parent ON frames (parent, id);
CREATE INDEX frames_by_root ON frames (root);

CREATE TABLE replies (
    frame TEXT PRIMARY KEY REFERENCES frames (id),
    reply TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    seq INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE,
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
    version TEXT,
    transcript TEXT,
    message TEXT
) STRICT;
CREATE INDEX attempts_by_frame ON attempts (frame);
CREATE UNIQUE INDEX one_running_attempt ON attempts (frame) WHERE ended IS NULL;

CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    frame TEXT NOT NULL REFERENCES frames (id),
    attempt TEXT NOT NULL REFERENCES attempts (session),
    kind TEXT NOT NULL,
    child TEXT,
    made INTEGER NOT NULL,
    settled INTEGER,
    withdrawn INTEGER,
    carried_by TEXT REFERENCES attempts (session),
    delivered INTEGER,
    wish TEXT NOT NULL
) STRICT;
CREATE INDEX requests_by_frame ON requests (frame);
CREATE INDEX requests_by_attempt ON requests (attempt);
CREATE INDEX requests_by_carrier ON requests (carried_by) WHERE carried_by IS NOT NULL;
CREATE INDEX open_questions ON requests (frame)
    WHERE kind = 'ask' AND settled IS NULL AND withdrawn IS NULL;

CREATE TABLE answers (
    question TEXT PRIMARY KEY REFERENCES requests (id),
    answered INTEGER NOT NULL,
    answer TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    frame TEXT NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_frame ON events (frame);
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events BEGIN
    SELECT RAISE (ABORT, 'the event log is append-only');
END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events BEGIN
    SELECT RAISE (ABORT, 'the event log is append-only');
END;

CREATE TABLE versions (
    program TEXT PRIMARY KEY,
    modified INTEGER NOT NULL,
    version TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// `call` names the tool call that a request suspends, `suspended` the one at which a frame's checkpoint stands.
const SUSPENDED_CALLS: &str = "
ALTER TABLE requests ADD COLUMN call TEXT;
ALTER TABLE frames ADD COLUMN suspended TEXT;
CREATE INDEX requests_by_call ON requests (frame, call) WHERE call IS NOT NULL;
";

/// `to_return` names the request whose result the resumed call of an attempt has still to return.
const RESUMED_CALLS: &str = "
ALTER TABLE attempts ADD COLUMN to_return TEXT;
";

/// The frames that the limits of a tree are about, few in a tree of any size.
const LIMITS_OF_TREES: &str = "
CREATE INDEX running_frames ON frames (root) WHERE status = 'running';
CREATE INDEX usage_limits ON frames (root) WHERE json_extract(state, '$.wait.for') = 'usage_limit';
";

/// A group has no agent. `baseline` is what a frame's first session is a fork of.
const GROUPS_AND_BASELINES: &str = "
ALTER TABLE frames ADD COLUMN is_group INTEGER NOT NULL DEFAULT 0;
ALTER TABLE frames ADD COLUMN baseline TEXT;
";

/// `used_by` is the attempt in which a call ran that a person had allowed once.
const PERMISSIONS: &str = "
ALTER TABLE requests ADD COLUMN used_by TEXT REFERENCES attempts (session);
";

/// `shown_in` is the attempt in which the call returned its result, and the user's hooks had the last word on it.
const SHOWN_RESULTS: &str = "
ALTER TABLE requests ADD COLUMN shown_in TEXT REFERENCES attempts (session);
";

/// The log of a frame that is there is append-only. That of a frame that was removed may go.
const REMOVABLE_LOGS: &str = "
DROP TRIGGER events_are_not_deleted;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
WHEN EXISTS (SELECT 1 FROM frames WHERE id = OLD.frame) BEGIN
    SELECT RAISE (ABORT, 'the event log is append-only');
END;
";

/// `denied` is a list of the calls of an attempt that were denied; NULL: none.
const DENIED_CALLS: &str = "
ALTER TABLE attempts ADD COLUMN denied TEXT;
";

/// `started_from` is the session of Claude Code in which a person's command made a root, `origin` who gave an answer.
const ORIGINS: &str = "
ALTER TABLE frames ADD COLUMN started_from TEXT;
ALTER TABLE answers ADD COLUMN origin TEXT;
";

/// What removal asks of each tree: who else needs it, who works in its worktrees, and which rows go with it.
const REMOVAL_BY_INDEX: &str = "
CREATE INDEX requests_by_child ON requests (child) WHERE child IS NOT NULL;
CREATE INDEX requests_by_use ON requests (used_by) WHERE used_by IS NOT NULL;
CREATE INDEX attempts_by_source ON attempts (resumed) WHERE resumed IS NOT NULL;
CREATE INDEX frames_by_checkpoint ON frames (checkpoint) WHERE checkpoint IS NOT NULL;
CREATE INDEX frames_by_baseline ON frames (CASE WHEN json_valid(baseline) THEN json_extract(baseline, '$.frame') END)
    WHERE baseline IS NOT NULL;
CREATE INDEX unfinished_frames_by_cwd ON frames (cwd) WHERE status <> 'done';
CREATE INDEX deleted_frames ON events (json_extract(detail, '$.parent')) WHERE kind = 'deleted';
";

/// A removed attempt is looked for in every column that refers to attempts.
const BATCHES_BY_INDEX: &str = "
CREATE INDEX requests_by_view ON requests (shown_in) WHERE shown_in IS NOT NULL;
";

/// An attempt was known by its session. What refers to attempts goes with the column.
const IDS_OF_ATTEMPTS: &str = "
ALTER TABLE attempts RENAME COLUMN session TO id;
ALTER TABLE attempts ADD COLUMN session TEXT NOT NULL DEFAULT '';
UPDATE attempts SET session = id;
CREATE INDEX attempts_by_session ON attempts (session);
";

/// `situation` is what an agent has besides its conversation; NULL: nothing. `mode` is the permission mode with which an attempt
/// began, where that is another than that of the launch options, `notice` what its agent is told of what it has no more.
const SITUATIONS: &str = "
ALTER TABLE frames ADD COLUMN situation TEXT;
ALTER TABLE attempts ADD COLUMN mode TEXT;
ALTER TABLE attempts ADD COLUMN notice TEXT;
";

/// `session` is the one that an agent has for life: so far each attempt began another. A session that was adopted and not
/// gone on with stays its user's. `leaves` is a digest of the transcript that an attempt which was not kept has left behind.
const ONE_SESSION: &str = "
ALTER TABLE frames ADD COLUMN session TEXT NOT NULL DEFAULT '';
UPDATE frames SET session = CASE
    WHEN checkpoint IS NULL THEN id
    WHEN EXISTS (SELECT 1 FROM attempts WHERE id = frames.checkpoint) THEN checkpoint
    ELSE lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a'
        || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))
END;
ALTER TABLE attempts ADD COLUMN leaves TEXT;
";
