//! Generates the schemas in `docs/schema` from the views.

use std::fs;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::app::view::agent::AgentView;
use crate::app::view::agent_detail::AgentDetailView;
use crate::app::view::chain::ChainView;
use crate::app::view::chain_status::{ChainStatusView, RequestView};
use crate::app::view::cost::StatsView;
use crate::app::view::estimate::EstimateView;
use crate::app::view::exchange::ExchangeView;
use crate::app::view::outcome::access::AccessView;
use crate::app::view::outcome::host::{HostChangeView, HostView};
use crate::app::view::outcome::{
    AnsweredView, ErrorView, FsckView, GcView, ImportView, MoveView, NamedView, NotificationTestView, NotificationView,
    RmView, SetupView, StoppedView, ToldView,
};
use crate::app::view::question::QuestionView;
use crate::app::view::settings::{ConfigView, GetView};
use crate::core::events::agent_event::AgentEvent;
use crate::core::notifications::payload::Payload;
use crate::core::requests::spawn_result::SpawnResult;
use crate::runtime::housekeeping::doctor::DoctorReport;
use crate::runtime::housekeeping::service::ServiceStatus;

/// What `spawn --json` prints for an agent, or with `--detach` or `--on`.
#[derive(serde::Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is needed")]
enum AgentsSpawn {
    Made(RequestView),
    Ended(SpawnResult),
}

fn schema<T: JsonSchema>(title: &str) -> Schema {
    let mut schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema
}

/// The schema of each file.
fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("chain-status", schema::<ChainStatusView>("spawn, resume, resume --all and watch with --json")),
        ("estimate", schema::<EstimateView>("spawn and resume with --estimate --json")),
        ("request", schema::<AgentsSpawn>("spawn --json of an agent, or with --detach or --on")),
        ("ls", schema::<Vec<ChainView>>("ls --json")),
        ("tree", schema::<Vec<AgentView>>("tree --json")),
        ("show", schema::<AgentDetailView>("show --json")),
        ("questions", schema::<Vec<QuestionView>>("questions --json")),
        ("history", schema::<Vec<ExchangeView>>("history --json")),
        ("stats", schema::<StatsView>("stats --json")),
        ("event", schema::<AgentEvent>("a line of logs --json, and of --stream before the last")),
        ("answer", schema::<AnsweredView>("answer --json")),
        ("stop", schema::<StoppedView>("stop and pause with --json")),
        ("tell", schema::<ToldView>("tell --json")),
        ("name", schema::<NamedView>("name --json")),
        ("init", schema::<SetupView<'_>>("init and uninit with --json")),
        ("rm", schema::<RmView<'_>>("rm --json")),
        ("gc", schema::<GcView<'_>>("gc --json")),
        ("fsck", schema::<FsckView>("fsck --json")),
        ("doctor", schema::<DoctorReport>("doctor --json")),
        ("import", schema::<ImportView<'_>>("import --json")),
        ("move", schema::<MoveView<'_>>("move --json")),
        ("access", schema::<Vec<AccessView>>("access --json")),
        ("hosts", schema::<Vec<HostView>>("hosts --json")),
        ("host-change", schema::<HostChangeView>("hosts drain, hosts undrain and hosts forget --json")),
        ("config", schema::<ConfigView>("config --json")),
        ("config-get", schema::<GetView>("config get --json")),
        ("service", schema::<ServiceStatus>("service status --json")),
        ("notifications", schema::<Vec<NotificationView>>("notifications --json")),
        ("notification-test", schema::<NotificationTestView>("notifications --test --json")),
        ("notification", schema::<Payload>("standard input of a command of [on]")),
        ("error", schema::<ErrorView>("an error of any command with --json")),
    ]
}

/// `AGENT_CLI_WRITE_SCHEMAS=1 cargo test --lib schemas` updates the files.
#[test]
fn the_schemas_in_the_documentation_are_those_of_the_views() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    let mut names: Vec<String> = Vec::new();
    for (name, schema) in schemas() {
        let path = folder.join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("AGENT_CLI_WRITE_SCHEMAS").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{} is out of date: AGENT_CLI_WRITE_SCHEMAS=1 cargo test --lib schemas", path.display());
        names.push(format!("{name}.json"));
    }
    let mut found: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    names.sort();
    assert_eq!(found, names, "and nothing else is there");
}
