//! Tests which files are written and which are refused.

use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;
use crate::core::id::{AttemptId, FrameId};
use crate::core::requests::convention;
use crate::store::Caller;

struct Project(TempDir);

impl Project {
    /// A repository in a home directory.
    fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(project.path("project/.git")).unwrap();
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join(name)
    }

    fn place(&self) -> Place {
        Place::Project { directory: self.path("project"), config: Some(self.path("config")) }
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn init(&self) -> Result<Plan, String> {
        self.change(init::plan, &self.place())
    }

    fn uninit(&self) -> Result<Plan, String> {
        self.change(uninit::plan, &self.place())
    }

    fn change(&self, plan: fn(&Asker, &Place) -> Result<Plan, AppError>, place: &Place) -> Result<Plan, String> {
        let plan = plan(&Asker::default(), place).map_err(|error| self.said(&error))?;
        plan.carry_out(&Asker::default()).map_err(|error| self.said(&error))?;
        Ok(plan)
    }

    /// An error, without the name of the test's folder.
    fn said(&self, error: &AppError) -> String {
        error.to_string().replace(self.path("").to_str().unwrap(), "")
    }
}

const FILE: &str = "project/CLAUDE.md";

#[test]
fn what_is_written_is_removed_without_a_trace() {
    let project = Project::new();
    let plan = project.init().unwrap();
    assert_eq!((plan.change, plan.task.as_ref()), (Change::Added, Some(&project.path("project/hello.md"))));
    assert!(project.read(FILE).contains(convention::TEXT) && project.read("project/hello.md") == TASK_TEXT);
    assert_eq!(convention::used(TASK_TEXT), ["_ask_"]);
    assert_eq!(project.init().unwrap().change, Change::Unchanged);
    assert_eq!(project.uninit().unwrap().change, Change::Deleted);
    assert!(!project.path(FILE).exists() && !project.path("project/hello.md").exists());
    assert_eq!(project.uninit().unwrap().change, Change::Unchanged);
    for text in ["", "# Mine\n", "# Mine", "# Mine\r\n\r\nText\r\n", "\u{feff}\n\n"] {
        project.write(FILE, text);
        project.init().unwrap();
        assert_eq!(project.uninit().unwrap().change, Change::Removed);
        assert_eq!(project.read(FILE), text);
    }
}

#[test]
fn only_the_section_is_updated() {
    let project = Project::new();
    project.write(FILE, "# Mine\n").init().unwrap();
    let current = project.read(FILE);
    fs::remove_file(project.path("project/hello.md")).unwrap();
    project.write(FILE, &format!("{}more\n", current.replace("`_spawn_", "`_old_")));
    let plan = project.init().unwrap();
    assert_eq!((plan.change, plan.task), (Change::Updated, None));
    assert_eq!(project.read(FILE), format!("{current}more\n"));
}

#[test]
fn a_task_of_a_person_stays() {
    let project = Project::new();
    project.write("project/hello.md", "mine").init().unwrap();
    let plan = project.uninit().unwrap();
    assert_eq!((plan.task, plan.kept_task), (None, Some(project.path("project/hello.md"))));
    assert_eq!(project.read("project/hello.md"), "mine");
    fs::remove_file(project.path("project/hello.md")).unwrap();
    symlink("../outside.md", project.path("project/hello.md")).unwrap();
    assert_eq!(project.init().unwrap().task, None);
    assert!(!project.path("outside.md").exists());
}

#[test]
fn a_definition_is_not_written_twice() {
    let by_hand = Project::new();
    by_hand.write(FILE, convention::TEXT);
    let plan = by_hand.init().unwrap();
    assert_eq!((plan.change, plan.defined_in), (Change::Unchanged, Some((by_hand.path(FILE), Vec::new()))));
    assert_eq!(by_hand.read(FILE), convention::TEXT);
    by_hand.write(FILE, "_spawn_ means agent-cli spawn");
    assert_eq!(by_hand.init().unwrap().defined_in, Some((by_hand.path(FILE), vec!["_ask_", "_wait_"])));

    let above = Project::new();
    above.write("config/CLAUDE.md", "_spawn_ means agent-cli spawn");
    assert_eq!(above.init().unwrap().change, Change::Added, "it does not define all of them");
    above.uninit().unwrap();
    above.write("config/CLAUDE.md", convention::TEXT);
    assert_eq!(above.init().unwrap().defined_in, Some((above.path("config/CLAUDE.md"), Vec::new())));
    let user = Place::User(above.path("other"));
    assert_eq!(above.change(init::plan, &user).unwrap().change, Change::Added, "it is about the user's file alone");
    assert!(above.read("other/CLAUDE.md").contains("agent-cli uninit --user removes it"));
    assert!(!above.path("other/hello.md").exists());
}

