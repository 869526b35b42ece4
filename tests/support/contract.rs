//! Whether what a command prints for programs is what `docs/schema` says, and nothing more.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

struct Contract {
    schemas: Schemas,
    names: HashMap<String, SchemaIndex>,
}

static CONTRACT: LazyLock<Contract> = LazyLock::new(|| {
    let (mut schemas, mut compiler, mut names) = (Schemas::new(), Compiler::new(), HashMap::new());
    compiler.enable_format_assertions();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    for file in fs::read_dir(folder).expect("the schemas are there") {
        let path = file.expect("a file").path();
        let text = fs::read_to_string(&path).expect("a schema is text");
        let mut schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
        close(&mut schema, true);
        let name = path.file_stem().expect("it has a name").to_string_lossy().into_owned();
        let location = format!("http://schema.test/{name}.json");
        compiler.add_resource(&location, schema).expect("a resource");
        let index = compiler.compile(&location, &mut schemas).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        names.insert(name, index);
    }
    Contract { schemas, names }
});

/// Refuses keys that a schema does not name: published schemas allow them, because later versions may add some.
/// `is_whole`: not a part that is mixed into another schema.
fn close(schema: &mut Value, is_whole: bool) {
    let Some(schema) = schema.as_object_mut() else { return };
    for (name, inner) in schema.iter_mut() {
        match (name.as_str(), inner) {
            ("properties" | "$defs", Value::Object(each)) => {
                each.values_mut().for_each(|inner| close(inner, name == "properties"));
            }
            ("items" | "additionalProperties", inner) => close(inner, true),
            ("oneOf" | "anyOf" | "allOf", Value::Array(each)) => each.iter_mut().for_each(|part| close(part, false)),
            _ => {}
        }
    }
    let has_keys = ["properties", "$ref", "oneOf", "anyOf", "allOf"].iter().any(|key| schema.contains_key(*key));
    if is_whole && has_keys && !schema.contains_key("additionalProperties") {
        schema.insert("unevaluatedProperties".to_owned(), json!(false));
    }
}

/// The schema of what a command line prints, where one object looks like this.
fn schema(arguments: &[&str], printed: &Value) -> &'static str {
    let has = |option: &str| arguments.contains(&option);
    let is_of = |kind: &str| printed["type"] == kind;
    let command = arguments.iter().find(|argument| !argument.starts_with('-')).copied().unwrap_or_default();
    match command {
        _ if is_of("error") => "error",
        "spawn" | "resume" | "watch" | "work" | "answer" if is_of("chain") => "chain-status",
        "spawn" | "resume" if has("--estimate") => "estimate",
        "spawn" | "resume" | "watch" if has("--stream") => "event",
        "spawn" => "request",
        "logs" => "event",
        "stop" | "pause" => "stop",
        "notifications" if has("--test") => "notification-test",
        "config" if has("get") => "config-get",
        "answer" => "answer",
        "access" => "access",
        "config" => "config",
        "doctor" => "doctor",
        "fsck" => "fsck",
        "gc" => "gc",
        "history" => "history",
        "hosts" if printed.is_array() => "hosts",
        "hosts" => "host-change",
        "import" => "import",
        "ls" => "ls",
        "move" => "move",
        "name" => "name",
        "notifications" => "notifications",
        "questions" => "questions",
        "init" | "uninit" => "init",
        "rm" => "rm",
        "service" => "service",
        "show" => "show",
        "stats" => "stats",
        "tell" => "tell",
        "tree" => "tree",
        other => panic!("{other} prints JSON that docs/schema does not describe: {printed}"),
    }
}

/// Fails the test if a command with these arguments has printed JSON that its schema does not describe.
pub(crate) fn check(arguments: &[OsString], stdout: &str) {
    let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).take_while(|argument| *argument != "--").collect();
    if !arguments.contains(&"--json") && !arguments.contains(&"--stream") {
        return;
    }
    for line in stdout.lines() {
        let printed: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let name = schema(&arguments, &printed);
        let Contract { schemas, names } = &*CONTRACT;
        let index = *names.get(name).unwrap_or_else(|| panic!("docs/schema/{name}.json is missing"));
        if let Err(error) = schemas.validate(&printed, index) {
            panic!("{arguments:?} prints what docs/schema/{name}.json does not say: {error:#}\n{printed:#}");
        }
    }
}

#[test]
fn a_key_that_the_schema_does_not_name_is_noticed() {
    let line = |extra: Value| {
        let mut error = json!({"type": "error", "error": {"kind": "x", "message": "m", "hints": [], "exit_status": 1}});
        error["error"].as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        error.to_string()
    };
    let arguments = ["ls", "--json"].map(OsString::from);
    check(&arguments, &line(json!({})));
    for wrong in [json!({"more": 1}), json!({"hints": "x"}), json!({"exit_status": -1})] {
        let noticed = std::panic::catch_unwind(|| check(&arguments, &line(wrong.clone())));
        assert!(noticed.is_err(), "{wrong}");
    }
}
