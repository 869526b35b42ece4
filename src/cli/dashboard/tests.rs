//! Tests the effects of keys, and the drawing at several widths.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;

use crate::app::lists::board::{Input, board};
use crate::app::testing;
use crate::app::view::outcome::Continuer;
use crate::cli::dashboard::draw::draw;
use crate::cli::dashboard::model::{Action, Continues, Model, Question, View};
use crate::core::attempt::ending::Ending;
use crate::core::id::FrameId;
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestKind;
use crate::core::steering::stop_order::StopKind;
use crate::core::text::wrap::columns;
use crate::store::testing::{new, refused, reply, store};
use crate::store::{NewFrame, Store};

const HOSTILE: &str = "\u{1b}[31mred\u{1b}]0;t\u{7}\u{9b}2J\u{202e}x\tand\u{200b}";

fn chain(store: &Store, task: &str) -> FrameId {
    let cwd = std::path::PathBuf::from("/home/dev/api");
    store.create_root(&NewFrame { cwd, ..new(task) }).unwrap()
}

fn ask(store: &Store, chain: FrameId, question: &str) {
    let caller = store.start(chain);
    store.request(caller, None, &[RequestKind::Ask(Form::text(question))]).unwrap();
    store.end(caller, &Ending::Suspended);
}

/// A model with a chain in each section.
fn model(store: &Store) -> Model {
    ask(store, chain(store, "release.md"), "Which server shall get the release, and when?\nThe old one is down.");
    let failed = chain(store, "migrate.md");
    store.end(store.start(failed), &refused("prompt is too long"));
    store.start(chain(store, "review.md"));
    chain(store, "docs.md");
    let done = chain(store, "licence.md");
    store.end(store.start(done), &reply("MIT"));
    shown(store)
}

fn shown(store: &Store) -> Model {
    let mut model = Model::new("/home/dev/api".into(), Continues::Person, true);
    let mut board = board(&testing::app(store), Input { all_projects: true, today: Timestamp::UNIX_EPOCH }).unwrap();
    // No agent runs in this test, so an agent that is recorded as running would count as abandoned.
    for (section, chain) in &mut board.chains {
        if chain.abandoned {
            chain.state = crate::core::chain::waiting_on::shown_state::ShownState::Working;
            *section = crate::app::lists::board::Section::Working;
        }
    }
    board.chains.sort_by_key(|(section, chain)| (*section, chain.state.rank()));
    model.zone = TimeZone::UTC;
    // No time has passed since then.
    model.now = Timestamp::UNIX_EPOCH;
    model.show(board);
    model
}

fn drawn(model: &Model, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model)).unwrap();
    let buffer = terminal.backend().buffer();
    // A wide character covers the next cell.
    let row = |y: u16| {
        let (mut line, mut x) = (String::new(), 0);
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(columns(symbol)).unwrap().max(1);
        }
        line.trim_end().to_owned()
    };
    (0..height).map(row).collect()
}

/// The drawn lines, without ids and empty lines.
fn text(model: &Model, width: u16, height: u16) -> String {
    let ids = model.board.chains.iter().map(|(_, chain)| chain.id.short());
    let shown = drawn(model, width, height).join("\n");
    ids.fold(shown, |shown, id| shown.replace(&id, "[ID]"))
}

fn press(model: &mut Model, key: char) -> Option<Action> {
    model.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE))
}

