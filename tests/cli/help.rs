//! The program explains itself.

use crate::world::World;

#[test]
fn without_a_command_the_usage_is_printed_whatever_the_options() {
    let world = World::new();
    let usage = world.run(&[]).exits_with(2).stderr.clone();
    assert!(usage.contains("Usage: agent-cli [OPTIONS] <COMMAND>"), "{usage}");
    for options in [&["--quiet"][..], &["-v", "--color", "never"]] {
        assert_eq!(world.run(options).exits_with(2).stderr, usage, "{options:?}");
    }
}

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    let help = |command: &[&str]| {
        let outcome = world.command(command.iter().chain(&["--help"])).run();
        // If a default has its own line, clap indents the empty line above it.
        outcome.succeeds().stdout.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(help(&[]), @"
    Run chains of headless Claude Code agents that can pause for minutes or weeks

    An agent can spawn agents, to any depth, and each of them can stop to wait for a person, a file, a
    time or another agent. While it waits, no process runs and nothing is billed. `resume` continues the
    chain where it stopped. Without a command, on a terminal, shows all chains, those that need you
    first, and takes your answers.

    Usage: agent-cli [OPTIONS] <COMMAND>

    Run:
      spawn           Start one agent for each FILE of instructions
      resume          Resume a chain, or show its status
      watch, work     Continue chains as soon as they can continue, until stopped
      stop, kill      Stop an agent, or a whole chain
      pause           Pause an agent, or a whole chain
      tell, name      Send an agent a message, or give a chain another name

    Answer:
      inbox           Answer open questions, approvals and plans one after the other
      questions       List open questions, or show one in full
      answer          Answer a question, or allow or deny a tool call or a plan

    See:
      ls, ps, list    List this project's open chains, those that need you first
      tree            Show every agent of a chain as a tree, and what each waits for
      show, status    Show everything about an agent: sessions, costs and history
      logs            Show what an agent said and did
      open, attach    Open a copy of an agent's conversation in Claude Code
      history         Show what agents asked, who answered what, and what followed
      stats, metrics  Show costs by day, model and file, or numbers for Prometheus

    Keep:
      rm              Remove chains that are not running
      gc, fsck        Remove old chains and unused files, or check the records
      export, import  Write a chain to a file for another machine, or read one
      move            Move the records of all chains to a PostgreSQL server
      hosts, access   Manage the hosts of a PostgreSQL server, or its users' rights

    Set up:
      init, uninit    Teach the agents of this project to start others, or undo that
      doctor          Check claude, login, settings and PATH, and suggest fixes
      config          List and change settings
      service         Install a service that continues chains
      notifications   List notifications, and whether they could be sent
      mcp, serve      Serve chains to Claude Code and other MCP hosts, or as a page
      completions     Print a completion script for a shell

    For agents:
      ask, wait       Ask a person, or wait for a file, a time, a command, an agent

    Options:
      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Environment:
      AGENT_CLI_STATE_DIR        where chains are kept
      AGENT_CLI_STORE            the PostgreSQL server that records them, unless --store names one
      AGENT_CLI_CONFIG           the config file: agent-cli config
      AGENT_CLI_CLAUDE           the claude program, unless --claude is given
      AGENT_CLI_PERMISSION_MODE  the default of --permission-mode
      AGENT_CLI_LOG              log filter: debug, agent=ID, agent_cli::runtime=trace

    Exit status:
        0  done, or waiting
        1  the agent failed
        2  wrong usage, or the request was refused
        3  no such agent or question
        4  claude is missing, unusable, or refused to start
       75  waiting (with --exit-code, and in an agent that has no result yet)
      130  interrupted

    Examples:
      agent-cli spawn --prompt 'Ask me which colour I like.'
      agent-cli spawn task.md
      agent-cli ls
      agent-cli inbox
    ");
    insta::assert_snapshot!(help(&["spawn"]), @"
    Start one agent for each FILE of instructions

    Runs the agent, and every agent that it starts, until nothing in the chain can run. Prints the reply
    when the agent is done, or `SGN_PEND_STARTED (ID)` when the chain waits for something; `agent-cli
    resume ID` continues it.

    On a terminal, asks you what the agents ask, and continues with your answers. Enter leaves a
    question for later.

    Several files start several agents at once. Their replies are printed together, each under a
    heading, when all agents have ended; ID is the id of the group. An agent that fails does not stop
    the others: the exit status is then 1, and `resume ID` retries the failed ones.

    When an agent calls this, the call is suspended and returns the child's reply. If calls cannot be
    suspended, it prints `SGN_PEND_STARTED (ID)` at once: the child runs after the agent has ended its
    turn, and the reply arrives in a later prompt.

    Usage: agent-cli spawn [OPTIONS] [FILE]... [-- <CLAUDE ARGS>...]

    Arguments:
      [FILE]...
              Instructions for an agent; `-`: from standard input

              Each further file starts another agent, which runs at the same time.

      [CLAUDE ARGS]...
              Arguments for every claude process of the chain

    Options:
          --prompt <TEXT>
              Give an agent TEXT as its instructions

              Can be repeated, and combined with files.

          --cwd <DIR>
              Working directory [default: the current one]

              The agents get its project settings.

          --worktree[=<BOOL>]
              Give each agent its own git worktree and branch

              The branch starts from the last commit.

          --remote <NAME>
              With --worktree, push each worktree to this git remote whenever its agent stops

              Other hosts can then continue the agent, if the chain is recorded on a server. Uncommitted
              files are pushed, too, as a commit below refs/agent-cli/. Nothing on the remote is
              overwritten.

          --name <NAME>
              Name the chain, for use instead of its id

          --fork-from <ID>
              Start with a copy of another conversation

              ID is that of an agent or of any Claude session.

          --detach
              Print the new chain's id at once, and let it run on its own

              Nobody waits for its reply: `agent-cli show ID --reply` prints it. In a call of an agent,
              the new chain continues if the caller fails or is stopped. It has at most the caller's
              rights, and shares its chain's budget and number of agents.

          --on <LABELS>
              Print the new chain's id at once, and let a host with these labels run it

              LABELS are separated by commas; `any` means any host. The hosts must share a database. The
              next `work`, `watch` or `resume --all` on such a host takes the chain if the working
              directory exists there, or with --worktree and --remote its repository.

          --schema <FILE>
              Accept only JSON that fits the schema in FILE

              FILE has a JSON Schema. An agent whose reply does not fit is told what is wrong, and
              replies again. If that does not fit either, it has failed. The JSON is printed without the
              text around it. `claude` gets no other tools, and nothing that the schema refers to is
              fetched.

          --model <MODEL>
              Model, as for `claude --model`

              The default with --fork-from is the model of that conversation.

          --permission-mode <MODE>
              Permission mode, as for claude

              The default is $AGENT_CLI_PERMISSION_MODE.

          --on-permission <WHAT>
              Deny calls that need an approval, or ask [default: deny]

              With `ask` the agent pauses until a person has decided. The default in an agent is the
              choice for that agent.

              [possible values: deny, ask]

          --native-agents <N|off>
              How many agents Claude Code's own tools may start for each of these agents, or `off`
              [default: the caller's limit, or any]

          --timeout <DURATION>
              Stop each agent when it has run for this long

              A running tool finishes first. Waiting does not count.

          --questions-dir <DIR>
              Take files in this folder as questions

              docs/question-files.md describes them. An agent that ends its turn with a last line
              QUESTION_POSTED:NAME has asked what is in DIR/pending/NAME.json. The answer may be given
              as any other, or by a program in DIR/answered/NAME.json. DIR is created if it does not
              exist.

          --claude <PATH>
              The claude program to run [default: $AGENT_CLI_CLAUDE, or claude in PATH]

          --no-hooks[=<BOOL>]
              Let agents pause by ending their turn with a signal, not inside a tool call

          --no-stale-check[=<BOOL>]
              Do not report to agents which files changed while they waited

          --estimate
              Print the expected costs, and start nothing

              Prints what the first request of each agent sends and costs. Only for people, not for
              agents.

          --linger <DURATION>
              How long an agent's process stays in a call while its result is expected soon; 0: not at
              all [default: 20s]

              A result that arrives in this time returns without another start of claude. Only this run
              is affected.

          --stream
              Print events as JSON lines, then the result

              The events are those of the chain while it runs (docs/events.md), the result is the object
              of --json.

          --json
              Print a JSON object

              Its schema is docs/schema/chain-status.json.

          --exit-code
              Exit with status 75 while the chain waits

          --no-ask
              Do not ask at the terminal what agents ask

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    In a call of an agent:
          --fork
              Start with the calling agent's conversation, up to this call

              A fork: the call returns twice, in the new agent with its task, and in the caller with the
              new agent's reply. Both share the prompt cache, so options that would change the beginning
              of the conversation are refused.

          --cold
              With --fork, allow options that make the model read the whole conversation again

          --handoff
              Let the new agent reply in place of the calling agent

              A tail call. The caller's turn ends with this call, as if it had replied itself. The call
              only returns if the new agent fails or is stopped, or if the caller has made another
              request or is sent a message.

          --background
              Print the new agent's id at once, and let both work at the same time

              `agent-cli wait --agent ID` returns its reply. An agent that ends its turn without that
              gets the reply then, before its last words count. If the caller fails or is stopped, so
              are the agents in its background. With --fork, they begin with the conversation up to this
              call.

    Limits of the whole chain:
          --max-depth <N>
              How deep agents may be nested [default: 64]

          --max-agents <N>
              How many agents the chain may have [default: 256]

              The default is --max-depth if that is larger.

          --max-parallel <N>
              How many agents may run at once [default: 4]

              It does not matter which commands run them.

          --max-budget-usd <USD>
              Stop starting agents once this much has been spent [default: no limit]

          --stall-after <DURATION>
              Show an agent as stalled after this long without events [default: 10m]

    Examples:
      agent-cli spawn ins1.md --permission-mode acceptEdits -- --max-turns 50
      agent-cli spawn review1.md review2.md --fork-from 4f2c1a90
      agent-cli spawn --prompt 'Which licence is this under?'
    ");
    insta::assert_snapshot!(help(&["resume"]), @r#"
    Resume a chain, or show its status

    Continues the chain where it stopped. Prints the reply once the agent is done (every time),
    `SGN_PEND_STARTED (ID)` when the chain has begun to wait for something new, and `SGN_PEND_ONGOING`
    while it still waits for the same thing. On a terminal, asks you what the agents ask, and continues
    with your answers. Enter leaves a question for later.

    Polling a waiting chain takes milliseconds and does not start claude, so cron can do it as often as
    you like.

    Usage: agent-cli resume [OPTIONS] ID [-- <CLAUDE ARGS>...]
           agent-cli resume --all [OPTIONS]

    Arguments:
      [ID]
              A chain, agent, question or session: its id, name, or `last`

              The first four characters of an id are enough if unique.

      [CLAUDE ARGS]...
              New arguments for claude, in place of the earlier ones

    Options:
          --all
              Continue every chain that can continue

              Prints a line for each. One line of a crontab is enough for all chains: waiting chains
              cost nothing. Chains that failed or were interrupted are left to you.

          --max-parallel-total <N>
              With --all: how many agents may run at once [default: 4]

              Counts the agents of all chains, whichever commands run them.

          --claude <PATH>
              The claude program from now on

              The default is $AGENT_CLI_CLAUDE this once, or the chain's own.

          --prompt <TEXT>
              Continue a finished agent with a new instruction

              It is done, has failed or was stopped. `-` reads TEXT from standard input. The agent
              continues with its whole conversation, and its new reply is printed. The result for its
              parent does not change.

          --afresh
              Continue in a new session, with a summary

              For a conversation that has grown too long, or whose files have changed. One request asks
              the agent for a summary: its goal, decisions, the state of the files, open questions. Its
              new session has only this summary, its task and the results that it waits for. Other
              agents of the chain are not affected.

          --now
              Do not wait for a usage limit or backoff

          --no-stale-check
              Do not report to agents which files changed while they waited

          --model <MODEL>
              Model from now on

          --permission-mode <MODE>
              Permission mode from now on

          --questions-dir <DIR>
              Take files in this folder as questions from now on

              docs/question-files.md describes them.

          --estimate
              Print the expected costs, and start nothing

              For each agent: the tokens of its conversation, whether they still are in the prompt cache
              and why not, and what sending them costs. With --model, --claude or arguments after --, as
              if the chain were continued with these.

          --linger <DURATION>
              How long an agent's process stays in a call while its result is expected soon; 0: not at
              all [default: 20s]

              A result that arrives in this time returns without another start of claude. Only this run
              is affected.

          --stream
              Print events as JSON lines, then the result

              The events are those of the chain while it runs (docs/events.md), the result is the object
              of --json.

          --json
              Print a JSON object

              Its schema is docs/schema/chain-status.json.

          --exit-code
              Exit with status 75 while the chain waits

          --no-ask
              Do not ask at the terminal what agents ask

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Limits of the whole chain:
          --max-depth <N>
              How deep agents may be nested [default: unchanged]

          --max-agents <N>
              How many agents the chain may have [default: unchanged, but at least --max-depth]

          --max-parallel <N>
              How many agents may run at once [default: unchanged]

          --max-budget-usd <USD>
              Stop starting agents once this much has been spent in total [default: unchanged]

          --stall-after <DURATION>
              Show an agent as stalled after this long without events [default: unchanged]

    Examples, the last two for a crontab:
      agent-cli resume last
      agent-cli resume 4f2c1a90 --prompt "Now translate it."
      * * * * * /usr/local/bin/agent-cli resume 4f2c1a90 >> chain.log 2>&1
      * * * * * /usr/local/bin/agent-cli resume --all >> chains.log 2>&1
    "#);
    insta::assert_snapshot!(help(&["watch"]), @"
    Continue chains as soon as they can continue, until you stop it

    Reacts at once when a question is answered, a file appears or a scheduled time arrives, and is
    otherwise idle. Chains that failed or were interrupted are left to you. Ctrl-C stops it, and the
    agents that it runs; they continue with the next `resume`.

    On a terminal, shows who needs you, what works and what waits, and takes your answers; `?` lists the
    keys. `agent-cli` without arguments shows the same, and continues nothing until you tell it to.
    Elsewhere, or with --lines, prints a line for each chain that it has continued, and with --json an
    object.

    Usage: agent-cli watch [OPTIONS]

    Options:
          --claude <PATH>
              The claude program for this run [default: $AGENT_CLI_CLAUDE, or the chain's own]

          --max-parallel-total <N>
              How many agents may run at once over all chains, whichever commands run them [default: 4]

          --linger <DURATION>
              How long an agent's process stays in a call while its result is expected soon; 0: not at
              all [default: 20s]

              A result that arrives in this time returns without another start of claude. Only this run
              is affected.

          --lines
              Print lines, also on a terminal

          --json
              Print a JSON object for each chain, as `resume --json` does

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli watch
      agent-cli watch >> chains.log
      agent-cli watch --json | jq .
    ");
    insta::assert_snapshot!(help(&["work"]), @"
    Continue chains, and take those of lost hosts or of none, until you stop it

    Continues the chains of this host, and takes those that `spawn --on` has left to other hosts, that
    `hosts forget` has released, or that are in shared directories and whose host is lost. A chain is
    only taken if this host has its labels and its agents' directories. `watch` and `resume --all` take
    chains, too.

    The first Ctrl-C or SIGTERM lets the running agents finish their turns; the second one stops them.
    Prints a line for each chain that it has continued.

    Usage: agent-cli work [OPTIONS]

    Options:
          --labels <LABELS>
              The labels of this host, separated by commas [default: the setting labels]

          --max-parallel <N>
              How many agents may run at once on this host, whichever commands run them [default: the
              setting max-parallel-total, or 4]

          --claude <PATH>
              The claude program for this run [default: $AGENT_CLI_CLAUDE, or the chain's own]

          --linger <DURATION>
              How long an agent's process stays in a call while its result is expected soon; 0: not at
              all [default: 20s]

              A result that arrives in this time returns without another start of claude. Only this run
              is affected.

          --json
              Print a JSON object for each chain, as `resume --json` does

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli work
      agent-cli work --labels gpu,big --max-parallel 8
    ");
    insta::assert_snapshot!(help(&["hosts"]), @"
    List the hosts that share a database on a server

    A host is a state directory, which has the files of its chains' agents. While its agents run, or a
    `watch` or `work`, it renews a lease. When the lease has ended, other hosts can take its chains:
    those in shared directories, and after `hosts forget` the others.

    Usage: agent-cli hosts [OPTIONS]
           agent-cli hosts <COMMAND>

    Commands:
      drain    Let the agents of a host finish their turns, and start no more
      undrain  Let a host start agents again
      forget   Let other hosts continue the chains of a lost host
      help     Print this message or the help of the given subcommand(s)

    Options:
          --json
              Print a JSON array

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli hosts
      agent-cli hosts drain build1
      agent-cli hosts forget build1
    ");
    insta::assert_snapshot!(help(&["hosts", "forget"]), @"
    Let other hosts continue the chains of a lost host

    The chains continue from the ends of their agents' last turns, on the next host that has their
    directories and labels. Agents whose turns were lost are told about it. Refused while the host holds
    its lease.

    Usage: agent-cli hosts forget [OPTIONS] <HOST>

    Arguments:
      <HOST>
              The name of the host, or the beginning of it

    Options:
          --json
              Print a JSON object

      -y, --yes
              Do not ask

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["ask"]), @r#"
    Ask a person (for agents)

    Records the question of the calling agent. The agent's call is suspended and returns the answer;
    nothing runs until then. If calls cannot be suspended, this prints `SGN_PEND_STARTED (ID)` at once:
    the agent ends its turn, and the answer arrives in a later prompt.

    With --expires, the call fails if there is no answer by then, and says so. With --default as well,
    it returns the default instead, and says that it is the default.

    With --file, a person can also answer by editing that file. Its text is the question; a line `A:`
    may end it. What a person writes after `A:` is the answer as soon as a line `---` follows it, or the
    file has not changed for 10 seconds. The file must be in the agent's directory, and is created only
    where the agent may write.

    Usage: agent-cli ask [OPTIONS] [QUESTION]

    Arguments:
      [QUESTION]
              The question; `-`: from standard input

    Options:
          --option <KEY[=DESCRIPTION]>
              An option to choose, and what it means; repeat it for each. Nothing else is an answer
              unless --free-text is given

          --multiple
              Allow several options to be chosen

          --free-text
              Accept any other text as an answer, too

          --default <KEY>
              The answer to use when the question expires; if there are options, the key of one

          --context <TEXT|@FILE>
              A text that a person should read before they answer, or a file with it

          --expires <DURATION|TIME>
              Stop waiting for an answer after this time, for example 90m or 3d, or at this one, for
              example 2026-12-24T18:00:00Z

          --file <PATH>
              Ask the question in this file, and let a person answer it there; with QUESTION, create the
              file

          --questions <FILE>
              Ask several questions at once: a JSON array of objects with question and, if needed, name,
              context, options, multiple, free_text, default, expires; `-`: from standard input. Returns
              one JSON array with the answers

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli ask "When is your birthday?"
      agent-cli ask "Deploy?" --option now --option later="in the morning" --default later --expires 2h
      agent-cli ask "Which tests?" --option unit --option browser --multiple --context @failures.txt
      agent-cli ask --questions questions.json
      agent-cli ask --file question.md
    "#);
    insta::assert_snapshot!(help(&["wait"]), @"
    Wait for a file, a time, a command or an agent (for agents)

    Records what the calling agent waits for. The agent's call is suspended, and returns at the first
    `agent-cli resume` after the wait has ended. If calls cannot be suspended, and always with
    --command, this prints `SGN_PEND_STARTED (ID)` at once, and the agent ends its turn. The result says
    what is there: for a command what it printed, for an agent its reply or why it failed.

    With --any or --all, several conditions can be given. Once a condition has been met, it stays met.

    Usage: agent-cli wait [OPTIONS] <--file <PATH>|--until <TIME>|--for <DURATION>|--command <COMMAND>|--agent <AGENT>>

    Options:
          --file <PATH>
              Wait until this file exists

          --matches <REGEX>
              Wait until this regular expression matches the content of the --file before it

              The whole content is searched: `^` and `$` match its beginning and its end, or with `(?m)`
              those of each line. It may have at most 8 MiB. The file must be in the agent's directory,
              unless the agent may do everything.

          --until <TIME>
              Wait until this time, such as 2026-12-24T18:00:00Z or '2026-12-24T18:00[Europe/Berlin]'

          --for <DURATION>
              Wait for this long, for example 90s, 2h or 3d

          --command <COMMAND>
              Wait until this shell command exits with status 0

              This needs a separate permission, so it must be the first option. It runs in the agent's
              directory: at each `resume`, and once a minute under `watch`.

          --every <DURATION>
              Run commands at most this often

          --timeout-per-run <DURATION>
              How long a command may take each time, at most 10m [default: 60s]

          --agent <AGENT>
              Wait until this agent is done or has failed

              An agent below the caller is named by its id, or by its task if no other agent there has
              the same, for example `tests.md`. A chain that the session has started is named by its
              full id or its name.

          --any
              Wait for the first of several conditions

          --all
              Wait until each of several conditions has been met

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli wait --file build/report.html --for 2h --any
      agent-cli wait --until 2026-12-24T18:00:00Z
      agent-cli wait --agent 4f2c1a90
    ");
    insta::assert_snapshot!(help(&["questions"]), @"
    List open questions, or show one in full

    The list shows the first line of each question, or the tool call that needs an approval, and how
    much more there is. With an id, everything is shown: every line of a call, and how files would
    change. Without one, the questions of this project's chains are listed, oldest first; what is left
    out is counted on standard error.

    Usage: agent-cli questions [OPTIONS] [ID]

    Arguments:
      [ID]
              Id of a question, or of a chain or agent (a name, `last`) for all of its questions, to
              show in full

    Options:
          --all
              Include answered and expired questions

      -p, --all-projects
              Also list the questions of other projects

      -n, --limit <N>
              List at most this many [default: 100, with --json all]

          --json
              Print a JSON array

          --no-pager
              Do not show a long result in $AGENT_CLI_PAGER, $PAGER or less

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli questions
      agent-cli questions 4f2c1a90
      agent-cli questions --all-projects --json
    ");
    insta::assert_snapshot!(help(&["answer"]), @r#"
    Answer a question, or allow or deny a tool call or a plan

    Records the answer and prints the command that resumes the chain. The agent gets the answer exactly
    as given. Until it has been delivered, --replace changes it.

    If the question has options, answer with the key or the number of one. If several can be chosen,
    separate them by commas. If the question allows it, any other text is an answer, too. To approve a
    tool call, answer `allow`. To refuse it, answer `deny`, followed by a reason for the agent if you
    like. The same goes for a plan; --mode sets the permission mode in which the agent continues.

    On a terminal, without an answer, this is `agent-cli inbox ID`.

    Usage: agent-cli answer [OPTIONS] [ID] [ANSWER]

    Arguments:
      [ID]
              Id of the question, as shown by `agent-cli questions`, or of a chain or agent with one
              open question

      [ANSWER]
              The answer [default: standard input, without its final newline]

    Options:
          --text <TEXT>
              Take the answer as text even if it looks like the number of an option

          --mode <MODE>
              With `allow` for a plan: the permission mode to continue in [default: the mode it was
              started with]

          --replace
              Replace an earlier answer that has not been delivered yet

          --resume
              Continue the chain at once, as `agent-cli resume` would

          --json
              Print a JSON object; with --resume, that of `resume --json`

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli answer 4f2c1a90 "Jan 1st"
      agent-cli answer 4f2c1a90 1,3
      agent-cli answer 4f2c1a90 --text 7
      agent-cli answer 4f2c1a90 -- --force
      agent-cli answer 4f2c1a90 deny use the test server
      agent-cli answer 4f2c1a90 allow --mode acceptEdits
      agent-cli answer 4f2c1a90 --resume < plan.md
    "#);
    insta::assert_snapshot!(help(&["stop"]), @r#"
    Stop an agent, or a whole chain

    Ends the agent and everything below it; siblings and the parent continue. A running tool finishes
    first, for up to a minute ($AGENT_CLI_STOP_GRACE). The parent gets this result, as from a failed
    child: who stopped it and why, what it had said, which tools it had used, and which files they had
    written. Open questions below it are withdrawn. Works from any terminal. An agent can stop the
    agents that it has started.

    Waits until the agent ends, or its runner stops responding, and prints what happened. If it is
    stopped several times, all reasons are recorded. Stopping a finished agent does nothing.

    Usage: agent-cli stop [OPTIONS] <ID>...

    Arguments:
      <ID>...
              Id of an agent or a chain, or several; its first four characters are enough if unique

    Options:
          --now
              Do not let a running tool finish

          --reason <TEXT>
              Why, for the parent and for people

          --no-wait
              Return at once: the process running the agent stops it

          --json
              Print a JSON object for each

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli stop 4f2c1a90 --reason "wrong branch"
      agent-cli stop 4f2c1a90 0b77d2e1 --now
      agent-cli resume 4f2c1a90 --prompt "Undo what you did."
    "#);
    insta::assert_snapshot!(help(&["pause"]), @r#"
    Pause an agent, or a whole chain

    Like `stop`, but the agent and everything below it can continue: `agent-cli resume ID` does that,
    with the id that was paused, or one below or above it that was paused with it. A resume of the chain
    does not continue an agent that was paused by its own id. The parent is not informed, and questions
    stay open.

    Usage: agent-cli pause [OPTIONS] <ID>...

    Arguments:
      <ID>...
              Id of an agent or a chain, or several; its first four characters are enough if unique

    Options:
          --now
              Do not let a running tool finish

          --reason <TEXT>
              Why, for the parent and for people

          --no-wait
              Return at once: the process running the agent stops it

          --json
              Print a JSON object for each

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli pause 4f2c1a90
      agent-cli tell 4f2c1a90 "Use the test server."
      agent-cli resume 4f2c1a90
    "#);
    insta::assert_snapshot!(help(&["tell"]), @r#"
    Send a message to a running or waiting agent

    A running agent reads the message with the result of its next tool call, or when its turn ends. A
    waiting agent reads it when it continues; the message does not wake it. The agent learns who wrote
    it, and gets the text exactly as given. An agent can send messages to the agents that it has
    started. A finished agent reads no messages: `agent-cli resume ID --prompt` continues it.

    Usage: agent-cli tell [OPTIONS] <ID> [TEXT]

    Arguments:
      <ID>
              Id of the agent; its first four characters are enough if unique

      [TEXT]
              The text; `-`: standard input, without its final newline [default: -]

    Options:
          --json
              Print a JSON object

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli tell 4f2c1a90 "Use the test server."
      agent-cli tell 4f2c1a90 < remarks.md
    "#);
    insta::assert_snapshot!(help(&["name"]), @"
    Give a chain a name, another name, or none

    A name can be used instead of the chain's id, and `ls` shows it. Only one chain that is ready,
    running or waiting can have it at a time. It has at most 40 letters, digits, `-`, `_` and `.`, and
    begins with a letter. `spawn --name` names a new chain.

    Usage: agent-cli name [OPTIONS] CHAIN NAME
           agent-cli name [OPTIONS] CHAIN --clear

    Arguments:
      <CHAIN>
              Id of a chain, or of one of its agents or questions, its name, or `last`

      [NAME]
              The new name

    Options:
          --clear
              Remove the name

          --json
              Print a JSON object

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli name 4f2c1a90 nightly
      agent-cli name last nightly
      agent-cli name nightly --clear
    ");
    insta::assert_snapshot!(help(&["inbox"]), @"
    Answer open questions, approvals and plans one after the other

    Shows each question of this project in full, with what its agent said last, and takes your answer:
    text, the key or number of an option, `allow` or `deny`. `:edit` opens your editor, `:skip` leaves a
    question open, `:back` returns to the previous one, and `:quit` or Ctrl-C leaves. Nothing is sent
    before you press Enter, and an answer can be replaced until its agent has it. Questions asked in the
    meantime come at the end.

    With an id, only shows the questions of that chain or agent, or that question.

    Needs a terminal. In a script, use `questions --json` and `answer`.

    Usage: agent-cli inbox [OPTIONS] [ID]

    Arguments:
      [ID]
              Id of a question, or of a chain or agent (a name, `last`) for all of its questions
              [default: the questions of this project]

    Options:
      -p, --all-projects
              Also show what the agents of other projects ask

          --resume
              Continue the answered chains at the end without asking

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli inbox
      agent-cli inbox 4f2c1a90 --resume
    ");
    insta::assert_snapshot!(help(&["ls"]), @"
    List this project's open chains, those that need you first

    A chain is open until it is done. Its project is the git repository in which it was started, all
    worktrees included, or else the directory. What is left out is counted on standard error. With
    --json, the newest chains come first.

    Usage: agent-cli ls [OPTIONS]

    Options:
      -a, --all
              Also list chains that are done

      -p, --all-projects
              Also list the chains of other projects

          --status <STATUS>
              Only list chains with this `status` or `state`; can be repeated

              [possible values: ready, running, waiting, paused, done, failed, cancelled, abandoned,
              asks, approve, plan, over-budget, can-continue, interrupted, working, limit, retry, waits,
              stopped]

          --search <TEXT>
              Only list chains with this text in their name or in a task

          --task <FILE>
              Only list chains whose own task is this file or has this text

          --since <WHEN>
              Only list chains started since this time (14:00, 2026-11-20) or this long ago (3d)

      -n, --limit <N>
              List at most this many [default: 100, with --json all]

          --json
              Print a JSON array

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    States, those that need you first:
      asks               an agent asks you: `agent-cli inbox`
      approve?, plan?    an agent needs your approval: `agent-cli inbox`
      over budget        `agent-cli resume ID --max-budget-usd X` raises the budget
      can continue       `agent-cli resume ID` continues it
      abandoned          recorded as running, but its process was killed; any `resume` continues it
      interrupted        by Ctrl-C; `resume` continues it
      failed             with an error; `resume` tries again
      working            one of its agents runs
      limit until TIME   its account has reached its usage limit
      retry at TIME      after a temporary error
      waits              for a file, a time, a command, a process or a free slot; nothing runs
      paused             by `agent-cli pause`; `resume` continues it
      stopped            by `agent-cli stop`; `resume --prompt` continues it
      done               the agent at the top has replied

    Examples:
      agent-cli ls
      agent-cli ls --status asks --all-projects
      agent-cli ls --search deploy --since 7d --all
      agent-cli ls --all --json
    ");
    insta::assert_snapshot!(help(&["tree"]), @"
    Show every agent of a chain as a tree, and what each waits for

    Usage: agent-cli tree [OPTIONS] [ID]

    Arguments:
      [ID]
              Id of an agent, chain or session, the name of a chain, or `last` [default: this project's
              chains that are not done]

    Options:
      -p, --all-projects
              Also show the chains of other projects

      -n, --limit <N>
              Show at most this many chains, the newest [default: 100, with --json all]

          --cost
              Show what each agent cost, and the total

          --json
              Print a JSON array of agents, parents before children

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli tree
      agent-cli tree 4f2c1a90
      agent-cli tree last --json
    ");
    insta::assert_snapshot!(help(&["show"]), @"
    Show everything about an agent: sessions, costs and history

    Usage: agent-cli show [OPTIONS] <ID>

    Arguments:
      <ID>
              Id of an agent, chain or session, the name of a chain, or `last`

    Options:
          --reply
              Print its whole reply, and nothing else

          --json
              Print a JSON object

          --no-pager
              Do not show a long result in $AGENT_CLI_PAGER, $PAGER or less

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli show 4f2c1a90
      agent-cli show last --reply
    ");
    insta::assert_snapshot!(help(&["logs"]), @r#"
    Show what an agent said and did

    Prints one line for each text, tool call, result, pause and end, from the first attempt to the last,
    and then all of the reply. Lines of other days are below their date. With --follow, waits for more
    until the agent and everything below it have ended, or wait for something outside this machine's
    processes, such as an answer. Following changes nothing and costs nothing.

    Usage: agent-cli logs [OPTIONS] <ID>

    Arguments:
      <ID>
              Id of an agent, chain or session, the name of a chain, or `last`

    Options:
      -f, --follow
              Print new events as they happen

          --chain
              Include all agents below it, in chronological order

          --since <WHEN>
              Only events since this time (14:00, 2026-11-20) or this long ago (10m)

          --tail <N>
              Only the last N events, and with --follow what comes after them

          --full
              Print all of every text, call and result

          --json
              Print a JSON object for each event (docs/events.md)

          --no-pager
              Do not show a long result in $AGENT_CLI_PAGER, $PAGER or less

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli logs 4f2c1a90 --follow
      agent-cli logs 4f2c1a90 --follow --tail 20
      agent-cli logs 4f2c1a90 --chain --since 10m
      agent-cli logs 4f2c1a90 --chain --json | jq 'select(.type == "tool_use")'
    "#);
    insta::assert_snapshot!(help(&["open"]), @"
    Open a copy of an agent's conversation in Claude Code

    The copy is a separate session: nothing that is said in it affects the agent or its chain. Works
    while the agent runs or waits, and when it has ended. A call at which it is paused is closed in the
    copy. Without a terminal it prints the command instead.

    Usage: agent-cli open [OPTIONS] <ID>

    Arguments:
      <ID>
              Id of an agent or chain, the name of a chain, or `last`

    Options:
          --earlier
              Open the conversation before the agent started afresh

          --print
              Only print the command

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Example:
      agent-cli open last
    ");
    insta::assert_snapshot!(help(&["history"]), @"
    Show what agents asked, who answered what, and what followed

    Lists every question, approval and plan on record, newest last: whether it was answered, was
    withdrawn or has expired; every answer with who gave it (user, process, terminal), replaced ones
    included; and what the agent did first once it had the answer. With the id of a question, shows that
    one in full. `gc` and `rm` remove chains with their history.

    Usage: agent-cli history [OPTIONS] [ID]

    Arguments:
      [ID]
              Id of a question, agent or chain, the name of a chain, or `last` [default: all chains of
              this project]

    Options:
      -p, --all-projects
              Also show what was asked in other projects

          --since <WHEN>
              Show only what was asked since this time (14:00, 2026-11-20) or this long ago (7d)

      -n, --limit <N>
              Show at most this many, the newest [default: 100, with --json all]

          --json
              Print a JSON array

          --no-pager
              Do not show a long result in $AGENT_CLI_PAGER, $PAGER or less

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli history --since 7d
      agent-cli history 4f2c1a90 --json | jq '.[].records'
    ");
    insta::assert_snapshot!(help(&["stats"]), @"
    Show what agents cost, by day, model and instruction file

    Counts every attempt that began in this period and is still recorded, whether it was kept, discarded
    or killed. `gc` and `rm` remove chains with their costs. `≥` marks sums that include an attempt
    whose cost is not known because it was killed.

    Usage: agent-cli stats [OPTIONS]

    Options:
          --since <WHEN>
              Count attempts that began since this time (14:00, 2026-11-20) or this long ago (7d)

              [default: 30d]

          --json
              Print a JSON object: since, total, days, models, instructions

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Example:
      agent-cli stats --since 7d --json | jq .total.cost_usd
    ");
    insta::assert_snapshot!(help(&["metrics"]), @"
    Print numbers for Prometheus: chains, questions and costs

    The text exposition format. `gc` and `rm` remove chains with their costs, so every number is a
    gauge.

    Usage: agent-cli metrics [OPTIONS]

    Options:
      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Example, for the textfile collector of the node exporter, from cron:
      agent-cli metrics > /var/lib/node_exporter/agent-cli.prom
    ");
    insta::assert_snapshot!(help(&["notifications"]), @r#"
    List notifications, and whether they could be sent

    agent-cli runs your commands when something happens that you want to know about. The commands are in
    the config file: $AGENT_CLI_CONFIG, or by default agent-cli/config.toml in your configuration
    directory (~/.config).

    The keys are question, approval, done, failed, limit, stalled and budget; timeout is how long a
    command may take. A command gets a JSON object on standard input and the main fields in its
    environment. `spawn`, `resume` and `watch` run it, and run it again after a while if it fails, six
    times in all.

    Usage: agent-cli notifications [OPTIONS]

    Options:
          --test <EVENT>
              Run the command for EVENT now with an example, and say whether it succeeds

              [possible values: question, approval, done, failed, limit, stalled, budget]

      -n, --limit <N>
              List the newest, at most this many [default: 20, with --json all]

          --json
              Print a JSON array; with --test an object

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    A config file:
      [on]
      question = "notify-send -- \"$AGENT_CLI_CHAIN_NAME asks\" \"$AGENT_CLI_MESSAGE\""
      timeout = "10s"

    Example:
      agent-cli notifications --test question
    "#);
    insta::assert_snapshot!(help(&["doctor"]), @"
    Check claude, login, settings and PATH, and suggest fixes

    Also checks the state directory. Makes no request and starts no agent. A problem keeps chains from
    running; a warning does not. Exits with 0 if there is no problem, with 4 if claude is missing or
    unusable, and with 1 otherwise.

    With --cron, checks the login, settings and directories that a `resume` from cron would have: HOME,
    LOGNAME and USER from the environment, and what is recorded in the chain. Variables set in the
    crontab itself are not taken into account. Ends with an example line for the crontab and the names
    of variables that exist only in this shell.

    Usage: agent-cli doctor [OPTIONS]

    Options:
          --cwd <DIR>
              Directory in which agents would work [default: the current directory]

          --claude <PATH>
              The claude program to check [default: $AGENT_CLI_CLAUDE, or claude in PATH]

          --cron
              Check whether cron could resume chains started from this shell

          --json
              Print a JSON object: claude, checks, and cron with --cron

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli doctor
      agent-cli doctor --cron
    ");
    insta::assert_snapshot!(help(&["export"]), @"
    Export a chain to a file, so that another machine can resume it

    The file contains every conversation of the chain: keep it as private as the chain itself. The chain
    is not removed; resume only one of the two. `agent-cli import` reads the file.

    Usage: agent-cli export [OPTIONS] <ID>

    Arguments:
      <ID>
              The chain: its id, name, or `last`, or an id of one of its agents or sessions

    Options:
      -o, --output <FILE>
              Write to this file, or with - to standard output [default: standard output]

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli export 4f2c1a90 -o chain.tar
      agent-cli export 4f2c1a90 | ssh server agent-cli import - --trust
    ");
    insta::assert_snapshot!(help(&["move"]), @"
    Move the records of all chains to a PostgreSQL server

    From then on, all commands with this state directory use the server. The files of agents, such as
    their kept sessions, remain in the state directory, so their chains continue on this machine only.
    Other machines that use the same server show, answer, stop and steer them, too.

    Nothing is moved while an agent is running. The old database remains as an unused file.

    Usage: agent-cli move [OPTIONS] --to <postgres://…>

    Options:
          --to <postgres://…>
              The address of the server and its database, as for psql

          --json
              Print a JSON object: chains and store

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli move --to postgres://ann@db.example/chains
    ");
    insta::assert_snapshot!(help(&["import"]), @"
    Import a chain written by `agent-cli export`

    Prints the id of the chain. Imports all of it or nothing. Its agents work in the same directories as
    before; use --cwd if a directory has another path here. They run this machine's claude, with the
    PATH of this shell.

    A chain brings its own instructions, permissions, arguments for claude and commands. They are listed
    first, and the chain is imported only with --trust, or after you confirm at a terminal.

    Usage: agent-cli import [OPTIONS] <FILE>

    Arguments:
      <FILE>
              The file, or - for standard input

    Options:
          --cwd <OLD=NEW>
              Replace the directory OLD, and directories below it, with NEW; can be repeated

          --trust[=<DIGEST>]
              Import the chain: you would run everything that it would run; with DIGEST only if the file
              is the one that was listed

          --json
              Print a JSON object: id and next, or without --trust what the chain would run

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli import chain.tar --cwd /home/ann/work=/home/bob/work
      ssh laptop agent-cli export 4f2c1a90 | agent-cli import - --trust
    ");
    insta::assert_snapshot!(help(&["rm"]), @"
    Remove chains that are not running

    Removes the whole chain: agents, questions, replies and history, files in the state directory, and
    the transcripts of sessions that agent-cli started. It does not matter whether the chain is done,
    waits or has failed. Refuses while one of its processes is alive (`stop` ends them), another chain
    needs it, or a git worktree of its agents contains work that is on no other branch.

    Usage: agent-cli rm [OPTIONS] <ID>...

    Arguments:
      <ID>...
              Id of a chain, or of one of its agents or questions, or several; its first four characters
              are enough if unique

    Options:
      -y, --yes
              Do not ask for confirmation

          --ignored
              Also remove worktrees with ignored files other than build output and caches

          --json
              Print a JSON object for each

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli rm 4f2c1a90
      agent-cli rm 0b77d2e1 9c1f00d3 --yes
    ");
    insta::assert_snapshot!(help(&["gc"]), @"
    Remove chains that finished long ago, and unused files

    Removes whole chains: agents, questions, replies and history, files in the state directory, and the
    transcripts in Claude Code's folders. Keeps every chain in which something still waits or runs, and
    the transcripts of sessions that agent-cli did not start. Removes the agents' git worktrees and
    branches if they are clean and their commits are on a branch that is not an agent's; keeps a chain
    with a worktree that contains other work. To keep a chain, export it first.

    Usage: agent-cli gc [OPTIONS]

    Options:
          --older-than <DURATION>
              Only remove chains in which nothing has changed for this long

              [default: 30d]

          --failed
              Also remove chains that failed or were stopped, although they could be resumed

          --ignored
              Also remove worktrees with ignored files other than build output and caches

          --dry-run
              Only print what would be removed

          --json
              Print a JSON object

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli gc --dry-run
      agent-cli gc --older-than 7d --failed
    ");
    insta::assert_snapshot!(help(&["fsck"]), @"
    Check the state directory for inconsistencies

    Reports each inconsistency, and exits with 1 if one remains. Chains can keep running.

    Usage: agent-cli fsck [OPTIONS]

    Options:
          --repair
              Repair what can be repaired without loss: permissions, copies of transcripts, orphaned
              files

          --json
              Print a JSON object

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli fsck
      agent-cli fsck --repair
    ");
    insta::assert_snapshot!(help(&["service"]), @"
    Install a service that continues chains

    Installs a systemd user timer (on macOS a launchd agent) that runs `agent-cli resume --all` every
    minute. It also catches up after the machine was off or asleep. No process runs in between. With
    `--work`, a systemd service or launchd agent keeps `agent-cli work` running instead.

    Usage: agent-cli service [OPTIONS] <COMMAND>

    Commands:
      install    Write the files of the service and start it, and print what was written
      status     Show whether the service is installed and active
      uninstall  Stop the service and remove its files, also the one with saved variables
      help       Print this message or the help of the given subcommand(s)

    Options:
      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli service install --dry-run
      agent-cli service install
      agent-cli service install --save-login --max-parallel-total 8
      agent-cli service install --work --labels gpu
      agent-cli service status --json
    ");
    insta::assert_snapshot!(help(&["service", "install"]), @"
    Write the files of the service and start it, and print what was written

    Usage: agent-cli service install [OPTIONS]

    Options:
          --max-parallel-total <N>
              How many agents may run at once over all chains [default: 4]

          --work
              Keep `agent-cli work` running instead; requires a server that hosts share

          --labels <LABELS>
              With --work: the labels of this host, separated by commas [default: the setting labels]

          --save-login
              Save the login variables of this shell to a file that only you can read

          --dry-run
              Print the files and commands, and change nothing

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["service", "status"]), @"
    Show whether the service is installed and active

    Usage: agent-cli service status [OPTIONS]

    Options:
          --json
              Print a JSON object: installed, active, lingers, files

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["service", "uninstall"]), @"
    Stop the service and remove its files, also the one with saved variables

    Usage: agent-cli service uninstall [OPTIONS]

    Options:
      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')
    ");
    insta::assert_snapshot!(help(&["config"]), @"
    List and change settings

    Settings take precedence in this order: an option, a variable, the project's .agent-cli.toml, your
    config.toml, the default. The project's file is the nearest in the current directory or above it,
    within the git repository. It can narrow what your own file says, but not widen it: what runs a
    command, or loosens a permission or a limit, counts once you have trusted the file with `agent-cli
    config trust`, and only as long as it does not change.

    Without a command this lists the settings in effect and where each comes from.

    Usage: agent-cli config [OPTIONS]
           agent-cli config <COMMAND>

    Commands:
      get      Print the value of a setting
      set      Set a setting in your config file
      unset    Remove a setting from your config file
      path     Print the path of your config file
      edit     Open your config file in $VISUAL or $EDITOR
      trust    Trust the project's file as it is now
      untrust  Stop trusting the project's file
      help     Print this message or the help of the given subcommand(s)

    Options:
          --json
              Print a JSON object

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli config set spawn.model sonnet
      agent-cli config set --project limits.max-budget-usd 5
      agent-cli config set spawn.claude-args -- --max-turns=50
    ");
    insta::assert_snapshot!(help(&["serve"]), @"
    Serve a page that shows and answers chains in a browser

    The page shows all chains live: trees, conversations, questions and costs. Questions are answered
    there, calls and plans allowed or denied, and chains started, resumed and stopped. It needs no chain
    to run, and costs chains nothing.

    Prints a link with which one browser logs in. Each link works once; then the next one is printed. A
    browser stays logged in for 30 days, even after a restart. Agents cannot use the page.

    The page has no TLS. To reach it from another machine, let `ssh -L` or a proxy that speaks TLS
    forward to it: whoever can read the network could otherwise read everything, and act as you.

    Usage: agent-cli serve [OPTIONS]

    Options:
          --listen <ADDRESS>
              Address and port, or unix:PATH [default: 127.0.0.1:7878]

              An address that other machines can reach needs --token-file and --allowed-host.

          --open
              Open the page in a browser

          --read-only
              Only show: nothing can be answered, started or stopped

          --token-file <FILE>
              A file with a token that browsers must enter, instead of a link

              No other user may read it, and agents may not. The token has at least 22 characters.

          --allowed-host <HOST>
              Another name by which browsers reach the page, such as that of a proxy, with its port
              unless it is the usual one

      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      agent-cli serve --open
      agent-cli serve --listen 127.0.0.1:0 --read-only
      agent-cli serve --listen unix:/run/user/1000/agent-cli.sock
    ");
    insta::assert_snapshot!(help(&["mcp"]), @"
    Serve chains to Claude Code and other MCP hosts

    Speaks the Model Context Protocol on standard input and output. A chain that a session starts is a
    task of that session: it works in the background, its questions appear in the session's own dialog,
    and its reply arrives when it is done, even if the session was closed in the meantime. A host
    without tasks gets the state of the chain, and can ask for it again.

    Agents of a chain get no tools from it: they use the command line.

    Usage: agent-cli mcp [OPTIONS]

    Options:
      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      claude mcp add agent-cli -- agent-cli mcp
    ");
    insta::assert_snapshot!(help(&["completions"]), @r#"
    Print a completion script for a shell

    Usage: agent-cli completions [OPTIONS] [SHELL]

    Arguments:
      [SHELL]
              The shell [default: that of $SHELL]

              [possible values: bash, elvish, fish, powershell, zsh]

    Options:
      -v, --verbose
              Print progress to standard error, as on a terminal

      -q, --quiet
              Print nothing but errors to standard error

          --color <WHEN>
              When to use colours [default: auto]

              [possible values: auto, always, never]

      -h, --help
              Print help (see a summary with '-h')

    Example, for ~/.bashrc:
      eval "$(agent-cli completions bash)"
    "#);
}

/// The commands that help lists.
pub(crate) fn listed_commands(world: &World) -> Vec<String> {
    let help = world.run(&["-h"]).succeeds().stdout.clone();
    let names = help.lines().filter_map(|line| line.strip_prefix("  ")?.split("  ").next());
    let names = names.filter(|names| names.starts_with(char::is_alphabetic) && !names.starts_with("agent-cli"));
    // An alias is not a command of its own.
    let command = |name| {
        let help = world.run(&[name, "-h"]).succeeds().stdout.clone();
        help.split("Usage: agent-cli ").nth(1).and_then(|usage| usage.split_whitespace().next()).map(str::to_owned)
    };
    let mut names: Vec<_> = names.flat_map(|names| names.split(", ")).filter_map(command).collect();
    names.dedup();
    assert!(names.len() > 20, "{names:?}");
    names
}

#[test]
fn short_help_fits_on_a_page_and_ends_with_examples() {
    let world = World::new().with("COLUMNS", "80");
    let all = world.command(["-h"]).on_terminal(80).succeeds().stdout.clone();
    assert!(all.lines().count() <= 50, "{all}");
    let last = all.trim_end().rsplit("\n\n").next().unwrap_or_default();
    assert!(last.starts_with("Example: agent-cli spawn"), "{all}");
    for command in listed_commands(&world) {
        let help = world.run(&[&command, "-h"]).succeeds().stdout.clone();
        assert!(help.lines().count() <= 50, "{help}");
        let last = help.split("\n\n").last().unwrap_or_default();
        assert!(last.starts_with("Example"), "{command} ends with {last}");
    }
}

#[test]
fn words_of_other_programs_are_understood() {
    let world = World::new();
    for alias in ["ps", "list"] {
        assert_eq!(world.run(&[alias]).succeeds().stderr, world.run(&["ls"]).stderr, "{alias}");
    }
    for (alias, command) in [("kill", "stop"), ("attach", "open"), ("status", "show")] {
        let (said, expected) = (world.run(&[alias, "4f2c1a90"]), world.run(&[command, "4f2c1a90"]));
        assert_eq!(said.exits_with(3).stderr, expected.stderr, "{alias}");
    }
}

#[test]
fn a_suggestion_is_a_command_for_people() {
    let world = World::new();
    let said = |word: &str| world.run(&[word]).exits_with(2).stderr.clone();
    assert!(said("questins").contains("a similar subcommand exists: 'questions'"), "{}", said("questins"));
    assert!(said("run").contains("a similar subcommand exists: 'spawn'"), "{}", said("run"));
    assert!(said("lst").contains("some similar subcommands exist: 'ls', 'stop'\n"), "{}", said("lst"));
    assert!(said("statu").contains("some similar subcommands exist: 'show', 'stats'\n"), "{}", said("statu"));
    for word in ["permision", "permissions", "hok", "hook-resul", "check-repl"] {
        let said = said(word);
        assert!(
            ["permission'", "hook'", "hook-result'", "check-reply'"]
                .iter()
                .all(|name| !said.contains(&format!(" '{name}"))),
            "{said}"
        );
        assert!(!said.contains("\n\n\n"), "{said}");
    }
}

#[test]
fn a_command_for_programs_refuses_a_terminal() {
    let world = World::new();
    for command in ["hook", "permission", "check-reply"] {
        let refused = world.command([command]).on_terminal(80);
        let said = format!("error: agent-cli {command} reads from another program, not from a terminal\n");
        assert!(refused.exits_with(2).stdout.contains(&said), "{refused}");
    }
    let refused = world.command(["news"]).on_terminal(80);
    let said = "error: agent-cli news writes to another program, not to a terminal";
    assert!(refused.exits_with(2).stdout.contains(said), "{refused}");
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

#[test]
fn every_visible_command_has_a_manual_page() {
    let world = World::new();
    world.run(&["man", "pages"]).succeeds();
    let pages = world.project().join("pages");
    let page = |name: &str| std::fs::read_to_string(pages.join(format!("agent-cli{name}.1")));
    assert!(page("").expect("a page").contains("chains of headless Claude Code agents"));
    let help = world.run(&["help"]).succeeds().stdout.clone();
    let (commands, _) = help.split_once("\nOptions:").expect("the options are below");
    let indented =
        commands.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with([' ', '-']));
    let names: Vec<_> = indented.map(|line| line.split([' ', ',']).next().unwrap_or_default()).collect();
    assert!(names.len() > 25 && names.contains(&"spawn"), "{names:?}");
    for name in names {
        let page = page(&format!("-{name}")).expect(name);
        assert!(page.contains("SYNOPSIS") && page.contains("OPTIONS"), "{name}: {page}");
        // An option without a description is followed by the next one.
        let bare = page.split(".TP\n").skip(1).find(|option| option.lines().filter(|line| *line != ".").count() < 2);
        assert_eq!(bare, None, "{name}");
    }
    assert!(page("-hook").is_err(), "other programs call it");
}
