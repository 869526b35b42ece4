//! What users of a server may do with the chains of a project. The server itself enforces it: policies hide the rows of other
//! projects, and a trigger refuses changes. Neither applies to the owner of the tables.

use std::fmt::Write;

use crate::store::sql::engine::server_address::REFUSED;

/// The tables with rows of chains, and what identifies the chain of a row: any of its frames.
const TABLES: [(&str, &str); 12] = [
    ("chains", "root"),
    ("frames", "root"),
    ("replies", "frame"),
    ("attempts", "frame"),
    ("requests", "frame"),
    ("answers", "(SELECT r.frame FROM agent_cli.requests AS r WHERE r.id = answers.question)"),
    ("stops", "frame"),
    ("messages", "frame"),
    ("events", "frame"),
    ("notifications", "frame"),
    ("copies", "frame"),
    ("objects", "frame"),
];

/// Tables without rows of chains, which their users need in any project.
const SHARED: [&str; 4] = ["hosts", "versions", "subscription", "writes"];

/// project: a directory; a chain belongs to it if it was started there or below. project_of: the directory of a chain whose first agent
/// works in `cwd`: of an agent in its own worktree, that of the repository. The functions run with the rights of the owner, so
/// that they see all rows; the session's user remains the one who has connected. is_limited: whether this user is not the owner.
/// may_in: whether the user has a right in a directory, or, if `anywhere`, in any. may: the same for the chain of a frame. is_new:
/// whether a chain has no agent yet, which only the transaction that records it sees. is_others_host: whether another user has registered a host: what its chains run is not changed from outside,
/// because that would run commands there. may_delete: whether a row of the chain of a frame may be deleted. needed: the right that a
/// change needs; `change` is any but `read`. guard: refuses changes. As a trigger that runs after a change, it sees the new rows.
const RIGHTS: &str = r#"
CREATE TABLE rights (
    role TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    may TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (role, project, may)
);
CREATE FUNCTION agent_cli.is_limited() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT NOT pg_has_role(session_user, current_user, 'USAGE') $$;
CREATE FUNCTION agent_cli.is_own_right(role text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = $1 AND pg_has_role(session_user, oid, 'USAGE')) $$;
CREATE FUNCTION agent_cli.may_in(directory text, wanted text, anywhere boolean) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp COST 500
    AS $$ SELECT NOT agent_cli.is_limited() OR EXISTS (
        SELECT 1 FROM agent_cli.rights AS given WHERE agent_cli.is_own_right(given.role)
          AND (given.may IN ($2, 'start') OR $2 = 'read' OR $2 = 'change' AND given.may <> 'read')
          AND ($3 OR given.project = '/' OR given.project = $1 OR starts_with($1, given.project || '/'))) $$;
