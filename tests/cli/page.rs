//! The page, without a browser: what is let in, what is shown, and what can be done.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use crate::gate::{PATIENCE, wait_until};
use crate::invocation::Invocation;
use crate::world::World;

/// A server of the page.
pub(crate) struct Served {
    process: Child,
    output: BufReader<ChildStdout>,
    /// The next link with which a browser can log in.
    pub(crate) link: String,
    pub(crate) port: u16,
}

/// A response, without its connection.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Served {
    pub(crate) fn start(world: &World, options: &[&str]) -> Self {
        Self::at(world, "127.0.0.1:0", options)
    }

    pub(crate) fn at(world: &World, address: &str, options: &[&str]) -> Self {
        let mut command = world.command(["serve", "--listen", address].iter().chain(options)).into_command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the program can be started");
        let output = BufReader::new(process.stdout.take().expect("it has one"));
        let mut served = Self { process, output, link: String::new(), port: 0 };
        served.next_link();
        served
    }

    pub(crate) fn next_link(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it prints a link");
        let link = line.trim().to_owned();
        let rest = link.strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("no link: {line}"));
        let (port, path) = rest.split_once('/').expect("a path");
        (self.port, self.link) = (port.parse().expect("a port"), format!("/{path}"));
    }

    /// The address of a path.
    pub(crate) fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Sends exactly this, and returns the connection.
    fn sent(&self, text: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // It may have closed the connection already.
        let _ = stream.write_all(text);
        stream
    }

    fn raw(&self, text: &[u8]) -> Answer {
        Answer::read(self.sent(text))
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.raw(self.head(method, path, headers, body).as_bytes())
    }

    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        if headers.iter().all(|(name, _)| *name != "host") {
            text += &format!("host: 127.0.0.1:{}\r\n", self.port);
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text + "\r\n" + body
    }

    /// Logs a browser in.
    fn browser(&mut self) -> Browser {
        let answer = self.request("GET", &self.link.clone(), &[], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").expect("a cookie");
        for must in ["HttpOnly", "SameSite=Strict", "Path=/", &format!("agent-cli-{}=", self.port)] {
            assert!(cookie.contains(must), "{cookie}");
        }
        self.next_link();
        Browser { cookie: cookie.split(';').next().unwrap().to_owned() }
    }

    pub(crate) fn stop(mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.process.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert!(self.process.wait().expect("it ends").success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Answer {
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { status: status.unwrap_or(0), headers: lines.filter_map(header).collect(), body: body.to_owned() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// A browser that has logged in.
struct Browser {
    cookie: String,
}

impl Browser {
    fn get(&self, served: &Served, path: &str) -> Answer {
        served.request("GET", path, &[("cookie", &self.cookie)], "")
    }

    fn page(&self, served: &Served, path: &str) -> String {
        let answer = self.get(served, path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.body
    }

    /// Sends a form as the page does.
    fn post(&self, served: &Served, path: &str, fields: &[(&str, &str)]) -> Answer {
        let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let body: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let headers = [
            ("cookie", self.cookie.as_str()),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/x-www-form-urlencoded"),
            ("user-agent", "Test/7 <b>"),
        ];
        served.request("POST", path, &headers, &body.join("&"))
    }

    fn follow(&self, served: &Served, of: &str, last: Option<&str>) -> Events {
        let mut headers = vec![("cookie", self.cookie.as_str()), ("accept", "text/event-stream")];
        headers.extend(last.map(|last| ("last-event-id", last)));
        let stream = served.sent(served.head("GET", &format!("/live?of={of}"), &headers, "").as_bytes());
        let mut lines = BufReader::new(stream);
        let mut status = String::new();
        lines.read_line(&mut status).unwrap();
        assert!(status.contains(" 200 "), "{status}");
        Events { lines }
    }
}

/// What a stream of events sends.
struct Events {
    lines: BufReader<TcpStream>,
}

#[derive(Debug)]
struct Sent {
    id: Option<String>,
    data: String,
}

impl Events {
    /// The next event with data in it.
    fn next(&mut self) -> Sent {
        let mut fields: HashMap<String, String> = HashMap::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).expect("an event"), 0, "the stream has ended");
            match line.trim_end().split_once(": ") {
                Some((name, value)) => drop(fields.insert(name.to_owned(), value.to_owned())),
                None if line.trim().is_empty() && fields.contains_key("data") => {
                    return Sent { id: fields.remove("id"), data: fields.remove("data").unwrap_or_default() };
                }
                None => {}
            }
        }
    }

    /// The first event in which this occurs.
    fn with(&mut self, text: &str) -> Sent {
        loop {
            let sent = self.next();
            if sent.data.contains(text) {
                return sent;
            }
        }
    }
}

/// The value of a hidden field.
fn field(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{name}: {page}"));
    rest.split('"').next().unwrap().to_owned()
}

fn whole_id(world: &World, chain: &str) -> String {
    world.run(&["show", chain, "--json"]).json()["id"].as_str().expect("an id").to_owned()
}

#[test]
fn only_a_browser_with_the_link_gets_in() {
    let world = World::with_hooks();
    let mut served = Served::start(&world, &[]);
    for path in ["/", "/inbox", "/live?of=/", "/history", "/chain/x"] {
        let answer = served.request("GET", path, &[], "");
        assert_eq!(answer.status, 401, "{path}");
        let csp = answer.header("content-security-policy").unwrap();
        assert!(csp.starts_with("default-src 'none'; ") && !csp.contains("unsafe") && !csp.contains('*'), "{csp}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    assert_eq!(served.request("GET", "/login?link=0000", &[], "").status, 403);
    let used = served.link.clone();
    let browser = served.browser();
    assert_eq!(served.request("GET", &used, &[], "").status, 403, "it works once");
    assert!(browser.page(&served, "/").contains("no chains yet"));
    let other = Browser { cookie: format!("agent-cli-1={}", browser.cookie.split_once('=').unwrap().1) };
    assert_eq!(other.get(&served, "/").status, 401, "a cookie of another port");
    let old = Browser { cookie: format!("agent-cli-{}=00", served.port) };
    assert_eq!(old.get(&served, "/").status, 401);
    assert_eq!(browser.post(&served, "/logout", &[]).status, 200);
    assert_eq!(browser.get(&served, "/").status, 401, "it has logged out");
    // Nothing that lets anyone in is on the disk.
    let secret = used.split('=').nth(1).unwrap();
    for file in crate::world::files_below(&world.state()) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap_or_default()).into_owned();
        assert!(!text.contains(secret) && !text.contains(browser.cookie.split('=').nth(1).unwrap()), "{file:?}");
    }
}

#[test]
fn a_browser_stays_logged_in_after_a_restart() {
    let world = World::with_hooks();
    let mut served = Served::start(&world, &[]);
    let (browser, port) = (served.browser(), served.port);
    let mut events = browser.follow(&served, "/", None);
    let seen = events.with("no chains yet").id.expect("the last event has an id");
    served.stop();
    let served = Served::at(&world, &format!("127.0.0.1:{port}"), &[]);
    let mut events = browser.follow(&served, "/", Some(&seen));
    world.file("root.md", "ask When?\nreply {result}\n");
    world.spawn_paused("root.md");
    let news = events.next();
    assert!(news.data.contains("root.md") && !news.data.contains("no chains yet"), "nothing is sent again: {news:?}");
    let second = Served::start_refused(&world, port);
    assert!(second.contains("cannot listen on"), "{second}");
}

impl Served {
    /// What a server says that cannot begin.
    fn start_refused(world: &World, port: u16) -> String {
        world.run(&["serve", "--listen", &format!("127.0.0.1:{port}")]).exits_with(1).stderr.clone()
    }
}

#[test]
fn requests_of_other_pages_and_names_are_refused() {
    let world = World::with_hooks();
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let cookie = ("cookie", browser.cookie.as_str());
    for host in ["evil.test", &format!("evil.test:{}", served.port), "127.0.0.1:1", "localhost.", "0.0.0.0"] {
        for path in ["/", "/live?of=/", "/login", "/page.js"] {
            assert_eq!(served.request("GET", path, &[cookie, ("host", host)], "").status, 421, "{host}{path}");
        }
    }
    let other_port = "http://127.0.0.1:1";
    for hostile in [
        &[cookie][..],
        &[cookie, ("origin", other_port)],
        &[cookie, ("origin", "null")],
        &[cookie, ("sec-fetch-site", "same-site")],
        &[cookie, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
        &[cookie, ("sec-fetch-site", "same-origin"), ("origin", other_port)],
    ] {
        for path in ["/start", "/logout", "/login"] {
            assert_eq!(served.request("POST", path, hostile, "").status, 403, "{path} {hostile:?}");
        }
    }
    for hostile in [("origin", other_port), ("sec-fetch-site", "same-site"), ("sec-fetch-site", "cross-site")] {
        assert_eq!(served.request("GET", "/live?of=/", &[cookie, hostile], "").status, 403, "{hostile:?}");
    }
    for method in ["PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"] {
        let status = served.request(method, "/", &[cookie, ("sec-fetch-site", "same-origin")], "").status;
        assert!(matches!(status, 400 | 405 | 421), "{method}: {status}");
    }
    let same = [cookie, ("sec-fetch-site", "same-origin")];
    assert_eq!(served.request("GET", "/", &same, "").status, 200);
    for path in [
        "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/page.js", "//", "/page.js/..", "/chain/%00",
        "/agent/..%2f",
    ] {
        let answer = served.request("GET", path, &same, "");
        assert!(matches!(answer.status, 200 | 400 | 404) && !answer.body.contains("root:"), "{path}: {answer:?}");
    }
}

#[test]
fn what_is_too_large_or_too_slow_does_not_hold_up_others() {
    let world = World::with_hooks();
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let large = "x".repeat(100_000);
    let status = served.request("GET", "/", &[("x-large", &large)], "").status;
    assert!(matches!(status, 431 | 0), "{status}");
    let body = format!("prompt={}", "x".repeat(3 << 20));
    let headers = [
        ("cookie", browser.cookie.as_str()),
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let status = served.request("POST", "/start", &headers, &body).status;
    assert!(matches!(status, 413 | 0), "{status}");
    let slow: Vec<_> = (0..50).map(|_| served.sent(b"GET / HTTP/1.1\r\nho")).collect();
    let head = served.head("GET", "/live?of=/", &[("cookie", &browser.cookie)], "");
    let mut streams: Vec<_> = (0..150).map(|_| served.sent(head.as_bytes())).collect();
    let mut opened = 0;
    for stream in &mut streams {
        let mut begun = [0; 12];
        // The system may drop the answer of a connection that was refused and closed.
        let _ = stream.read_exact(&mut begun);
        assert!([b"HTTP/1.1 200", b"HTTP/1.1 503", &[0; 12]].contains(&&begun), "{begun:?}");
        opened += usize::from(&begun == b"HTTP/1.1 200");
    }
    assert_eq!(opened, 100, "a hundred streams are enough for one person");
    assert!(browser.page(&served, "/").contains("no chains yet"));
    drop((slow, streams));
    wait_until("streams are free again", || {
        let mut stream = served.sent(head.as_bytes());
        let mut begun = [0; 12];
        let _ = stream.read_exact(&mut begun);
        &begun == b"HTTP/1.1 200"
    });
}

#[test]
fn text_of_agents_is_never_markup() {
    let world = World::with_hooks();
    let hostile =
        "<script>alert(1)</script><img src=x onerror=alert(1)>![a](https://evil.test/)\u{202e}\u{200b}\u{1b}[2J";
    world.file("root.md", format!("run agent-cli ask '{hostile}' --option '{hostile}' --context '{hostile}'\n"));
    let id = whole_id(&world, &world.spawn_paused("root.md"));
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    for path in ["/", "/inbox", "/history", "/statistics", &format!("/chain/{id}"), &format!("/agent/{id}")] {
        let page = browser.page(&served, path);
        for never in ["<script>", "<img", "onerror=alert(1)>", "href=\"http", "\u{202e}", "\u{200b}", "\u{1b}"] {
            assert!(!page.contains(never), "{path}: {never}: {page}");
        }
    }
    let inbox = browser.page(&served, "/inbox");
    assert!(inbox.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && inbox.contains("\\u{202e}"), "{inbox}");
    let mut events = browser.follow(&served, "/inbox", None);
    let attending = fs::File::open(world.state().join("attending.lock")).expect("a page that is open is marked");
    assert!(attending.try_lock().is_err(), "a person may see what is asked");
    let sent = events.with("evil.test").data;
    assert!(!sent.contains("<img") && !sent.contains("\u{202e}"), "{sent}");
}

#[test]
fn a_question_is_answered_from_the_page_and_the_chain_goes_on() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli ask 'Which colour?' --option Red --option 'Blue: the sky'\nreply {result}\n");
    let id = whole_id(&world, &world.spawn_paused("root.md"));
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    assert!(browser.page(&served, "/").contains("Needs you"));
    let inbox = browser.page(&served, "/inbox");
    let question = world.question();
    let path = format!("/question/{question}/answer");
    let (shown, mut events) = (field(&inbox, "shown"), browser.follow(&served, &format!("/chain/{id}"), None));
    let answer = [("decision", "answer"), ("option", "1"), ("shown", &shown), ("resume", "yes"), ("back", "/inbox")];
    let nothing = browser.post(&served, &path, &[("decision", "answer"), ("shown", &shown)]);
    assert_eq!(nothing.status, 409);
    let done = browser.post(&served, &path, &answer);
    assert_eq!((done.status, done.header("location")), (303, Some("/inbox")), "{done:?}");
    events.with("done</span>");
    assert!(browser.page(&served, &format!("/agent/{id}")).contains("Blue"));
    let late = browser.post(&served, &path, &answer);
    assert_eq!(late.status, 409);
    assert!(late.body.contains("already"), "{late:?}");
    let by = world.run(&["history", "--json"]).json()[0]["records"][0]["by"]["page"].clone();
    assert_eq!((by["address"].as_str(), by["browser"].as_str()), (Some("127.0.0.1"), Some("Test/7 <b>")), "{by}");
    world.run(&["fsck"]).succeeds();
    assert!(browser.page(&served, "/history").contains("page, 127.0.0.1, Test/7 &lt;b&gt;"));
}

/// Sets a time in the only request, a moment from now.
fn set_soon(world: &World, place: &str) {
    let soon = jiff::Timestamp::now() + Duration::from_secs(3);
    let set = "UPDATE requests SET detail = json_set(detail, ?1, ?2)";
    assert_eq!(world.database().execute(set, [place, &soon.to_string()]).expect("it can be written"), 1);
}

#[test]
fn what_only_time_changes_is_shown_when_it_changes() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli wait --until 2100-01-01T00:00:00Z\nreply over\n");
    let id = whole_id(&world, &world.spawn_paused("root.md"));
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let of = ["/".to_owned(), format!("/chain/{id}"), format!("/agent/{id}")];
    let mut streams = of.map(|of| browser.follow(&served, &of, None));
    streams.iter_mut().for_each(|events| drop(events.with("waits</span>")));
    set_soon(&world, "$.wait.time");
    streams.iter_mut().for_each(|events| drop(events.with("can continue</span>")));
    assert!(browser.page(&served, "/?show=continue").contains("root.md"));
}

#[test]
fn a_question_leaves_the_inbox_when_it_expires() {
    let world = World::with_hooks();
    world.file("root.md", "run agent-cli ask 'When?' --expires 1d\nreply over\n");
    world.spawn_paused("root.md");
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let question = format!("/question/{}", world.question());
    let mut streams = ["/inbox", &question].map(|of| browser.follow(&served, of, None));
    streams.iter_mut().for_each(|events| drop(events.with("When?")));
    set_soon(&world, "$.ask.expires_at");
    streams[0].with("nothing to answer");
    let closed = streams[1].with("Expired.");
    assert!(!closed.data.contains("<form"), "{closed:?}");
}

#[test]
fn chains_are_filtered_by_group_and_text_in_each_part() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    world.spawn_paused("root.md");
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let chains = |path: &str| browser.page(&served, path).matches("<a class=\"title\"").count();
    for (query, expected) in [
        ("", 1),
        ("show=needs", 1),
        ("show=needs&q=ROOT.md", 1),
        ("show=needs&q=other", 0),
        ("show=needs&page=1", 0),
        ("show=waiting", 0),
        ("show=working", 0),
        ("show=continue", 0),
        ("show=done", 0),
        ("show=all&q=root", 1),
    ] {
        assert_eq!(chains(&format!("/?{query}")), expected, "{query}");
    }
    assert!(browser.page(&served, "/").contains("<p>When?</p>"), "the question");
    let second = browser.page(&served, "/?show=needs&q=root&page=1");
    assert!(second.contains("/?show=needs&amp;q=%72%6f%6f%74&amp;page=0") && !second.contains("page=2"), "{second}");
}

#[test]
fn nothing_is_approved_that_was_not_shown() {
    let world = World::with_hooks();
    let target = world.file("notes.txt", "before\n");
    world.file("root.md", "ask May I?\nreply {result}\n");
    world.spawn_paused("root.md");
    // Claude Code would ask for it, so the record is created here.
    let input = serde_json::json!({ "file_path": target, "content": "after\n" });
    let kind = serde_json::json!({ "permission": { "tool": "Write", "input": input } });
    world.database().execute("UPDATE requests SET detail = ?1", [kind.to_string()]).expect("it can be written");
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let inbox = browser.page(&served, "/inbox");
    let path = format!("/question/{}/answer", world.question());
    let allow = |shown: &str| browser.post(&served, &path, &[("decision", "allow"), ("shown", shown)]);
    let old = field(&inbox, "shown");
    assert!(inbox.contains("<del>") && inbox.contains("<ins>"), "a diff: {inbox}");
    fs::write(&target, "something else\n").unwrap();
    let refused = allow(&old);
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("has changed since it was shown"), "{refused:?}");
    assert_eq!(allow("").status, 409);
    assert!(world.run(&["history", "--json"]).json()[0]["records"].as_array().unwrap().is_empty());
    let shown = field(&browser.page(&served, "/inbox"), "shown");
    assert_eq!(allow(&shown).status, 303);
}

#[test]
fn chains_are_started_told_paused_stopped_resumed_and_removed() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let directory = world.project().display().to_string();
    let refused = browser.post(&served, "/start", &[("directory", &directory)]);
    assert_eq!(refused.status, 409);
    for budget in ["0", "-1", "inf", "NaN", "much"] {
        let fields = [("prompt", "work"), ("directory", directory.as_str()), ("budget", budget)];
        assert_eq!(browser.post(&served, "/start", &fields).status, 409, "{budget}");
    }
    assert_eq!(world.starts(), 0);
    let started = browser.post(&served, "/start", &[("file", "root.md"), ("directory", &directory), ("name", "first")]);
    assert_eq!(started.status, 303, "{started:?}");
    let id = started.header("location").unwrap().strip_prefix("/chain/").expect("it leads to the chain").to_owned();
    browser.follow(&served, &format!("/chain/{id}"), None).with("asks</span>");
    let act = |action: &str, fields: &[(&str, &str)]| {
        let done = browser.post(&served, &format!("/agent/{id}/{action}"), fields);
        assert_eq!(done.status, 303, "{action}: {done:?}");
    };
    let named = browser.post(&served, &format!("/chain/{id}/name"), &[("name", "second")]);
    assert_eq!(named.status, 303, "{named:?}");
    assert!(browser.page(&served, &format!("/chain/{id}")).contains("<h1>second</h1>"));
    act("tell", &[("text", "hurry")]);
    assert!(browser.page(&served, &format!("/agent/{id}")).contains("hurry"));
    act("pause", &[]);
    act("resume", &[]);
    act("stop", &[]);
    assert!(browser.page(&served, &format!("/chain/{id}")).contains("stopped"));
    let empty = browser.post(&served, &format!("/agent/{id}/tell"), &[("text", "too late")]);
    assert_eq!(empty.status, 409, "{empty:?}");
    let removed = browser.post(&served, &format!("/chain/{id}/remove"), &[("back", "//evil.test")]);
    assert_eq!((removed.status, removed.header("location")), (303, Some("/")), "{removed:?}");
    assert_eq!(browser.get(&served, &format!("/chain/{id}")).status, 404);
    let question = "00000000-0000-4000-8000-000000000000";
    for path in [format!("/agent/{question}/stop"), "/agent/last/stop".into(), format!("/agent/{id}/explode")] {
        assert_eq!(browser.post(&served, &path, &[]).status, 404, "{path}");
    }
}

