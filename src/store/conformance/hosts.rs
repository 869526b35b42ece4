//! Tests hosts that share a database. With a database in a file, there is only one.

use std::fs;
use std::time::Duration;

use crate::core::attempt::ending::Ending;
use crate::core::chain::frame_state::FrameState;
use crate::core::housekeeping::hosting::{Elsewhere, Labels, NotTaken, Offer};
use crate::core::housekeeping::rights::{Grant, Right};
use crate::core::id::FrameId;
use crate::store::conformance::{Open, fresh};
use crate::store::error::{ArchiveError, StoreError};
use crate::store::handle::Store;
use crate::store::hosts::{Host, Hosts, Terms, Wanted};
use crate::store::records::{Attempts, Caller, Extent, NewFrame};
use crate::store::sql::testing::{end_leases, lose_copies};
use crate::store::testing::{another_host, ask, attempt, new, reply};

fn hosts(store: &Store) -> &dyn Hosts {
    store.hosts().expect("they share a server")
}

fn known(store: &Store, name: &str) -> Host {
    hosts(store).hosts().unwrap().into_iter().find(|host| host.name == name).unwrap()
}

/// A chain that waits for an answer in a directory that exists, with a kept session.
fn asking(store: &Store, text: &str) -> FrameId {
    let cwd = store.dir().path().to_owned();
    let root = store.create_root(&NewFrame { cwd, ..new("task") }).unwrap();
    let caller = store.start(root);
    store.request(caller, None, &[ask("When?")]).unwrap();
    store.dir().frame_dir(root).unwrap();
    fs::write(store.dir().checkpoint(root, caller.attempt), text).unwrap();
    store.end(caller, &Ending::Suspended);
    root
}

pub(crate) fn a_lease_is_seen_by_other_hosts_until_it_ends(open: Open) {
    let (_temp, here) = fresh(open);
    let Some((_other, there)) = another_host(&here) else {
        assert!(here.hosts().is_none());
        return;
    };
    let terms = Terms { lease: Duration::from_secs(100), labels: "gpu".parse().unwrap(), runs_agents: false };
    hosts(&there).check_clock().expect("it is the clock of the server");
    let renewed = hosts(&there).renew(&terms).unwrap();
    assert!(!renewed.is_draining, "{renewed:?}");
    let root = here.root();
    let seen = known(&there, "here");
    assert_eq!((seen.is_here, seen.chains, seen.agents), (false, 1, 0));
    assert!(known(&there, "there").is_here && known(&here, "there").labels == terms.labels);
    assert!(known(&here, "there").lease.is_some_and(|left| left > Duration::from_secs(90)));
    let in_use = hosts(&there).forget("here");
    assert!(matches!(in_use, Err(StoreError::HostInUse { host, .. }) if host == "here"));
    let before = hosts(&here).renew(&terms).unwrap();
    let alive = hosts(&there).take(Wanted::Chain(root), &Offer::default());
    assert!(matches!(alive, Err(StoreError::NotTaken { why: NotTaken::Alive(_), .. })), "{alive:?}");
    end_leases(&there);
    assert_eq!(known(&there, "here").lease, None);
    assert!(matches!(here.begin(root, &attempt(Vec::new())), Err(StoreError::LeaseEnded(host)) if host == "here"));
    let again = hosts(&here).renew(&terms).unwrap();
    assert!(again.since > before.since, "others may have taken its chains: {before:?}, {again:?}");
    assert_eq!(hosts(&here).renew(&terms).unwrap().since, again.since);
    here.begin(root, &attempt(Vec::new())).unwrap();
    assert_eq!(known(&there, "here").agents, 1);
}

pub(crate) fn a_drained_host_begins_nothing(open: Open) {
    let (_temp, here) = fresh(open);
    let Some((_other, there)) = another_host(&here) else { return };
    let root = here.root();
    hosts(&there).drain("here", true).unwrap();
    let terms = Terms { lease: Duration::from_secs(100), labels: Labels::default(), runs_agents: false };
    // Others may take its chains as soon as no agent of it runs.
    let lease = || hosts(&there).hosts().unwrap().into_iter().find(|host| host.name == "here").unwrap().lease;
    for runs_agents in [true, false] {
        end_leases(&here);
        assert!(hosts(&here).renew(&Terms { runs_agents, ..terms.clone() }).unwrap().is_draining);
        assert_eq!(lease().is_some(), runs_agents);
    }
    assert!(matches!(here.begin(root, &attempt(Vec::new())), Err(StoreError::Draining(_))));
    hosts(&there).drain("here", false).unwrap();
    hosts(&here).renew(&terms).unwrap();
    here.begin(root, &attempt(Vec::new())).unwrap();
    assert!(matches!(hosts(&there).drain("nobody", true), Err(StoreError::UnknownHost(_))));
    assert!(matches!(hosts(&there).forget("nobody"), Err(StoreError::UnknownHost(_))));
}