#[test]
fn links_lead_to_another_markdown_file_of_the_project() {
    let project = Project::new();
    project.write("outside.md", "theirs\n").write("project/AGENTS.md", "ours\n").write("project/build.sh", "");
    let link = |target: &str| {
        let _ = fs::remove_file(project.path(FILE));
        symlink(target, project.path(FILE)).unwrap();
    };
    link("AGENTS.md");
    assert_eq!(project.init().unwrap().leads_to(), Some(project.path("project/AGENTS.md").as_path()));
    assert!(project.read("project/AGENTS.md").contains("_spawn_") && project.path(FILE).is_symlink());
    project.uninit().unwrap();
    assert_eq!(project.read("project/AGENTS.md"), "ours\n");
    for (target, why) in [
        ("../outside.md", "project/CLAUDE.md is a link to outside.md, outside of the project"),
        ("build.sh", "project/CLAUDE.md is a link to project/build.sh, which is not a .md file"),
        ("gone.md", "project/CLAUDE.md is a link to a file that does not exist"),
        ("CLAUDE.md", "project/CLAUDE.md is a link to a file that does not exist"),
    ] {
        link(target);
        assert_eq!(project.init().unwrap_err(), why);
    }
    assert_eq!(project.read("outside.md"), "theirs\n");
    fs::create_dir(project.path("config")).unwrap();
    symlink("../outside.md", project.path("config/CLAUDE.md")).unwrap();
    let plan = project.change(init::plan, &Place::User(project.path("config"))).unwrap();
    assert_eq!(plan.leads_to(), Some(project.path("outside.md").as_path()), "a user may keep it elsewhere");
    assert!(project.read("outside.md").starts_with("theirs\n\n<!-- begin agent-cli"));
}

#[test]
fn what_is_not_a_text_of_this_size_is_refused() {
    let refused = |make: &dyn Fn(&Path)| {
        let project = Project::new();
        make(&project.path(FILE));
        // Reading a pipe would wait.
        let content = || project.path(FILE).is_file().then(|| fs::read(project.path(FILE)).unwrap());
        let before = content();
        let errors = [project.init().unwrap_err(), project.uninit().unwrap_err()];
        assert_eq!(content(), before);
        assert!(!project.path("project/hello.md").exists());
        assert_eq!(errors[0], errors[1]);
        errors[0].clone()
    };
    assert_eq!(refused(&|file| fs::create_dir(file).unwrap()), "project/CLAUDE.md is a directory");
    assert_eq!(refused(&|file| fs::write(file, b"\xff").unwrap()), "project/CLAUDE.md is not UTF-8 text");
    assert_eq!(
        refused(&|file| fs::write(file, "x".repeat(2_000_000)).unwrap()),
        "project/CLAUDE.md is too large: 2.0 MB, where it may have 1 MiB"
    );
    let pipe = |file: &Path| assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
    assert_eq!(refused(&pipe), "project/CLAUDE.md is not a regular file");
    assert_eq!(
        refused(&|file| fs::write(file, "a\n<!-- begin agent-cli: x -->\n").unwrap()),
        "project/CLAUDE.md: the section of agent-cli that begins in line 2 has no end"
    );
}

