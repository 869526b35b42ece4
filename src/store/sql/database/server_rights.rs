//! What users of a server may do with the chains of a project. The server itself enforces it: policies hide the rows of other
//! projects, and a trigger refuses changes. Neither applies to the owner of the tables.

use std::fmt::Write;

use crate::store::sql::engine::server_address::REFUSED;

/// The tables with rows of chains, and what identifies the chain of a row: any of its frames.
const TABLES: [(&str, &str); 11] = [
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
];

/// Tables without rows of chains, which their users need in any project.
const SHARED: [&str; 4] = ["hosts", "versions", "subscription", "writes"];

/// project: a directory; a chain belongs to it if it was started there or below. The functions run with the rights of the owner, so
/// that they see all rows; the session's user remains the one who has connected. is_limited: whether this user is not the owner.
/// may_in: whether the user has a right in a directory, or anywhere if the directory is NULL and `anywhere` is TRUE. may: the same
/// for the chain of a frame. is_new: whether a chain has no agent yet, which only the transaction that
/// records it sees. is_others_host: whether another user has registered a host: what its chains run is not changed from outside,
/// because that would run commands there. guard: refuses changes. As a trigger that runs after a change, it sees the new rows.
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
CREATE FUNCTION agent_cli.may(frame text, wanted text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp COST 1000
    AS $$ SELECT agent_cli.may_in((SELECT top.cwd FROM agent_cli.frames AS f JOIN agent_cli.frames AS top ON top.id = f.root
        WHERE f.id = $1), $2, FALSE) $$;
CREATE FUNCTION agent_cli.is_new(root text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT NOT EXISTS (SELECT 1 FROM agent_cli.frames AS f WHERE f.id = $1) $$;
CREATE FUNCTION agent_cli.is_others_host(host text, unless_lost boolean) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT EXISTS (SELECT 1 FROM agent_cli.hosts AS h WHERE h.name = $1 AND h.database_user <> session_user
        AND NOT ($2 AND h.expires <= extract(epoch FROM clock_timestamp()) * 1000)) $$;
CREATE FUNCTION agent_cli.guard() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
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
BEGIN
    IF NOT agent_cli.is_limited() THEN
        RETURN NULL;
    END IF;
    becomes := to_jsonb(NEW);
    was := CASE TG_OP WHEN 'UPDATE' THEN to_jsonb(OLD) END;
    changed := ARRAY(SELECT n.key FROM jsonb_each(becomes) AS n WHERE n.value IS DISTINCT FROM was -> n.key);
    -- A chain is recorded before its first agent, which is checked together with the host of the chain.
    IF TG_TABLE_NAME = 'chains' AND agent_cli.is_new(becomes ->> 'root') THEN
        RETURN NULL;
    END IF;
    needed := CASE
        WHEN TG_TABLE_NAME = 'answers' THEN 'answer'
        WHEN TG_TABLE_NAME IN ('stops', 'messages') THEN 'steer'
        WHEN TG_TABLE_NAME IN ('notifications', 'subscription') THEN 'change'
        WHEN TG_TABLE_NAME = 'events' THEN CASE
            WHEN becomes ->> 'kind' IN ('answered', 'answer_replaced', 'expired') THEN 'answer'
            WHEN becomes ->> 'kind' IN ('stopped', 'paused', 'continued', 'tried_again', 'instructed', 'message', 'withdrawn',
                'deleted', 'name_lost') THEN 'steer'
            ELSE 'start' END
        WHEN TG_TABLE_NAME = 'chains' AND changed <@ ARRAY['name'] THEN 'steer'
        WHEN TG_TABLE_NAME = 'requests' AND was ->> 'kind' = 'ask' AND becomes ->> 'status' = 'resolved'
            AND changed <@ ARRAY['state', 'status', 'since', 'question', 'answered'] THEN 'answer'
        -- A stop ends waits, and calls of the agents that are stopped.
        WHEN TG_TABLE_NAME = 'requests' AND (becomes ->> 'status' = 'withdrawn'
                OR was ->> 'kind' = 'spawn' AND becomes ->> 'status' = 'resolved')
            AND changed <@ ARRAY['state', 'status', 'since', 'question', 'answered'] THEN 'steer'
        WHEN TG_TABLE_NAME = 'frames' AND was ->> 'status' = 'waiting' AND becomes ->> 'status' = 'ready'
            AND changed <@ ARRAY['state', 'status', 'seen_status', 'waits_for', 'since'] THEN 'change'
        WHEN TG_TABLE_NAME = 'frames' AND TG_OP = 'UPDATE' AND becomes ->> 'status' IN ('ready', 'waiting', 'paused', 'cancelled', 'failed')
            AND changed <@ ARRAY['state', 'status', 'seen_status', 'waits_for', 'since', 'outcome', 'afresh', 'wants_summary']
            THEN 'steer'
        -- The reply of a stopped agent is a report.
        WHEN TG_TABLE_NAME = 'replies' AND EXISTS (SELECT 1 FROM agent_cli.frames AS f
            WHERE f.id = becomes ->> 'frame' AND f.status = 'failed') THEN 'steer'
        ELSE 'start' END;
    anywhere := TG_TABLE_NAME IN ('hosts', 'versions', 'subscription')
        AND NOT (TG_TABLE_NAME = 'hosts' AND TG_OP = 'UPDATE' AND 'is_draining' = ANY (changed));
    FOR side IN SELECT unnest(ARRAY[becomes, was]) LOOP
        CONTINUE WHEN side IS NULL;
        touched := CASE TG_TABLE_NAME
            WHEN 'chains' THEN ARRAY[side ->> 'root']
            WHEN 'frames' THEN ARRAY[side ->> 'root', side ->> 'parent', side ->> 'baseline_frame']
            WHEN 'requests' THEN ARRAY[side ->> 'frame', side ->> 'child']
            WHEN 'answers' THEN ARRAY(SELECT r.frame FROM agent_cli.requests AS r WHERE r.id = side ->> 'question')
            -- The log of an agent that was deleted belongs to the agent that has started it.
            WHEN 'events' THEN ARRAY[coalesce(side ->> 'parent', side ->> 'frame')]
            ELSE ARRAY[side ->> 'frame'] END;
        FOREACH frame IN ARRAY touched LOOP
            -- A withdrawn request names an agent that was deleted.
            CONTINUE WHEN frame IS NULL AND (frame IS DISTINCT FROM touched[1] OR cardinality(touched) > 1)
                OR TG_TABLE_NAME = 'requests' AND frame = side ->> 'child' AND side ->> 'status' = 'withdrawn';
            SELECT top.cwd, c.host INTO directory, host FROM agent_cli.frames AS f
                JOIN agent_cli.frames AS top ON top.id = f.root LEFT JOIN agent_cli.chains AS c ON c.root = f.root WHERE f.id = frame;
            IF TG_TABLE_NAME = 'frames' AND side ->> 'root' = side ->> 'id' AND frame = side ->> 'id' THEN
                directory := side ->> 'cwd';
            END IF;
            IF NOT agent_cli.may_in(directory, needed, anywhere) THEN
                RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', CONSTRAINT = '{REFUSED}',
                    COLUMN = CASE needed WHEN 'change' THEN 'answer' ELSE needed END, DETAIL = coalesce(directory, ''),
                    MESSAGE = format('%s may not change %s', session_user, TG_TABLE_NAME);
            END IF;
            host := CASE TG_TABLE_NAME WHEN 'chains' THEN side ->> 'host' WHEN 'hosts' THEN side ->> 'name' ELSE host END;
            IF TG_TABLE_NAME = 'hosts' AND side ->> 'database_user' <> session_user
                OR TG_TABLE_NAME <> 'hosts' AND needed = 'start'
                    AND agent_cli.is_others_host(host, TG_TABLE_NAME = 'chains' AND side = was) THEN
                RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', CONSTRAINT = '{REFUSED}', COLUMN = 'host', DETAIL = host,
                    MESSAGE = format('%s may not change %s of the host %s', session_user, TG_TABLE_NAME, host);
            END IF;
        END LOOP;
    END LOOP;
    RETURN NULL;
END $$;
"#;

/// The statements that create the rights, after all tables.
pub(super) fn statements() -> String {
    let mut sql = RIGHTS.replace("{REFUSED}", REFUSED);
    let mut add = |line: String| writeln!(sql, "{line}").expect("a string takes it");
    let mut protect = |table: &str, seen: &str, deleted: &str| {
        add(format!("ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"));
        add(format!("CREATE POLICY seen ON {table} FOR SELECT USING ({seen});"));
        add(format!("CREATE POLICY added ON {table} FOR INSERT WITH CHECK (TRUE);"));
        add(format!("CREATE POLICY changed ON {table} FOR UPDATE USING ({seen});"));
        add(format!("CREATE POLICY deleted ON {table} FOR DELETE USING ({deleted});"));
        if table != "writes" {
            add(format!(
                "CREATE TRIGGER guard AFTER INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION agent_cli.guard();"
            ));
        }
    };
    for (table, frame) in TABLES {
        // Only hosts need the sessions.
        let right = if table == "copies" { "start" } else { "read" };
        let all = |right: &str| format!("(SELECT agent_cli.may_in(NULL, '{right}', FALSE))");
        let seen = format!("{} OR agent_cli.may({frame}, '{right}')", all(right));
        let seen = if table == "chains" { format!("{seen} OR agent_cli.is_new(root)") } else { seen };
        let mut deleted = format!("{} OR agent_cli.may({frame}, 'start')", all("start"));
        if table == "frames" {
            // Whoever stops an agent also stops what has not begun.
            deleted += " OR agent_cli.may(root, 'steer') AND NOT EXISTS (SELECT 1 FROM agent_cli.attempts AS a WHERE a.frame = frames.id)";
        }
        protect(table, &seen, &deleted);
    }
    for table in SHARED {
        let deleted = if table == "subscription" { "agent_cli.may_in(NULL, 'change', TRUE)" } else { "FALSE" };
        protect(table, "TRUE", deleted);
    }
    add("ALTER TABLE rights ENABLE ROW LEVEL SECURITY;".to_owned());
    add("CREATE POLICY seen ON rights FOR SELECT USING (agent_cli.is_own_right(role));".to_owned());
    sql
}
