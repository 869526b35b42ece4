//! Users of a PostgreSQL server who may do only some things. Without `AGENT_CLI_TEST_SERVER`, these tests check nothing.

use serde_json::{Value, json};

use crate::gate::wait_until;
use crate::outcome::Outcome;
use crate::postgres;
use crate::repository::git;
use crate::world::World;

/// A host of the owner of a database, and one of another user.
struct Team {
    url: String,
    owner: World,
    user: String,
    other: World,
}

impl Team {
    fn new() -> Option<Self> {
        std::env::var_os("AGENT_CLI_TEST_SERVER")?;
        let url = postgres::new_database();
        let owner = World::with_hooks().with("AGENT_CLI_STORE", &url);
        // Users belong to the server, not to a database.
        let user = format!("bob_{}", url.rsplit('/').next().expect("an address has a database"));
        postgres::execute(&url, &format!("CREATE ROLE {user} LOGIN"));
        let other = World::with_hooks().with("AGENT_CLI_STORE", url.replacen("agent@", &format!("{user}@"), 1));
        owner.run(&["ls"]).succeeds();
        Some(Self { url, owner, user, other })
    }

    fn grant(&self, rights: &[&str]) {
        self.owner.run(&[&["access", "grant", &self.user], rights].concat()).succeeds();
    }

    fn project(&self) -> String {
        self.owner.project().display().to_string()
    }

    /// The other user is refused for lack of a right.
    fn refuses(&self, args: &[&str], action: &str, right: &str) {
        let (user, project) = (&self.user, self.project());
        let refused = self.other.run(args);
        refused.exits_with(2).says(&format!("{user} may not {action} in {project}"));
        let hint = format!("agent-cli access grant {user} {right} --project {project}");
        assert!(refused.stderr.contains(&hint), "{refused}");
    }

    /// Refuses to the other user what `psql` tries.
    fn keeps(&self, sql: &str) {
        let count = || {
            let rows = "SELECT json_agg(f ORDER BY seq), (SELECT count(*) FROM agent_cli.events),
                (SELECT json_agg(a ORDER BY question) FROM agent_cli.answers AS a),
                (SELECT json_agg(c ORDER BY root) FROM agent_cli.chains AS c),
                (SELECT json_agg(h ORDER BY name) FROM agent_cli.hosts AS h) FROM agent_cli.frames AS f";
            postgres::execute_as(&self.url, "agent", rows).expect("the owner sees everything")
        };
        let before = count();
        let tried = postgres::execute_as(&self.url, &self.user, &format!("SET search_path = agent_cli; {sql}"));
        assert_eq!(count(), before, "{sql}: {tried:?}");
    }
}

trait Says {
    /// Checks that standard error contains this text.
    fn says(&self, text: &str);
}

impl Says for Outcome {
    fn says(&self, text: &str) {
        assert!(self.stderr.contains(text), "{self}");
    }
}