#[test]
fn a_protected_file_stays_as_it_is_and_others_keep_their_mode() {
    let project = Project::new();
    let mode = |mode| fs::set_permissions(project.path(FILE), fs::Permissions::from_mode(mode)).unwrap();
    project.write(FILE, "mine\n");
    mode(0o444);
    assert_eq!(project.init().unwrap_err(), "project/CLAUDE.md is read-only");
    assert_eq!(project.read(FILE), "mine\n");
    mode(0o640);
    project.init().unwrap();
    assert_eq!(fs::metadata(project.path(FILE)).unwrap().permissions().mode() & 0o777, 0o640);
    mode(0o444);
    assert_eq!(project.init().unwrap().change, Change::Unchanged, "nothing has to be written");
    assert_eq!(project.uninit().unwrap_err(), "project/CLAUDE.md is read-only");
}

#[test]
fn what_changed_while_a_person_was_asked_is_not_overwritten() {
    for change in [
        |project: &Project| fs::write(project.path(FILE), "new\n").unwrap(),
        |project: &Project| fs::remove_file(project.path(FILE)).unwrap(),
        |project: &Project| {
            fs::rename(project.path(FILE), project.path("project/AGENTS.md")).unwrap();
            symlink("AGENTS.md", project.path(FILE)).unwrap();
        },
    ] {
        let project = Project::new();
        let plan = init::plan(&Asker::default(), &project.write(FILE, "old\n").place()).unwrap();
        change(&project);
        let before = fs::read_to_string(project.path(FILE)).ok();
        let error = plan.carry_out(&Asker::default()).unwrap_err();
        assert_eq!(project.said(&error), "project/CLAUDE.md was changed in the meantime: nothing was written");
        assert_eq!(fs::read_to_string(project.path(FILE)).ok(), before);
        assert!(!project.path("project/hello.md").exists());
    }
    let project = Project::new();
    let plan = init::plan(&Asker::default(), &project.place()).unwrap();
    project.write(FILE, "new\n").write("project/hello.md", "new");
    assert!(plan.carry_out(&Asker::default()).is_err());
    assert_eq!(project.read("project/hello.md"), "new");
}

#[test]
fn agents_change_nothing() {
    let agent = Some(Caller { frame: FrameId::random(), attempt: AttemptId::random() });
    let agent = Asker { agent, ..Asker::default() };
    let project = Project::new();
    let plan = init::plan(&Asker::default(), &project.place()).unwrap();
    for refused in [init::plan(&agent, &project.place()), uninit::plan(&agent, &project.place())] {
        assert_eq!(refused.unwrap_err().to_string(), "agents cannot change what all agents are told");
    }
    assert!(plan.carry_out(&agent).is_err());
}

#[test]
fn instructions_for_all_agents_are_still_read() {
    let project = Project::new();
    project.write("project/AGENTS.md", "ours\n");
    let plan = project.init().unwrap();
    assert_eq!((plan.change, plan.hides), (Change::Added, None));
    let text = project.read("project/CLAUDE.md");
    assert!(text.contains("-->\n@AGENTS.md\n\n") && text.contains("_spawn_"), "{text}");
    // An update keeps the import.
    project.write("project/CLAUDE.md", &text.replace("_spawn_", "_spwan_"));
    assert_eq!(project.init().unwrap().change, Change::Updated);
    assert_eq!(project.read("project/CLAUDE.md"), text);
    assert_eq!(project.uninit().unwrap().change, Change::Deleted);
    assert_eq!(project.read("project/AGENTS.md"), "ours\n");
    let below = Place::Project { directory: project.path("project/sub"), config: None };
    fs::create_dir(project.path("project/sub")).unwrap();
    let plan = project.change(init::plan, &below).unwrap();
    assert_eq!(plan.hides, Some(project.path("project/AGENTS.md")));
    assert!(!project.read("project/sub/CLAUDE.md").contains("@AGENTS.md"));
    let outside = Project::new();
    outside.write("secret.md", "secret\n");
    symlink("../secret.md", outside.path("project/AGENTS.md")).unwrap();
    outside.init().unwrap();
    assert!(!outside.read("project/CLAUDE.md").contains("@AGENTS.md"), "it leads out of the project");
    project.write("project/CLAUDE.md", "mine\n");
    assert!(!project.init().is_ok_and(|_| project.read("project/CLAUDE.md").contains("@AGENTS.md")), "it was not read");
}