CREATE FUNCTION agent_cli.project_of(cwd text, worktree text, repository text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT CASE WHEN starts_with($1 || '/', $2 || '/') THEN regexp_replace($3, '/[.]git$', '') ELSE $1 END $$;
CREATE FUNCTION agent_cli.may(frame text, wanted text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp COST 1000
    AS $$ SELECT agent_cli.may_in((SELECT agent_cli.project_of(top.cwd, top.worktree_path, top.repository) FROM agent_cli.frames AS f JOIN agent_cli.frames AS top ON top.id = f.root
        WHERE f.id = $1), $2, FALSE) $$;
CREATE FUNCTION agent_cli.is_new(root text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT NOT EXISTS (SELECT 1 FROM agent_cli.frames AS f WHERE f.id = $1) $$;
CREATE FUNCTION agent_cli.is_others_host(host text, unless_lost boolean) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT EXISTS (SELECT 1 FROM agent_cli.hosts AS h WHERE h.name = $1 AND h.database_user <> session_user
        AND NOT ($2 AND h.expires <= extract(epoch FROM clock_timestamp()) * 1000)) $$;
CREATE FUNCTION agent_cli.may_delete(frame text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp COST 1000
    AS $$ SELECT agent_cli.may($1, 'start') AND NOT EXISTS (SELECT 1 FROM agent_cli.frames AS f
        JOIN agent_cli.chains AS c ON c.root = f.root WHERE f.id = $1 AND agent_cli.is_others_host(c.host, FALSE)) $$;
CREATE FUNCTION agent_cli.needed(of text, operation text, was jsonb, becomes jsonb, changed text[]) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT CASE
        WHEN of = 'answers' THEN 'answer'
        WHEN of IN ('stops', 'messages') THEN 'steer'
        WHEN of = 'notifications' THEN 'change'
        WHEN of = 'events' AND becomes ->> 'kind' IN ('answered', 'answer_replaced', 'expired') THEN 'answer'
        WHEN of = 'events' AND becomes ->> 'kind' IN ('stopped', 'paused', 'message', 'withdrawn', 'deleted') THEN 'steer'
        WHEN of = 'chains' AND changed <@ ARRAY['name'] THEN 'steer'
        WHEN of = 'requests' AND was ->> 'kind' = 'ask' AND was ->> 'status' IN ('open', 'resolved')
            AND becomes ->> 'status' = 'resolved'
            AND changed <@ ARRAY['state', 'status', 'since', 'question', 'answered'] THEN 'answer'
        -- A stop ends waits, and calls of the agents that are stopped.
        WHEN of = 'requests' AND (becomes ->> 'status' = 'withdrawn'
                OR was ->> 'kind' = 'spawn' AND becomes ->> 'status' = 'resolved')
            AND changed <@ ARRAY['state', 'status', 'since', 'question', 'answered'] THEN 'steer'
        WHEN of = 'frames' AND was ->> 'status' = 'waiting' AND was ->> 'waits_for' = 'requests'
            AND becomes ->> 'status' = 'ready'
            AND changed <@ ARRAY['state', 'status', 'seen_status', 'waits_for', 'since'] THEN 'change'
        WHEN of = 'frames' AND operation = 'UPDATE' AND becomes ->> 'status' IN ('paused', 'cancelled', 'failed')
            AND changed <@ ARRAY['state', 'status', 'seen_status', 'waits_for', 'since'] THEN 'steer'
        -- The reply of a stopped agent is a report.
        WHEN of = 'replies' AND EXISTS (SELECT 1 FROM agent_cli.frames AS f
            JOIN agent_cli.stops AS s ON s.frame = f.id WHERE f.id = becomes ->> 'frame' AND f.status = 'failed') THEN 'steer'
        ELSE 'start' END $$;
CREATE FUNCTION agent_cli.guard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    of text := TG_TABLE_NAME;
    was jsonb;
    becomes jsonb;
    changed text[];
    needed text;
    frame text;
    host text;
    directory text;
    side jsonb;
    touched text[];
    anywhere boolean;
    is_foreign boolean;
BEGIN
    -- Users' own tables could make this run other code of theirs.
    IF TG_TABLE_SCHEMA <> 'agent_cli' THEN
        RAISE EXCEPTION 'only for tables of agent-cli';
    END IF;
    IF NOT agent_cli.is_limited() THEN
        RETURN NULL;
    END IF;
    becomes := to_jsonb(NEW);
    was := CASE TG_OP WHEN 'UPDATE' THEN to_jsonb(OLD) END;
    changed := ARRAY(SELECT n.key FROM jsonb_each(becomes) AS n WHERE n.value IS DISTINCT FROM was -> n.key);
    needed := agent_cli.needed(of, TG_OP, was, becomes, changed);
    anywhere := of IN ('hosts', 'versions', 'subscription') AND NOT (TG_OP = 'UPDATE' AND changed = ARRAY['is_draining']);
    -- What identifies a row stays. Numbers are those that the server gives, so that others can still add rows.
    IF of = 'writes' OR TG_OP = 'UPDATE' AND changed && ARRAY['id', 'seq'] OR of = 'chains' AND TG_OP = 'UPDATE' AND 'root' = ANY (changed)
        OR TG_OP = 'INSERT' AND (becomes ->> 'seq')::bigint > coalesce(pg_sequence_last_value(
            pg_get_serial_sequence(format('agent_cli.%I', of), CASE WHEN becomes ? 'seq' THEN 'seq' END)::regclass), 0) THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', CONSTRAINT = '{REFUSED}', COLUMN = 'start', DETAIL = '',
            MESSAGE = format('%s may not change %s like this', session_user, of);
    END IF;
    FOR side IN SELECT unnest(ARRAY[becomes, was]) LOOP
        CONTINUE WHEN side IS NULL;
        -- The first is the agent that the row is about.
        touched := CASE of
            WHEN 'chains' THEN ARRAY[side ->> 'root']
            WHEN 'frames' THEN ARRAY[side ->> 'root', side ->> 'parent', side ->> 'baseline_frame']
            -- A withdrawn request names an agent that was deleted.
            WHEN 'requests' THEN ARRAY[side ->> 'frame', CASE WHEN side ->> 'status' <> 'withdrawn' THEN side ->> 'child' END]
            WHEN 'answers' THEN ARRAY[(SELECT r.frame FROM agent_cli.requests AS r WHERE r.id = side ->> 'question')]
            -- The log of an agent that was deleted belongs to the agent that has started it.
            WHEN 'events' THEN CASE WHEN side ->> 'kind' = 'deleted'
                THEN ARRAY[side ->> 'parent', (SELECT f.id FROM agent_cli.frames AS f WHERE f.id = side ->> 'frame')]
                ELSE ARRAY[side ->> 'frame'] END
            ELSE ARRAY[side ->> 'frame'] END;
        FOR number IN 1..cardinality(touched) LOOP
            frame := touched[number];
            CONTINUE WHEN frame IS NULL AND number > 1;
            SELECT agent_cli.project_of(top.cwd, top.worktree_path, top.repository), c.host INTO directory, host FROM agent_cli.frames AS f
                JOIN agent_cli.frames AS top ON top.id = f.root LEFT JOIN agent_cli.chains AS c ON c.root = f.root WHERE f.id = frame;
            is_foreign := FALSE;
            IF of = 'frames' AND number = 1 THEN
                -- The root can have changed, or be this row.
                IF side ->> 'root' = side ->> 'id' THEN
                    directory := agent_cli.project_of(side ->> 'cwd', side ->> 'worktree_path', side ->> 'repository');
                END IF;
                host := NULL;
                SELECT c.host INTO host FROM agent_cli.chains AS c WHERE c.root = side ->> 'root';
                is_foreign := NOT FOUND;
            ELSIF of = 'chains' THEN
                host := side ->> 'host';
            ELSIF of = 'versions' THEN
                host := split_part(side ->> 'program', ':', 1);
            ELSIF of = 'hosts' THEN
                host := NULL;
                is_foreign := side ->> 'database_user' <> session_user AND changed <> ARRAY['is_draining'];
            END IF;
            IF needed = 'start' AND (is_foreign OR agent_cli.is_others_host(host, of = 'chains' AND side = was)) THEN
                RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', CONSTRAINT = '{REFUSED}', COLUMN = 'host',
                    DETAIL = coalesce(host, side ->> 'name', ''),
                    MESSAGE = format('%s may not change %s of the host %s', session_user, of, coalesce(host, side ->> 'name', ''));
            END IF;
            -- A chain is recorded before its first agent, which is checked.
            CONTINUE WHEN of = 'chains' AND agent_cli.is_new(frame);
            IF NOT agent_cli.may_in(directory, needed, anywhere) THEN
                RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', CONSTRAINT = '{REFUSED}',
                    COLUMN = CASE needed WHEN 'change' THEN 'answer' ELSE needed END,
                    DETAIL = CASE WHEN agent_cli.may_in(directory, 'read', FALSE) THEN coalesce(directory, '') ELSE '' END,
                    MESSAGE = format('%s may not change %s', session_user, of);
            END IF;
        END LOOP;
    END LOOP;
    RETURN NULL;
END $$;
REVOKE EXECUTE ON FUNCTION agent_cli.guard() FROM PUBLIC;
"#;

/// The statements that create the rights, after all tables.
pub(super) fn statements() -> String {
    let mut sql = RIGHTS.replace("{REFUSED}", REFUSED);
    let mut add = |line: String| writeln!(sql, "{line}").expect("a string takes it");
    let mut protect = |table: &str, seen: &str, deleted: &str| {
        add(format!("ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"));
        add(format!("CREATE POLICY seen ON {table} FOR SELECT USING ({seen});"));
        add(format!("CREATE POLICY added ON {table} FOR INSERT WITH CHECK ({});", table != "writes"));
        add(format!("CREATE POLICY changed ON {table} FOR UPDATE USING ({seen});"));
        add(format!("CREATE POLICY deleted ON {table} FOR DELETE USING ({deleted});"));
        let (when, unless) = match table {
            "writes" => ("UPDATE", "WHEN (NEW.number IS DISTINCT FROM OLD.number + 1) "),
            _ => ("INSERT OR UPDATE", ""),
        };
        add(format!(
            "CREATE TRIGGER guard AFTER {when} ON {table} FOR EACH ROW {unless}EXECUTE FUNCTION agent_cli.guard();"
        ));
    };
    for (table, frame) in TABLES {
        // Only hosts need the sessions.
        let right = if ["copies", "objects"].contains(&table) { "start" } else { "read" };
        let seen = format!("(SELECT agent_cli.may_in(NULL, '{right}', FALSE)) OR agent_cli.may({frame}, '{right}')");
        let seen = if table == "chains" { format!("{seen} OR agent_cli.is_new(root)") } else { seen };
        let mut deleted = format!("agent_cli.may_delete({frame})");
        if table == "frames" {
            // Whoever stops an agent also stops what has not begun.
            deleted += " OR agent_cli.may(root, 'steer') AND NOT EXISTS (SELECT 1 FROM agent_cli.attempts AS a WHERE a.frame = frames.id)";
        }
        let seen = if table == "objects" {
            // Any user who may start chains may delete the objects that a deleted chain has left.
            let left_over = " OR agent_cli.is_new(frame) AND agent_cli.may_in(NULL, 'start', TRUE)";
            deleted += left_over;
            seen + left_over
        } else {
            seen
        };
        protect(table, &seen, &deleted);
    }
    for table in SHARED {
        let deleted = if table == "subscription" { "agent_cli.may_in(NULL, 'start', TRUE)" } else { "FALSE" };
        protect(table, "TRUE", deleted);
    }
    add("ALTER TABLE rights ENABLE ROW LEVEL SECURITY;".to_owned());
    add("CREATE POLICY seen ON rights FOR SELECT USING (agent_cli.is_own_right(role));".to_owned());
    sql
}