#[test]
fn a_read_only_page_does_nothing() {
    let world = World::with_hooks();
    world.file("root.md", "ask When?\nreply {result}\n");
    let id = whole_id(&world, &world.spawn_paused("root.md"));
    let mut served = Served::start(&world, &["--read-only"]);
    let browser = served.browser();
    for path in ["/inbox", "/start", &format!("/chain/{id}"), &format!("/agent/{id}")] {
        assert!(!browser.page(&served, path).contains("method=\"post\""), "{path}");
    }
    assert_eq!(browser.post(&served, &format!("/agent/{id}/stop"), &[]).status, 409);
    assert!(browser.page(&served, "/").contains("Needs you"));
}

#[cfg(target_os = "linux")]
#[test]
fn agents_cannot_use_the_page() {
    let world = World::with_hooks();
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    // Agents may have cleared the environment of what they start.
    let head = served.head("GET", "/", &[("cookie", &browser.cookie)], "").replace("\r\n", "\\r\\n");
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{}; printf '{head}' >&3; head -c 12 <&3", served.port);
    let status = |program: Invocation<'_>| program.run().succeeds().stdout.clone();
    assert_eq!(status(world.program("bash", ["-c", &line])), "HTTP/1.1 200", "a person's program");
    let id = "4f2c1a90-0000-4000-8000-000000000001";
    let marked = |words: &[&str]| {
        let program = world.program("bash", words).with("AGENT_CLI_AGENT_ID", id).with("AGENT_CLI_ATTEMPT", id);
        status(program)
    };
    assert_eq!(marked(&["-c", &line]), "HTTP/1.1 403");
    assert_eq!(marked(&["-c", "env -i bash -c \"$0\"; true", &line]), "HTTP/1.1 403");
    let refused = world.command(["serve"]).with("AGENT_CLI_AGENT_ID", id).with("AGENT_CLI_ATTEMPT", id).run();
    assert!(refused.exits_with(2).stderr.contains("agents cannot serve the page"));
}