#[test]
fn each_width_shows_who_must_act() {
    let (_temp, store) = store();
    let model = model(&store);
    insta::assert_snapshot!(text(&model, 120, 20), @"
    2 need you, 1 working, 1 waiting, 1 done today                                         all projects; r continues a chain
    Needs you
    > asks          release.md                    Which server shall get the release, and when?⏎The old one is down.     0 s
      failed        migrate.md                    prompt is too long                                                     0 s

    Working
      working       review.md                                                                                            0 s

    Waiting
      can continue  docs.md                                                                                              0 s

    Done today
      done          licence.md                                                                                           0 s


    ------------------------------------------------------------------------------------------------------------------------
    [ID], 1 agent, $0.25, started 0 s ago in /home/dev/api
    Which server shall get the release, and when?
    The old one is down.
    a answer  l logs  o open  s stop  p pause  d remove  ? help  q quit
    ");
    insta::assert_snapshot!(text(&model, 80, 20), @"
    2 need you, 1 working, 1 waiting, 1 done today               r continues a chain
    Needs you
    > asks          release.md            Which server shall get the release, …  0 s
      failed        migrate.md            prompt is too long                     0 s

    Working
      working       review.md                                                    0 s

    Waiting
      can continue  docs.md                                                      0 s

    Done today
      done          licence.md                                                   0 s


    --------------------------------------------------------------------------------
    [ID], 1 agent, $0.25, started 0 s ago in /home/dev/api
    Which server shall get the release, and when?
    The old one is down.
    a answer  l logs  o open  s stop  p pause  d remove  ? help  q quit
    ");
    insta::assert_snapshot!(text(&model, 60, 15), @"
    2 need you, 1 working, 1 waiting, 1 done today
    Needs you
    > asks          release.md       Which server shall ge…  0 s
      failed        migrate.md       prompt is too long      0 s

    Working
      working       review.md                                0 s

    Waiting
      can continue  docs.md                                  0 s

    Done today
      done          licence.md                               0 s

    a answer  l logs  o open  s stop  p pause  ? help  q quit
    ");
    insta::assert_snapshot!(text(&model, 40, 20), @"
    2 need you           r continues a chain
    Needs you
    > asks  release.md                   0 s
        Which server shall get the release,…
      failed  migrate.md                 0 s
        prompt is too long

    Working
      working  review.md                 0 s

    Waiting
      can continue  docs.md              0 s

    ----------------------------------------
    [ID], 1 agent, $0.25, started 0 s
      ago in /home/dev/api
    Which server shall get the release, and
      when?
    The old one is down.
    a  l  o  s  p  d  ? help  q quit
    ");
    insta::assert_snapshot!(text(&model, 20, 10), @"
    2 need you
    Needs you
    > asks  release.md
        Which server sh…
      failed  migrate.md
        prompt is too l…

    Working
      working  review.md
    ? help  q quit
    ");
}

#[test]
fn nothing_is_shown_raw_or_wider_than_the_terminal() {
    let (_temp, store) = store();
    for _ in 0..2 {
        ask(&store, chain(&store, HOSTILE), &format!("{HOSTILE}\n{HOSTILE}"));
        ask(&store, chain(&store, &"漢字 🙂 e\u{301}".repeat(50)), &"漢字 👩‍👩‍👧 x".repeat(500));
    }
    let mut model = shown(&store);
    for (view, said) in [(View::Chains, None), (View::Help, None), (View::Chains, Some(HOSTILE.replace('\u{1b}', "?")))]
    {
        (model.view, model.said) = (view, said);
        for place in 0..3 {
            for width in [1, 2, 3, 4, 5, 7, 12, 20, 39, 60, 80] {
                for height in [1, 3, 5, 24] {
                    let lines = drawn(&model, width, height);
                    for line in lines {
                        assert!(!line.chars().any(char::is_control), "{line:?}");
                        assert!(columns(&line) <= usize::from(width), "{width}: {line:?}");
                    }
                }
            }
            if place == 0 {
                press(&mut model, 'g')
            } else {
                press(&mut model, 'j')
            };
            model.view = view;
        }
    }
}

#[test]
fn colours_show_who_must_act_and_can_be_left_out() {
    let (_temp, store) = store();
    let mut model = model(&store);
    let colours = |model: &Model| {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, model)).unwrap();
        let cells = terminal.backend().buffer().content().iter();
        let found: std::collections::HashSet<Color> = cells.flat_map(|cell| [cell.fg, cell.bg]).collect();
        found
    };
    let found = colours(&model);
    assert!([Color::Yellow, Color::Red, Color::Green].iter().all(|colour| found.contains(colour)), "{found:?}");
    assert!(!found.iter().any(|colour| matches!(colour, Color::Rgb(..) | Color::Indexed(_))), "{found:?}");
    model.has_colours = false;
    assert_eq!(colours(&model).into_iter().collect::<Vec<_>>(), [Color::Reset]);
}

#[test]
fn keys_act_on_the_selected_chain() {
    let (_temp, store) = store();
    let mut model = model(&store);
    let ids: Vec<FrameId> = model.board.chains.iter().map(|(_, chain)| chain.id).collect();
    let [asks, failed, works, waits, done] = ids[..] else { panic!("{ids:?}") };
    assert_eq!(model.selected, Some(asks));
    let enter = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!((press(&mut model, 'a'), model.press(enter)), (Some(Action::Answer(asks)), Some(Action::Answer(asks))));
    assert_eq!((press(&mut model, 'l'), press(&mut model, 'o')), (Some(Action::Logs(asks)), Some(Action::Open(asks))));
    assert_eq!((press(&mut model, 'r'), model.said.as_deref()), (None, Some("it waits for your answer: a")));
    press(&mut model, 'j');
    assert_eq!((press(&mut model, 'r'), &model.said), (Some(Action::Resume(failed)), &None));
    assert_eq!((press(&mut model, 'a'), model.said.as_deref()), (None, Some("it asks nothing")));
    assert_eq!(model.press(enter), Some(Action::Logs(failed)));
    assert_eq!((press(&mut model, 'd'), model.view), (None, View::Confirm(Question::Remove(failed))));
    assert_eq!(press(&mut model, 'y'), Some(Action::Remove(failed)));
    for other in ['d', 'u', 'x'] {
        press(&mut model, 'd');
        let control = KeyEvent::new(KeyCode::Char(other), KeyModifiers::CONTROL);
        assert_eq!((model.press(control), model.view, model.selected), (None, View::Chains, Some(failed)), "{other}");
    }
    press(&mut model, 'j');
    assert_eq!((press(&mut model, 'd'), model.said.as_deref()), (None, Some("it is working: s stops it")));
    assert_eq!(press(&mut model, 'p'), Some(Action::Stop(works, StopKind::Pause)));
    assert_eq!((press(&mut model, 's'), model.view), (None, View::Confirm(Question::Stop(works))));
    assert_eq!((press(&mut model, 'x'), model.view), (None, View::Chains), "any other key is a no");
    press(&mut model, 's');
    assert_eq!(press(&mut model, 'y'), Some(Action::Stop(works, StopKind::Stop)));
    press(&mut model, 'j');
    assert_eq!(press(&mut model, 'r'), Some(Action::Resume(waits)));
    press(&mut model, 'G');
    assert_eq!(model.selected, Some(done));
    for key in ['s', 'p', 'r', 'a'] {
        assert_eq!(press(&mut model, key), None, "{key}");
        assert!(model.said.is_some(), "{key}");
    }
    press(&mut model, 'g');
    assert_eq!(model.selected, Some(asks));
    for keys in ["alospd?q", "losrd?q", "losp?q", "losprd?q", "lod?q"] {
        let shown = drawn(&model, 80, 20).pop().unwrap();
        assert_eq!(shown.split("  ").filter_map(|key| key.chars().next()).collect::<String>(), keys, "{shown}");
        press(&mut model, 'j');
    }
    press(&mut model, 'g');
    press(&mut model, '?');
    assert_eq!((press(&mut model, 's'), model.view), (None, View::Chains), "any key leaves the help");
    assert_eq!((press(&mut model, 't'), model.all_projects), (Some(Action::Reload), false));
    assert_eq!(press(&mut model, 'q'), Some(Action::Quit));
    let control = |key| KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
    assert_eq!(
        [model.press(control('c')), model.press(control('z'))],
        [Some(Action::Interrupt), Some(Action::Suspend)]
    );
}

#[test]
fn the_selection_stays_with_its_chain() {
    let (_temp, store) = store();
    let mut model = model(&store);
    press(&mut model, 'j');
    let failed = model.selected;
    ask(&store, chain(&store, "new.md"), "And this?");
    let Model { board: again, .. } = shown(&store);
    model.show(again);
    assert_eq!((model.selected, model.board.chains[0].1.task.as_str()), (failed, "new.md"));
    press(&mut model, 's');
    model.board.chains.retain(|(_, chain)| Some(chain.id) != failed);
    let left = std::mem::take(&mut model.board);
    let next = left.chains[2].1.id;
    model.show(left);
    assert_eq!((model.selected, model.view), (Some(next), View::Chains), "what is gone is not stopped");
}

#[test]
fn leaving_a_watch_that_runs_agents_needs_a_word() {
    let (_temp, store) = store();
    let mut model = model(&store);
    model.continues = Continues::Here;
    assert_eq!(press(&mut model, 'q'), Some(Action::Quit), "it runs none");
    for (_, chain) in &mut model.board.chains {
        chain.refresh_activities(&store, Timestamp::now()).unwrap();
    }
    model.continues = Continues::Elsewhere(Continuer::Service);
    assert!(drawn(&model, 120, 20)[0].ends_with("the service continues chains"));
}