pub(crate) fn a_chain_is_taken_with_its_files_and_what_comes_late_is_refused(open: Open) {
    let (_temp, here) = fresh(open);
    let Some((_other, there)) = another_host(&here) else { return };
    let text = "a long conversation\n".repeat(200_000);
    let root = asking(&here, &text);
    let kept = here.frame(root).unwrap().unwrap().checkpoint.unwrap();
    let question = here.questions(None, true).unwrap()[0].id;
    there.answer(question, "now").unwrap();
    let late = attempt(here.deliveries(root).unwrap().into_iter().map(|it| (it.request, it.result)).collect());
    here.begin(root, &late).unwrap();
    let ran = |store: &Store| {
        let last = store.attempts(Attempts::Of(Extent::One(root))).unwrap().pop().unwrap();
        (last.ran_here, last.host.is_some())
    };
    assert_eq!((ran(&here), ran(&there)), ((true, false), (false, true)));
    let caller = Caller { frame: root, attempt: late.id };
    let offer = Offer { shared: vec![here.dir().path().to_owned()], ..Offer::default() };
    assert_eq!(hosts(&there).take(Wanted::Any, &offer).unwrap(), None, "its host may be running it");
    end_leases(&there);
    let pinned = hosts(&there).take(Wanted::Chain(root), &Offer::default());
    assert!(matches!(pinned, Err(StoreError::NotTaken { why: NotTaken::NotShared { .. }, .. })), "{pinned:?}");
    assert_eq!(hosts(&there).take(Wanted::Any, &offer).unwrap(), Some(root));
    assert_eq!(hosts(&there).take(Wanted::Any, &offer).unwrap(), None, "it is taken once");
    assert_eq!(fs::read_to_string(there.dir().checkpoint(root, kept)).unwrap(), text);
    assert_eq!(there.elsewhere(root).unwrap(), None);
    let is_elsewhere = |error: StoreError| {
        let place = Elsewhere::Host("there".into());
        matches!(error, StoreError::OtherHost { elsewhere, .. } if elsewhere == place)
    };
    hosts(&here)
        .renew(&Terms { lease: Duration::from_secs(100), labels: Labels::default(), runs_agents: false })
        .unwrap();
    assert!(is_elsewhere(here.request(caller, None, &[ask("And where?")]).unwrap_err()));
    assert!(is_elsewhere(here.give_messages(caller, 1000).unwrap_err()));
    assert!(is_elsewhere(here.try_end(caller, &reply("late")).unwrap_err()));
    let running = there.attempts(Attempts::RunningOf(root)).unwrap().remove(0);
    assert_eq!((running.id, running.host.as_deref()), (late.id, Some("here")));
    there.end(caller, &Ending::Died { worked: true, how: "its host was lost".into() });
    assert!(is_elsewhere(here.try_end(caller, &reply("late")).unwrap_err()));
    assert!(matches!(
        there.try_end(caller, &reply("late")),
        Err(StoreError::StaleCaller { .. } | StoreError::Illegal(_))
    ));
    assert_ne!(there.frame(root).unwrap().unwrap().state, FrameState::Done);
}

pub(crate) fn a_forgotten_host_leaves_its_chains_to_others(open: Open) {
    let (_temp, here) = fresh(open);
    let Some((_other, there)) = another_host(&here) else { return };
    let root = asking(&here, "a conversation\n");
    let lacking = asking(&here, "another one\n");
    lose_copies(&there, lacking);
    end_leases(&there);
    assert_eq!(hosts(&there).forget("here").unwrap(), 2);
    assert_eq!(here.elsewhere(root).unwrap(), Some(Elsewhere::Waiting));
    let free = here.begin(root, &attempt(Vec::new()));
    assert!(matches!(free, Err(StoreError::OtherHost { elsewhere: Elsewhere::Waiting, .. })), "{free:?}");
    let lacks = hosts(&there).take(Wanted::Chain(lacking), &Offer::default());
    assert!(matches!(lacks, Err(StoreError::Archive(ArchiveError::NoCopy(frame))) if frame == lacking), "{lacks:?}");
    assert_eq!(there.elsewhere(lacking).unwrap(), Some(Elsewhere::Waiting), "nothing has changed");
    assert!(hosts(&there).hosts().unwrap().iter().all(|host| host.name != "here"));
    assert_eq!(hosts(&there).take(Wanted::Chain(root), &Offer::default()).unwrap(), Some(root));
    // The forgotten host can come back.
    assert_eq!(hosts(&here).take(Wanted::Chain(lacking), &Offer::default()).unwrap(), Some(lacking));
    let labelled = NewFrame { on: Some("gpu".parse().unwrap()), cwd: here.dir().path().to_owned(), ..new("task") };
    let labelled = here.create_root(&labelled).unwrap();
    assert_eq!(hosts(&there).take(Wanted::Any, &Offer::default()).unwrap(), None);
    let offer = Offer { labels: "big gpu".parse().unwrap(), ..Offer::default() };
    assert_eq!(hosts(&there).take(Wanted::Any, &offer).unwrap(), Some(labelled));
}

pub(crate) fn rights_are_given_and_taken_away(open: Open) {
    let (_temp, here) = fresh(open);
    let Some(hosts) = here.hosts() else { return };
    // The tests' cluster has this role.
    let member = Grant { user: "pg_monitor".into(), project: "/srv/a b".into(), right: Right::Steer };
    let user = hosts.change_rights(&[Grant { user: "nobody \"here".into(), ..member.clone() }], true);
    assert!(matches!(&user, Err(StoreError::UnknownUser(user)) if user == "nobody \"here"), "{user:?}");
    assert!(hosts.change_rights(std::slice::from_ref(&member), true).unwrap());
    assert!(!hosts.change_rights(std::slice::from_ref(&member), true).unwrap(), "it has the right");
    let both = [Grant { right: Right::Answer, ..member.clone() }, member.clone()];
    assert!(hosts.change_rights(&both, true).unwrap());
    assert_eq!(hosts.rights().unwrap(), both);
    assert!(hosts.change_rights(&both[1..], false).unwrap());
    assert_eq!(hosts.rights().unwrap(), both[..1]);
    assert!(!hosts.change_rights(&both[1..], false).unwrap());
}