#[test]
fn another_address_needs_a_token_that_others_cannot_read() {
    let world = World::with_hooks();
    let refused = |options: &[&str]| {
        let all = ["serve", "--listen", "0.0.0.0:0"].iter().chain(options);
        world.command(all).run().exits_with(2).stderr.clone()
    };
    let file = world.file("token", "0123456789012345678901234567890\n");
    let path = file.display().to_string();
    let token = ["--token-file", path.as_str()];
    let host = ["--allowed-host", "box.example"];
    assert!(refused(&[]).contains("needs --token-file and --allowed-host"));
    assert!(refused(&token).contains("needs --token-file and --allowed-host"));
    assert!(refused(&host).contains("needs --token-file and --allowed-host"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(refused(&[token, host].concat()).contains("other users can read"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "short").unwrap();
    assert!(refused(&[token, host].concat()).contains("shorter than 22"));
    assert!(refused(&["--allowed-host", "http://x"]).contains("HOST"));
}

#[test]
fn a_missing_state_directory_is_said_and_not_made_again() {
    let world = World::with_hooks();
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    assert!(browser.page(&served, "/").contains("no chains yet"));
    fs::rename(world.state(), world.home().join("elsewhere")).unwrap();
    let answer = browser.get(&served, "/");
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(!world.state().exists());
    fs::rename(world.home().join("elsewhere"), world.state()).unwrap();
    assert_eq!(browser.get(&served, "/").status, 200);
}

/// Records that were restored from a copy, for example.
#[test]
fn another_state_directory_in_the_same_place_is_shown_live() {
    let world = World::with_hooks();
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let mut events = browser.follow(&served, "/", None);
    events.with("no chains yet");
    fs::rename(world.state(), world.home().join("old")).unwrap();
    world.file("root.md", "ask When?\nreply {result}\n");
    world.spawn_paused("root.md");
    let mut events = browser.follow(&served, "/", None);
    events.with("root.md");
    world.answer("now");
    world.run(&["resume", "--all"]);
    events.with("no such chain");
}

#[test]
fn a_token_lets_browsers_in_and_no_agent_may_read_it() {
    let world = World::with_hooks();
    let token = "0123456789012345678901234567890";
    let file = world.file("token", format!("{token}\n"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let mut command = world.command(["serve", "--listen", "127.0.0.1:0", "--token-file", "token"]).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let port = line.trim().strip_prefix("http://127.0.0.1:").and_then(|port| port.parse().ok());
    let served = Served { process, output, link: String::new(), port: port.unwrap_or_else(|| panic!("{line}")) };
    assert!(served.request("GET", "/", &[], "").body.contains("name=\"token\""));
    assert_eq!(served.request("GET", "/login?link=", &[], "").status, 403, "no link works");
    let stranger = Browser { cookie: String::new() };
    for wrong in ["", "wrong", &token[1..]] {
        assert_eq!(stranger.post(&served, "/login", &[("token", wrong)]).status, 403, "{wrong}");
    }
    let entered = stranger.post(&served, "/login", &[("token", token)]);
    let cookie = entered.header("set-cookie").expect("a cookie").split(';').next().unwrap().to_owned();
    let browser = Browser { cookie };
    assert!(browser.page(&served, "/").contains("no chains yet"));
    // The settings of each agent deny reading what is noted here.
    let noted = fs::read_to_string(world.state().join("page/token-files")).unwrap();
    assert!(noted.lines().any(|noted| noted == file.display().to_string()), "{noted}");
}

#[test]
fn a_long_line_is_cut_until_it_is_wanted_and_a_stalled_reader_holds_up_nobody() {
    let world = World::with_hooks();
    world.file("root.md", "run printf 'begin %01048576d end' 7\nask When?\nreply {result}\n");
    let id = whole_id(&world, &world.spawn_paused("root.md"));
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let path = |query: &str| format!("/agent/{id}{query}");
    let head = served.head("GET", &format!("/live?of={}", path("%3Ffull=1")), &[("cookie", &browser.cookie)], "");
    // They read nothing.
    let stalled: Vec<_> = (0..20).map(|_| served.sent(head.as_bytes())).collect();
    let (cut, whole) = (browser.page(&served, &path("")), browser.page(&served, &path("?full=1")));
    assert!(cut.contains("begin 0000") && cut.contains("Show all of it"), "{} bytes", cut.len());
    assert!(!cut.contains("07 end") && cut.len() < 100_000, "{} bytes", cut.len());
    assert!(whole.contains("07 end") && whole.len() > 1 << 20, "{} bytes", whole.len());
    let mut events = browser.follow(&served, "/", None);
    events.with("asks</span>");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    events.with("no such chain");
    drop(stalled);
}

#[test]
fn two_servers_share_the_records_but_no_cookie() {
    let world = World::with_hooks();
    let (mut first, mut second) = (Served::start(&world, &[]), Served::start(&world, &[]));
    let (of_first, of_second) = (first.browser(), second.browser());
    assert!(
        of_first.page(&first, "/").contains("no chains yet") && of_second.page(&second, "/").contains("no chains yet")
    );
    assert_eq!(of_first.get(&second, "/").status, 401);
    first.stop();
    assert_eq!(of_second.get(&second, "/").status, 200);
}

#[test]
fn a_conversation_has_links_to_each_line_and_its_parts_are_found() {
    let world = World::with_hooks();
    world.file("root.md", "run echo one\nask When?\nreply third\n");
    let id = whole_id(&world, &world.spawn_paused("root.md"));
    world.answer("now");
    world.run(&["resume", &id]).prints("third");
    let mut served = Served::start(&world, &[]);
    let browser = served.browser();
    let page = browser.page(&served, &format!("/agent/{id}"));
    let at = page.find("echo one").expect("its text");
    let anchor = page[..at].rfind("<li id=\"").map(|from| page[from + 8..].split('"').next().unwrap()).unwrap();
    let link = page[..at].rfind("href=\"?since=").map(|from| page[from + 6..].split('"').next().unwrap()).unwrap();
    let (query, fragment) = link.split_once('#').unwrap();
    assert_eq!(fragment, anchor);
    let from_there = browser.page(&served, &format!("/agent/{id}{query}"));
    assert!(from_there.contains(&format!("<li id=\"{anchor}\"")), "{from_there}");
    assert!(page.contains("third") && page.contains("echo one"), "{page}");
    assert!(browser.page(&served, &format!("/chain/{id}")).contains("class=\"bar\""), "a timeline");
}

#[test]
fn notifications_say_where_the_page_is() {
    let world = World::with_hooks();
    let served = Served::start(&world, &[]);
    let got = world.project().join("got");
    crate::world::write_config(&world, &format!("[on]\nquestion = \"cat > '{}'\"\n", got.display()));
    world.file("root.md", "ask When?\nreply {result}\n");
    world.run(&["spawn", "root.md"]).succeeds();
    wait_until("the notification is sent", || fs::read_to_string(&got).is_ok_and(|text| text.ends_with('\n')));
    let payload: serde_json::Value = serde_json::from_str(&fs::read_to_string(&got).unwrap()).unwrap();
    let expected = format!("http://127.0.0.1:{}/question/{}", served.port, world.question());
    assert_eq!(payload["url"], expected.as_str());
}

#[test]
fn a_browser_is_opened_by_a_file_that_nobody_else_can_read() {
    let world = World::with_hooks();
    let folder = world.project().join("bin");
    let world = world.with("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    let script = "#!/bin/sh\ncat \"$1\" > opening; ls -l \"$1\" >> opening; mv opening opened\n";
    for name in ["xdg-open", "open"] {
        world.executable(format!("bin/{name}"), script);
    }
    let mut served = Served::start(&world, &["--open"]);
    let opened = world.project().join("opened");
    wait_until("the browser is opened", || opened.exists());
    let text = fs::read_to_string(&opened).unwrap();
    assert!(text.contains(&served.link) && text.contains("-rw-------"), "{text}");
    let file = world.state().join("page/open.html");
    assert!(file.exists());
    served.browser();
    wait_until("the file is removed", || !file.exists());
}

#[test]
fn a_unix_socket_is_for_its_owner() {
    let world = World::with_hooks();
    let socket = world.home().join("page.sock");
    let listen = format!("unix:{}", socket.display());
    let mut command = world.command(["serve", "--listen", &listen]).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("http://localhost/login?link="), "{line}");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let status = |host: &str| {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!((status("localhost").as_str(), status("evil.test").as_str()), ("401", "421"));
    process.kill().unwrap();
    process.wait().unwrap();
}

/// One that is left behind by a killed server is replaced; nothing else is.
#[test]
fn a_file_in_the_place_of_a_socket_stays() {
    let world = World::with_hooks();
    let file = world.file("notes.txt", "important");
    let refused = |path: &std::path::Path| {
        let outcome = world.run(&["serve", "--listen", &format!("unix:{}", path.display())]);
        assert!(outcome.stderr.contains("cannot listen on "), "{outcome}");
    };
    refused(&file);
    let link = world.project().join("link.sock");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    refused(&link);
    assert_eq!(fs::read_to_string(&file).unwrap(), "important");
    assert!(link.is_symlink());
}
