//! The program explains itself.

use crate::world::World;

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    let help = |command: &[&str]| {
        let outcome = world.command(command.iter().chain(&["--help"])).run();
        // Where a default stands on a line of its own, clap indents the empty line above it.
        outcome.succeeds().stdout.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(help(&[]), @"
    Run chains of headless Claude Code agents that can pause for minutes or weeks

    An agent may spawn agents, to any depth, and any of them may stop to wait for a person, a file, a
    time or another agent. While it waits, nothing runs and nothing is paid. `resume` carries on where
    the chain stopped.

    Usage: agent-cli [OPTIONS] <COMMAND>

    Commands:
      spawn        Start agents, each of which follows the instructions in a FILE
      resume       Carry a chain on where it stopped, or see how it stands
      ask          Ask a person, from inside an agent
      wait         Wait for a file, a time or a command, from inside an agent
      questions    List the questions that wait for an answer, or show one in full
      answer       Answer a question
      ls           List the chains, the newest first
      tree         Show a chain as a tree: every agent, its state, what it waits for and how long
      show         Show everything that is known of a frame: its sessions, transcripts, costs and
                   history
      doctor       Check claude, login, settings, PATH and the state directory, and say what to do
      export       Write a chain, with its transcripts, as one file that can be resumed on another
                   machine
      import       Take up a chain that `agent-cli export` wrote
      rm           Remove a chain, whatever its state
      gc           Remove the chains that were finished long ago, and files that nothing uses any more
      fsck         Check the database, the files, the transcripts and the leases against each other
      completions  Print completions for a shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Environment:
      AGENT_CLI_STATE_DIR        where chains are kept
      AGENT_CLI_CLAUDE           the claude program; --claude is stronger
      AGENT_CLI_PERMISSION_MODE  the default of --permission-mode
      AGENT_CLI_LOG              what to say on standard error: debug, agent_cli::runtime=trace

    Exit status:
        0  done, or waiting
        1  the agent failed
        2  usage, or a request that is refused
        3  no such frame
        4  claude is missing, unusable or refused
       75  waiting (with --exit-code)
      130  interrupted
    ");
    insta::assert_snapshot!(help(&["spawn"]), @"
    Start agents, each of which follows the instructions in a FILE

    Drives the agent, and every agent that it starts, until nothing in the tree can run. Prints the
    reply when the agent is done, or `SGN_PEND_STARTED (ID)` when the tree waits for something.

    Several files start as many agents, side by side. Their replies are printed together, each under a
    heading, when all are over; ID is that of the whole group. One that fails does not stop the others:
    the exit status is 1 then, and `resume ID` tries those that failed again.

    Called by an agent, it only records the request. Where the agent's call can be suspended, it returns
    the reply when there is one. Elsewhere this prints `SGN_PEND_STARTED (ID)` at once: the child runs
    when the agent has ended its turn, and a prompt brings the reply.

    Usage: agent-cli spawn [OPTIONS] [FILE]... [-- <CLAUDE ARGS>...]

    Arguments:
      [FILE]...
              A file with the instructions of an agent, `-` for standard input. Several files are for as
              many agents, which run at the same time

      [CLAUDE ARGS]...
              Arguments for every claude of the agents and their children; resume takes them in the
              place of all earlier ones

    Options:
          --prompt <TEXT>
              Tell an agent TEXT, instead of a file that it is to follow. May be given several times,
              also beside files

          --cwd <DIR>
              Where the agents work, with the settings of that project [default: the current directory]

          --worktree
              Give each agent a git worktree of its own, on a new branch that begins with what is
              committed

          --fork-from <ID>
              Begin with the conversation of another agent, or of any Claude session, which is left as
              it is

          --model <MODEL>
              The model, as for `claude --model` [default with --fork-from: that of the conversation]

          --permission-mode <MODE>
              What the agent may do, as for `claude --permission-mode` [default:
              $AGENT_CLI_PERMISSION_MODE]

          --on-permission <WHAT>
              What becomes of a call that needs an approval: deny it, or ask a person and pause
              [default: deny, or as the caller]

              [possible values: deny, ask]

          --claude <PATH>
              The claude program [default: $AGENT_CLI_CLAUDE, or claude in PATH]

          --no-hooks
              Let agents pause with signals, not inside a tool call

          --no-stale-check
              Do not tell agents which files changed while they waited

          --json
              Print one JSON object: id, status, reply, members, waiting_on, busy, errors, denied,
              usage, cost_usd

          --exit-code
              Exit with 75 while the tree waits

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Limits of the whole tree, until `resume` changes them:
          --max-depth <N>
              Agents from the root down to the deepest [at first: 64]

          --max-frames <N>
              Agents in the tree [at first: 256, or --max-depth if that is more]

          --max-parallel <N>
              Agents that run at the same time, whichever commands run them [at first: 4]

          --max-budget-usd <USD>
              Start no agent once so much was spent, in US dollars [at first: any amount]

    Examples:
      agent-cli spawn ins1.md --permission-mode acceptEdits -- --max-turns 50
      agent-cli spawn review1.md review2.md --fork-from 4f2c1a90
      agent-cli spawn --prompt 'Which licence is this under?'
    ");
    insta::assert_snapshot!(help(&["resume"]), @"
    Carry a chain on where it stopped, or see how it stands

    Prints the reply when the agent is done (again, if it was done before), `SGN_PEND_STARTED (ID)` when
    the tree waits for something new, and `SGN_PEND_ONGOING` when it still waits for what it waited for.
    A tree that waits is asked in milliseconds, without starting claude: call it from cron as often as
    you like.

    Usage: agent-cli resume [OPTIONS] <ID> [-- <CLAUDE ARGS>...]

    Arguments:
      <ID>
              A frame, any Claude session it ever had, one of its questions, or another Claude session;
              four characters or more

      [CLAUDE ARGS]...
              Arguments for every claude of the agents and their children; resume takes them in the
              place of all earlier ones

    Options:
          --claude <PATH>
              The claude program from now on [default: $AGENT_CLI_CLAUDE for this time, or the one that
              the chain began with]

          --now
              Try again at once what waits for a usage limit, or for its next try

          --no-stale-check
              Do not tell agents which files changed while they waited

          --model <MODEL>
              Another model from now on, as for `claude --model`

          --permission-mode <MODE>
              Another permission mode from now on, as for `claude --permission-mode`

          --json
              Print one JSON object: id, status, reply, members, waiting_on, busy, errors, denied,
              usage, cost_usd

          --exit-code
              Exit with 75 while the tree waits

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Limits of the whole tree, until `resume` changes them:
          --max-depth <N>
              Agents from the root down to the deepest [at first: 64]

          --max-frames <N>
              Agents in the tree [at first: 256, or --max-depth if that is more]

          --max-parallel <N>
              Agents that run at the same time, whichever commands run them [at first: 4]

          --max-budget-usd <USD>
              Start no agent once so much was spent, in US dollars [at first: any amount]

    Example, every minute by cron:
      * * * * * agent-cli resume 4f2c1a90 >> chain.log
    ");
    insta::assert_snapshot!(help(&["ask"]), @"
    Ask a person, from inside an agent

    Records the question for the calling agent. Where the agent's call can be suspended, it returns the
    answer when there is one, and nothing runs until then. Elsewhere this prints `SGN_PEND_STARTED (ID)`
    at once: the agent then ends its turn, and a prompt brings the answer when the chain is resumed.

    Usage: agent-cli ask [OPTIONS] <QUESTION>

    Arguments:
      <QUESTION>
              The question

    Options:
      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["wait"]), @"
    Wait for a file, a time or a command, from inside an agent

    Records the wait for the calling agent, which the first `agent-cli resume` after it is over carries
    on. Where the agent's call can be suspended, it returns then. Elsewhere, and with --command, this
    prints `SGN_PEND_STARTED (ID)` at once, and the agent ends its turn.

    Usage: agent-cli wait [OPTIONS] <--file <PATH>|--until <TIME>|--for <DURATION>|--command <COMMAND>>

    Options:
          --file <PATH>
              Until this file exists

          --until <TIME>
              Until this time, for instance 2026-12-24T18:00:00Z

          --for <DURATION>
              For this long, for instance 90s, 2h or 3d

          --command <COMMAND>
              Until this shell command exits with 0

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["questions"]), @"
    List the questions that wait for an answer, or show one in full

    A list names the call that needs an approval, or the first line of a question, and says how much
    more there is. With an id, everything is shown: of a call, each line of what it acts on, and files
    as they would change.

    Usage: agent-cli questions [OPTIONS] [ID]

    Arguments:
      [ID]
              Show this one in full, or all of this chain or agent

    Options:
          --all
              Answered ones too

          --json
              Print a JSON array

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["answer"]), @r#"
    Answer a question

    Records the answer and prints the command that carries the chain on. The agent gets the answer
    exactly as given. A question can be answered once; until an agent has the answer, --replace puts
    another in its place.

    Where a question offers choices, the answer may be the number or the label of one, of several with
    commas between them where several may be chosen, or any other text. Where it is a permission for a
    call that is asked for, the answer is `allow`, or `deny`, perhaps with a reason for the agent after
    it. So it is with a plan; --mode says in which permission mode the agent then continues.

    Usage: agent-cli answer [OPTIONS] <ID> [ANSWER]

    Arguments:
      <ID>
              The question's id, as `agent-cli questions` shows it, or that of a chain or an agent with
              one open question

      [ANSWER]
              The answer, or the numbers of choices [default: standard input, without its last line
              break]

    Options:
          --text <TEXT>
              An answer that is a text even where it looks like the number of a choice

          --mode <MODE>
              The permission mode in which an agent continues whose plan is allowed [default: the one
              that it was started in]

          --replace
              Replace the answer that was given, unless it was delivered

          --json
              Print a JSON object: question, root, next

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli answer 4f2c1a90 "Jan 1st"
      agent-cli answer 4f2c1a90 1,3
      agent-cli answer 4f2c1a90 --text 7
      agent-cli answer 4f2c1a90 -- --force
      agent-cli answer 4f2c1a90 "deny use the test server"
      agent-cli answer 4f2c1a90 allow --mode acceptEdits
      agent-cli answer 4f2c1a90 < plan.md
    "#);
    insta::assert_snapshot!(help(&["ls"]), @"
    List the chains, the newest first

    Usage: agent-cli ls [OPTIONS]

    Options:
          --json          Print a JSON array
      -v, --verbose       Say on standard error what happens, step by step, as on a terminal
      -q, --quiet         Say nothing on standard error but errors
          --color <WHEN>  When to use colours [default: auto] [possible values: auto, always, never]
      -h, --help          Print help
    ");
    insta::assert_snapshot!(help(&["tree"]), @"
    Show a chain as a tree: every agent, its state, what it waits for and how long

    Usage: agent-cli tree [OPTIONS] [ID]

    Arguments:
      [ID]  A frame, or a session it had [default: all chains that are not done]

    Options:
          --json          Print a JSON array of frames, parents before their children
      -v, --verbose       Say on standard error what happens, step by step, as on a terminal
      -q, --quiet         Say nothing on standard error but errors
          --color <WHEN>  When to use colours [default: auto] [possible values: auto, always, never]
      -h, --help          Print help
    ");
    insta::assert_snapshot!(help(&["show"]), @"
    Show everything that is known of a frame: its sessions, transcripts, costs and history

    Usage: agent-cli show [OPTIONS] <ID>

    Arguments:
      <ID>  A frame, or a session it had

    Options:
          --json          Print a JSON object
      -v, --verbose       Say on standard error what happens, step by step, as on a terminal
      -q, --quiet         Say nothing on standard error but errors
          --color <WHEN>  When to use colours [default: auto] [possible values: auto, always, never]
      -h, --help          Print help
    ");
    insta::assert_snapshot!(help(&["doctor"]), @"
    Check claude, login, settings, PATH and the state directory, and say what to do

    Makes no request and starts no agent. A warning tells what could be better, a problem what keeps
    chains from running. Exits with 0 when there is no problem, with 4 when claude is missing or
    unusable, and with 1 otherwise.

    With --cron, the login, the settings and the directories are checked as a `resume` from cron would
    find them: of this shell's environment it has HOME, LOGNAME and USER, and of a chain what is
    recorded. What the crontab sets is not seen. An example of a line follows, and the names of the
    variables that only this shell has.

    Usage: agent-cli doctor [OPTIONS]

    Options:
          --cwd <DIR>
              Where agents would work [default: the current directory]

          --claude <PATH>
              The claude program [default: $AGENT_CLI_CLAUDE, or claude in PATH]

          --cron
              Check what cron would find when it resumes the chains of this shell

          --json
              Print a JSON object: claude, checks, and with --cron also cron

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["export"]), @"
    Write a chain, with its transcripts, as one file that can be resumed on another machine

    The file holds everything that was said in the chain: keep it as private as the chain. The chain
    itself stays; resume only one of the two. `agent-cli import` takes it up.

    Usage: agent-cli export [OPTIONS] <ID>

    Arguments:
      <ID>
              A frame of the chain, or a session it had

    Options:
      -o, --output <FILE>
              Where to write it [default: standard output]

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["import"]), @r"
    Take up a chain that `agent-cli export` wrote

    Prints the id of its root. All of the chain is taken up, or nothing. Its agents work where they
    worked before; where that is another directory here, say so with --cwd. They run this machine's
    claude, with the PATH of this shell.

    A chain brings instructions, permissions, arguments for claude and commands with it. So they are
    listed first, and the chain is taken up only with --trust, or when you say so on a terminal.

    Usage: agent-cli import [OPTIONS] <FILE>

    Arguments:
      <FILE>
              The file; - is standard input

    Options:
          --cwd <OLD=NEW>
              A directory and those below it that have another path here; may be given several times

          --trust
              Take the chain up: you would run all that it would run

          --json
              Print a JSON object: id, next; without --trust what the chain would run

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli import chain.tar
      ssh old agent-cli export 4f2c1a90 | agent-cli import - --trust --cwd /home/ann/work=/home/bob/work
    ");
    insta::assert_snapshot!(help(&["gc"]), @"
    Remove the chains that were finished long ago, and files that nothing uses any more

    A chain goes as a whole: its agents, questions, replies and log, its files in the state directory,
    and the transcripts of its sessions in Claude Code's folders. One in which anything still waits or
    runs stays, and so do transcripts of sessions that agent-cli did not start. Git worktrees of its
    agents go, with their branches, when they are clean and their commits are on another branch, not
    counting those of agents; a chain with one that holds work stays. `agent-cli export` saves a chain
    before.

    Usage: agent-cli gc [OPTIONS]

    Options:
          --older-than <DURATION>
              Only chains in which nothing has changed for this long

              [default: 30d]

          --failed
              Also chains that failed or were stopped, and could still be resumed

          --ignored
              Also worktrees that hold ignored files other than build output and caches

          --dry-run
              Only say what would be removed

          --json
              Print a JSON object

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["fsck"]), @"
    Check the database, the files, the transcripts and the leases against each other

    Says in words what does not fit, and ends with 1 when something is left to repair. Chains may run
    meanwhile.

    Usage: agent-cli fsck [OPTIONS]

    Options:
          --repair
              Repair what can be repaired without losing anything: permissions, copies of transcripts,
              leftovers

          --json
              Print a JSON object

      -v, --verbose
              Say on standard error what happens, step by step, as on a terminal

      -q, --quiet
              Say nothing on standard error but errors

          --color <WHEN>
              When to use colours

              [default: auto]
              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["completions"]), @"
    Print completions for a shell

    Usage: agent-cli completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>  The shell [possible values: bash, elvish, fish, powershell, zsh]

    Options:
      -v, --verbose       Say on standard error what happens, step by step, as on a terminal
      -q, --quiet         Say nothing on standard error but errors
          --color <WHEN>  When to use colours [default: auto] [possible values: auto, always, never]
      -h, --help          Print help

    Example:
      agent-cli completions bash > ~/.local/share/bash-completion/completions/agent-cli
    ");
}

#[test]
fn completions_are_scripts_for_shells() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = world.run(&["completions", shell]);
        assert!(outcome.succeeds().stdout.contains("agent-cli"), "{shell}");
    }
    world.run(&["completions", "cmd.exe"]).exits_with(2);
}

#[test]
fn the_version_is_printed() {
    let world = World::new();
    let outcome = world.run(&["--version"]);
    assert_eq!(outcome.succeeds().stdout, concat!("agent-cli ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn what_is_no_command_is_refused() {
    let world = World::new();
    world.run(&["spwan", "root.md"]).exits_with(2);
    world.run(&["spawn"]).exits_with(2);
    world.run(&["resume"]).exits_with(2);
    world.run(&["ls", "--frobnicate"]).exits_with(2);
}
