//! A new start in a new session: `resume ID --afresh`.

use serde_json::Value;

use crate::outcome::Outcome;
use crate::world::World;

/// An agent that works, asks, and replies with everything that it was told.
const ASKS: &str = "run echo one >> marks\nask When?\nask Where?\nreply {results}\n";

fn world(world: World, task: &str) -> World {
    world.file("root.md", task);
    world
}

/// A chain that waits for an answer.
fn asking(with: World) -> (World, String) {
    let world = world(with, ASKS);
    let id = world.run(&["spawn", "root.md"]).started();
    (world, id)
}

fn afresh(world: &World, id: &str) -> Outcome {
    world.run(&["resume", id, "--afresh"])
}

fn shown(world: &World, id: &str) -> Value {
    world.run(&["show", id, "--json"]).json()
}

/// The outcomes of all attempts of an agent, with `*` for those that were kept.
fn outcomes(world: &World, id: &str) -> Vec<String> {
    let of_one = |session: &Value| {
        let kept = if session["kept"] == true { "*" } else { "" };
        format!("{}{kept}", session["outcome"].as_str().unwrap_or("running"))
    };
    shown(world, id)["sessions"].as_array().expect("attempts").iter().map(of_one).collect()
}

#[test]
fn an_agent_that_waits_writes_a_summary_now_and_continues_with_it_when_it_has_its_result() {
    for with in [World::with_hooks(), World::new()] {
        let (world, id) = asking(with);
        afresh(&world, &id).prints("SGN_PEND_ONGOING");
        assert_eq!(outcomes(&world, &id), ["requested*", "summary"]);
        let (old, new) = (world.session(0), shown(&world, &id)["session"].as_str().expect("an id").to_owned());
        assert!(world.session(1) == old && new != old, "{old} {new}");
        // Nothing else is done for it.
        world.run(&["resume", &id]).prints("SGN_PEND_ONGOING");
        assert_eq!(world.starts(), 2);
        world.answer("now");
        world.run(&["resume", &id]).started();
        assert_eq!(world.session(2), new);
        world.answer("here");
        world.run(&["resume", &id]).prints("now; here");
        assert_eq!(outcomes(&world, &id), ["requested*", "summary", "requested*", "reply*"]);
        assert_eq!((world.session(3), world.marks().as_str()), (new, "one\n"));
        assert_eq!(world.run(&["fsck"]).succeeds().stdout, "");
    }
}