fn listed(world: &World) -> Vec<String> {
    let listed = world.run(&["ls", "--all", "--all-projects", "--json"]).succeeds().json();
    listed.as_array().expect("a list").iter().map(|chain| chain["state"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn a_user_without_rights_sees_nothing() {
    let Some(team) = Team::new() else { return };
    team.owner.file("root.md", "ask When?\nreply {result}\n");
    let id = team.owner.spawn_paused("root.md");
    let refused = team.other.run(&["ls"]);
    refused.exits_with(1).says(&format!("{} has no access to the chains in postgres://{0}@", team.user));
    assert!(refused.stderr.contains(&format!("agent-cli access grant {} read --everywhere", team.user)), "{refused}");

    team.owner.run(&["access", "grant", &team.user, "read", "--project", "/elsewhere/"]).succeeds();
    assert_eq!(listed(&team.other), [] as [&str; 0]);
    team.other.run(&["show", &id]).exits_with(3);
    team.other.run(&["answer", &team.owner.question(), "now"]).exits_with(3);
    for table in ["chains", "frames", "attempts", "requests", "events", "answers", "replies", "copies"] {
        let seen = postgres::execute_as(&team.url, &team.user, &format!("SELECT count(*) FROM agent_cli.{table}"));
        assert_eq!(seen.as_deref(), Ok("0"), "{table}");
    }
    team.keeps("UPDATE frames SET title = 'changed'");
    team.keeps("DELETE FROM frames");
    team.keeps("INSERT INTO rights SELECT session_user, '/', 'start'");
    team.keeps("ALTER TABLE frames DISABLE ROW LEVEL SECURITY");
    team.keeps("CREATE FUNCTION agent_cli.is_limited(x int) RETURNS boolean LANGUAGE sql AS 'SELECT FALSE'");
    assert_eq!(listed(&team.owner), ["asks"]);
}

#[test]
fn whoever_reads_changes_nothing() {
    let Some(team) = Team::new() else { return };
    team.owner.file("root.md", "ask When?\nreply {result}\n");
    let id = team.owner.spawn_paused("root.md");
    let question = team.owner.question();
    team.grant(&["read"]);
    assert_eq!(listed(&team.other), ["asks"]);
    for command in ["tree", "show", "questions", "logs"] {
        team.other.run(&[command, &id]).succeeds();
    }
    for command in ["ls", "history", "stats", "hosts", "fsck", "access"] {
        team.other.run(&[command]).succeeds();
    }
    team.other.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
    team.other.run(&["resume", "--all"]).succeeds();
    team.other.run(&["gc", "--older-than", "0s"]).succeeds();
    team.refuses(&["answer", &question, "now"], "answer questions", "answer");
    team.refuses(&["stop", &id], "steer chains", "steer");
    team.refuses(&["pause", &id], "steer chains", "steer");
    team.refuses(&["tell", &id, "hurry"], "steer chains", "steer");
    team.keeps("UPDATE frames SET title = 'changed'");
    team.keeps("DELETE FROM frames");
    team.keeps("DELETE FROM events");
    team.keeps(&format!(
        "INSERT INTO answers SELECT id, 1, NULL, 'now' FROM requests; UPDATE requests SET state = '{}'",
        json!({"state": "resolved"})
    ));
    assert_eq!(
        postgres::execute_as(&team.url, &team.user, "SELECT count(*) FROM agent_cli.copies").as_deref(),
        Ok("0")
    );
    let refused = team.other.run(&["access", "grant", &team.user, "start", "--everywhere"]);
    refused.exits_with(2).says("only agent, who owns the database, can change rights");
    assert_eq!(listed(&team.owner), ["asks"]);
}

#[test]
fn whoever_answers_does_not_steer() {
    let Some(team) = Team::new() else { return };
    team.owner.file("root.md", "ask When?\nreply {result}\n");
    let id = team.owner.spawn_paused("root.md");
    team.grant(&["answer"]);
    team.refuses(&["stop", &id], "steer chains", "steer");
    let question = team.owner.question();
    team.other.answer("soon");
    team.other.run(&["answer", "--replace", &question, "tomorrow"]).succeeds();
    let record = team.owner.run(&["history", "--all-projects", "--json"]).json()[0]["records"][1].clone();
    assert_eq!((&record["answer"], &record["by"]["host"]["database_user"]), (&json!("tomorrow"), &json!(team.user)));
    team.keeps(&format!("UPDATE frames SET state = '{}'", json!({"state": "paused"})));
    team.keeps(&format!("UPDATE frames SET state = '{}'", json!({"state": "done"})));
    team.keeps("UPDATE frames SET launch = '{}'");
    team.refuses(&["tell", &id, "hurry"], "steer chains", "steer");
    assert!(team.owner.run(&["resume", "--all"]).succeeds().stdout.ends_with("done: tomorrow\n"));
}

#[test]
fn whoever_steers_does_not_answer_or_start() {
    let Some(team) = Team::new() else { return };
    team.owner.file("root.md", "spawn child.md\nreply {result}\n");
    team.owner.file("child.md", "ask When?\nreply {result}\n");
    let id = team.owner.spawn_paused("root.md");
    let question = team.owner.question();
    team.grant(&["steer"]);
    team.refuses(&["answer", &question, "now"], "answer questions", "answer");
    team.other.run(&["tell", &id, "hurry"]).succeeds();
    team.other.run(&["pause", &id]).succeeds();
    assert_eq!(listed(&team.owner), ["paused"]);
    team.keeps("UPDATE frames SET launch = '{}'");
    team.keeps("UPDATE frames SET task = replace(task, 'root', 'other')");
    team.keeps("DELETE FROM frames");
    team.other.file("more.md", "reply more\n");
    let refused = team.other.run(&["spawn", "more.md"]);
    refused.exits_with(2).says(&format!("{} may not start, continue or remove chains", team.user));
    assert_eq!(team.other.starts(), 0);
    team.other.run(&["stop", &id]).succeeds();
    assert_eq!(listed(&team.owner), ["stopped"]);
    let refused = team.other.run(&["rm", &id, "--yes"]);
    refused.exits_with(1);
    assert_eq!(listed(&team.owner), ["stopped"]);
    team.owner.run(&["fsck"]).succeeds();
}

#[test]
fn whoever_starts_in_a_project_does_everything_there() {
    let Some(team) = Team::new() else { return };
    let project = team.other.project().display().to_string();
    team.owner.run(&["access", "grant", &team.user, "start", "--project", &project]).succeeds();
    team.owner.file("root.md", "ask When?\nreply {result}\n");
    team.owner.spawn_paused("root.md");
    team.owner.file("free.md", "reply free\n");
    team.owner.run(&["spawn", "free.md", "--on", "any"]).succeeds();

    team.other.file("root.md", "spawn child.md\nreply {result}\n");
    team.other.file("child.md", "ask Why?\nreply {result}\n");
    let id = team.other.spawn_paused("root.md");
    assert_eq!(listed(&team.other), ["asks"], "it does not see the chains of other projects");
    team.other.answer("because");
    let watch = team.other.command(["watch"]).start();
    wait_until("it is done", || listed(&team.other) == ["done"]);
    watch.signal(rustix::process::Signal::TERM);
    watch.ends();
    assert_eq!(team.owner.run(&["show", &id, "--reply"]).stdout.trim(), "because");
    // Neither is what may be taken from other projects.
    team.other.run(&["resume", "--all"]).succeeds();
    let host = std::fs::read_to_string(team.owner.state().join("host")).expect("it has a name");
    let here = std::fs::read_to_string(team.other.state().join("host")).expect("it has a name");
    let admins = format!("admins_of_{}", team.user);
    postgres::execute(&team.url, &format!("CREATE ROLE {admins}"));
    team.owner.run(&["access", "grant", &admins, "start", "--everywhere"]).succeeds();
    for sql in [
        format!("UPDATE frames SET root = '{id}', parent = '{id}' WHERE root <> '{id}'"),
        format!("UPDATE frames SET parent = (SELECT f.id FROM frames AS f WHERE f.root <> '{id}') WHERE id = '{id}'"),
        format!("UPDATE hosts SET is_draining = TRUE WHERE name = '{}'", here.trim()),
        format!("UPDATE hosts SET expires = 0 WHERE name = '{}'", host.trim()),
        format!("UPDATE chains SET host = '{}' WHERE root = '{id}'", host.trim()),
        // Nobody poses as another role by tables that hide those of the server.
        format!(
            "CREATE TEMP TABLE pg_roles AS SELECT '{admins}'::text AS rolname, oid FROM pg_catalog.pg_roles
             WHERE rolname = session_user; GRANT SELECT ON pg_roles TO PUBLIC; UPDATE frames SET title = 'x' WHERE title = 'free.md'"
        ),
    ] {
        team.keeps(&sql);
    }
    let mut states = listed(&team.owner);
    states.sort();
    assert_eq!(states, ["asks", "can_continue", "done"]);
    team.other.run(&["rm", &id, "--yes"]).succeeds();
    assert_eq!(listed(&team.other), [] as [&str; 0]);
    team.other.run(&["gc", "--older-than", "0s"]).succeeds();
    team.other.run(&["fsck"]).succeeds();
    team.owner.run(&["fsck"]).succeeds();
}

#[test]
fn whoever_starts_everywhere_moves_and_imports_chains() {
    let Some(team) = Team::new() else { return };
    team.owner.file("root.md", "ask When?\nreply {result}\n");
    let others = team.owner.spawn_paused("root.md");
    team.owner.run(&["access", "grant", &team.user, "start", "--everywhere"]).succeeds();
    let address = team.url.replacen("agent@", &format!("{}@", team.user), 1);
    let mover = World::with_hooks().without("AGENT_CLI_STORE");
    mover.file("root.md", "spawn child.md\nreply {result}\n");
    mover.file("child.md", "ask Why?\nreply {result}\n");
    let [moved, exported] = [(); 2].map(|()| mover.spawn_paused("root.md"));
    let archive = mover.project().join("chain.tar");
    mover.run(&["export", &exported, "-o", archive.to_str().unwrap()]).succeeds();
    mover.run(&["rm", &exported, "--yes"]).succeeds();
    assert_eq!(mover.run(&["move", "--to", &address, "--json"]).succeeds().json()["chains"], 1);
    mover.run(&["import", archive.to_str().unwrap(), "--trust"]).succeeds();
    for (id, answer) in [(&moved, "because"), (&exported, "again")] {
        let question = mover.run(&["questions", id, "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
        mover.run(&["answer", &question, answer]).succeeds();
        mover.run(&["resume", id]).prints(answer);
    }
    let host = std::fs::read_to_string(team.owner.state().join("host")).expect("it has a name");
    postgres::execute(&team.url, "UPDATE agent_cli.hosts SET expires = 0");
    let refused = mover.run(&["hosts", "forget", host.trim(), "--yes"]);
    refused.exits_with(2).says("only agent, who owns the database, can forget a host");
    team.owner.run(&["show", &others]).succeeds();
}

#[test]
fn rights_are_listed_given_and_taken_away() {
    let Some(team) = Team::new() else { return };
    let (user, project) = (team.user.as_str(), team.project());
    let access = |args: &[&str]| team.owner.run(&[&["access"], args].concat());
    access(&["grant", "nobody_here", "read"]).exits_with(2).says("the server has no user nobody_here");
    access(&["grant", user, "write"]).exits_with(2).says("\"write\" is not a right");
    access(&["grant", user, "answer", "steer"]).says(&format!("{user} may answer, steer in {project}"));
    access(&["grant", user, "read", "--everywhere"]).succeeds();
    let of = |project: Option<&str>, rights: &[&str]| json!({"user": user, "project": project, "rights": rights});
    let both = json!([of(None, &["read"]), of(Some(&project), &["answer", "steer"])]);
    assert_eq!(access(&["--json"]).json(), both);
    assert_eq!(team.other.run(&["access", "--json"]).json(), both);
    assert!(access(&[]).succeeds().stdout.starts_with("USER "));
    // A member of a group has its rights.
    let member = format!("m_{user}");
    postgres::execute(&team.url, &format!("CREATE ROLE {member} LOGIN IN ROLE {user}"));
    let seen = postgres::execute_as(&team.url, &member, "SELECT count(*) FROM agent_cli.rights");
    assert_eq!(seen.as_deref(), Ok("3"));

    access(&["revoke", user, "start"]).exits_with(2).says(&format!("{user} has no such rights in {project}"));
    let left = access(&["revoke", user, "steer", "--json"]).json();
    assert_eq!(left, json!([of(None, &["read"]), of(Some(&project), &["answer"])]));
    access(&["revoke", user, "--everywhere"]).says(&format!("{user} has no rights"));
    assert_eq!(access(&["--json"]).json(), Value::Array(Vec::new()));
    team.other.run(&["ls"]).exits_with(1).says("has no access to the chains");
}

#[test]
fn a_file_has_no_users() {
    if std::env::var_os("AGENT_CLI_TEST_SERVER").is_none() {
        let refused = World::with_hooks().run(&["access"]);
        refused.exits_with(2).says("the chains are recorded in a file");
    }
}

#[test]
fn a_host_runs_nothing_that_another_user_has_put_there() {
    let Some(team) = Team::new() else { return };
    team.owner.file("root.md", "ask When?\nreply {result}\n");
    let id = team.owner.spawn_paused("root.md");
    team.grant(&["start"]);
    for sql in [
        "UPDATE frames SET launch = replace(launch, 'claude', 'evil')",
        "UPDATE frames SET task = replace(task, 'root', 'other'), cwd = '/'",
        "UPDATE requests SET detail = '{}'",
        "UPDATE attempts SET resumed = NULL, waited = 'x'",
    ] {
        team.keeps(sql);
    }
    let changed = "UPDATE agent_cli.frames SET launch = '{}'";
    let error = postgres::execute_as(&team.url, &team.user, changed).expect_err("it is refused");
    assert!(error.contains(&format!("{} may not change frames of the host", team.user)), "{error}");
    // What nobody runs yet may be changed, and taken.
    team.other.file("free.md", "reply free\n");
    let there = team.other.project().display().to_string();
    team.owner.run(&["access", "grant", &team.user, "start", "--project", &there]).succeeds();
    team.other.run(&["spawn", "free.md", "--on", "any"]).succeeds();
    let host = postgres::execute_as(&team.url, &team.user, "SELECT count(*) FROM agent_cli.chains WHERE host IS NULL");
    assert_eq!(host.as_deref(), Ok("1"));
    team.other.run(&["resume", "--all"]).succeeds();
    let mut states = listed(&team.other);
    states.sort();
    assert_eq!(states, ["asks", "done"]);
    team.other.answer("now");
    team.owner.run(&["resume", &id]).succeeds();
    assert_eq!(listed(&team.owner), ["done", "done"]);
}

#[test]
fn hostile_users_gain_nothing() {
    let Some(team) = Team::new() else { return };
    team.owner.file("root.md", "ask When?\nreply {result}\n");
    let there = team.owner.spawn_paused("root.md");
    team.other.file("root.md", "ask Why?\nreply {result}\n");
    let (user, project) = (&team.user, team.other.project().display().to_string());
    let grant =
        |right: &str| team.owner.run(&["access", "grant", user, right, "--project", &project]).succeeds().code();
    grant("start");
    let own = team.other.spawn_paused("root.md");
    team.grant(&["start"]);
    let host = std::fs::read_to_string(team.owner.state().join("host")).expect("it has a name");
    let host = host.trim();
    let columns = "id, parent, root, depth, state, since, created, session, title, cwd, launch, task";
    let copied = |id: &str, parent: &str, root: &str| {
        format!("INSERT INTO frames ({columns}) SELECT '{id}', {parent}, '{root}', 1, state, since, created, session, title, cwd,
            replace(launch, 'claude', 'evil'), task FROM frames WHERE id = '{own}'")
    };
    // With the right to start, nothing runs on a host of another user.
    for sql in [
        format!("UPDATE frames SET root = '{own}' WHERE id = '{there}'"),
        format!("INSERT INTO chains (root, limits, host) VALUES ('x', '{{}}', '{host}')"),
        format!("INSERT INTO chains (root, limits) VALUES ('x', '{{}}'); {}", copied("y", "NULL", &there)),
        format!(
            "BEGIN; SET CONSTRAINTS ALL DEFERRED; UPDATE chains SET root = 'junk', host = NULL WHERE root = '{there}';
             UPDATE frames SET launch = '{{}}' WHERE id = '{there}'; INSERT INTO chains (root, limits) VALUES ('{there}', '{{}}');
             {}; COMMIT", copied("junk", "NULL", "junk")
        ),
        format!("DELETE FROM copies WHERE frame = '{there}'; DELETE FROM requests WHERE frame = '{there}'"),
        format!("INSERT INTO versions (program, modified, version) VALUES ('{host}:/bin/claude', 1, '1')"),
    ] {
        team.keeps(&sql);
        let kept = postgres::execute_as(&team.url, "agent", "SELECT (SELECT count(*) FROM agent_cli.copies),
            (SELECT count(*) FROM agent_cli.requests), (SELECT count(*) FROM agent_cli.versions WHERE version = '1')");
        assert!(kept.is_ok_and(|kept| !kept.starts_with("0|") && kept.ends_with("|2|0")), "{sql}");
    }
    // Nobody runs code with the rights of the owner, stops all others, or hides what happened.
    team.owner.run(&["access", "revoke", user, "--everywhere"]).succeeds();
    team.grant(&["answer", "steer"]);
    for sql in [
        "CREATE TYPE pg_temp.e AS ENUM ('a');
         CREATE FUNCTION pg_temp.f(pg_temp.e) RETURNS json LANGUAGE plpgsql AS $$ BEGIN
           INSERT INTO agent_cli.rights SELECT session_user, '/', 'start'; RETURN '1'; END $$;
         CREATE CAST (pg_temp.e AS json) WITH FUNCTION pg_temp.f(pg_temp.e);
         CREATE TEMP TABLE hosts (name text, database_user text, x pg_temp.e);
         CREATE TRIGGER g AFTER INSERT ON pg_temp.hosts FOR EACH ROW EXECUTE FUNCTION agent_cli.guard();
         INSERT INTO pg_temp.hosts VALUES ('z', session_user, 'a')",
        "UPDATE writes SET number = 9223372036854775807",
        "INSERT INTO writes VALUES (1)",
        "INSERT INTO events (seq, at, frame, kind, detail) SELECT 1000000, 1, id, 'answered', '{}' FROM frames",
        "UPDATE events SET seq = seq + 1000",
        "INSERT INTO events (at, frame, kind, detail) SELECT 1, 'x', 'deleted', '{}'",
        "UPDATE frames SET outcome = '{\"state\": \"done\"}'",
        "INSERT INTO replies SELECT id, 'forged' FROM frames",
        "UPDATE requests SET state = '{\"state\": \"delivered\", \"attempt\": \"x\"}'",
        "DELETE FROM subscription; INSERT INTO subscription (event, config) VALUES ('done', '/c')",
    ] {
        let tried = postgres::execute_as(&team.url, user, &format!("SET search_path = agent_cli; {sql}"));
        assert!(tried.is_err(), "{sql}: {tried:?}");
        team.keeps(sql);
    }
    let foreign = postgres::execute_as(
        &team.url,
        user,
        &format!("INSERT INTO agent_cli.stops (frame, asked, stop) VALUES ('{own}', 1, '')"),
    );
    assert!(foreign.as_ref().is_err_and(|error| !error.contains(&project)), "{foreign:?}");
    assert_eq!(team.owner.run(&["access", "--json"]).json().as_array().map(Vec::len), Some(1));
    let admins = format!("admins_of_{user}");
    postgres::execute(&team.url, &format!("CREATE ROLE {admins} LOGIN; GRANT {admins} TO {user}"));
    team.owner.run(&["access", "grant", &admins, "start", "--everywhere"]).succeeds();
    team.other.run(&["hosts", "drain", host]).succeeds();
    team.owner.run(&["hosts", "undrain", host]).succeeds();
    team.owner.answer_to("When?", "now");
    assert!(team.owner.run(&["resume", &there]).succeeds().stdout.contains("now"));
    team.owner.run(&["fsck"]).succeeds();
}

#[test]
fn a_chain_in_a_worktree_belongs_to_the_project_of_its_repository() {
    let Some(team) = Team::new() else { return };
    team.owner.file("root.md", "ask When?\nreply {result}\n");
    let project = team.owner.project();
    for arguments in ["init -q -b main", "add .", "-c user.name=a -c user.email=a commit -q -m files"] {
        git(&project, arguments);
    }
    let id = team.owner.run(&["spawn", "root.md", "--worktree"]).started();
    team.grant(&["answer", "--project", "/elsewhere"]);
    assert_eq!(listed(&team.other), [""; 0]);
    team.grant(&["answer", "--project", &team.project()]);
    assert_eq!(listed(&team.other), ["asks"]);
    team.refuses(&["stop", &id], "steer chains", "steer");
    team.other.answer("tomorrow");
    team.owner.run(&["resume", &id]).prints("tomorrow");
    // A row that only says that it is in a worktree.
    let state = team.owner.state().display().to_string();
    team.grant(&["start", "--project", &team.project()]);
    team.keeps(&format!(
        "INSERT INTO frames (id, root, depth, state, since, created, session, title, cwd, launch, task)
         SELECT id || 'x', root, depth, state, since, created, session, title, '/elsewhere', launch, task FROM frames WHERE cwd LIKE '{state}%'"
    ));
}
