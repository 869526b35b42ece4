"""A chain as an activity of Temporal (Python SDK 1.10 or newer).

The activity starts the chain on its first attempt, under a name made from the workflow, and continues it on later ones. While the
chain waits for a person, a file or a time, the activity fails with an error that Temporal retries, so nothing runs in between.

    reply = await workflow.execute_activity(
        run_chain,
        Task("Review the change and ask before you merge it.", "/projects/shop"),
        start_to_close_timeout=timedelta(hours=2),
        retry_policy=RetryPolicy(initial_interval=timedelta(minutes=1), backoff_coefficient=1),
    )
"""

import asyncio
import json
import re
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError

WAITING = 75
NO_SUCH_CHAIN = 3


@dataclass
class Task:
    prompt: str
    directory: str


async def agent_cli(directory: str, *arguments: str) -> tuple[int, dict]:
    process = await asyncio.create_subprocess_exec(
        "agent-cli", *arguments, "--json", "--exit-code", cwd=directory, stdout=asyncio.subprocess.PIPE
    )
    try:
        printed, _ = await process.communicate()
    except asyncio.CancelledError:
        # As Ctrl-C: the agents stop after their running tools, and the chain can be continued.
        process.terminate()
        await process.wait()
        raise
    lines = printed.decode().splitlines()
    return process.returncode, json.loads(lines[-1]) if lines else {}


@activity.defn
async def run_chain(task: Task) -> str:
    info = activity.info()
    # A name of a chain has up to 40 letters, digits, `-`, `_` and `.`.
    name = "t-" + re.sub(r"[^A-Za-z0-9_.-]", "-", f"{info.workflow_id}-{info.activity_id}")[-38:]
    status, chain = await agent_cli(task.directory, "resume", name)
    if status == NO_SUCH_CHAIN:
        status, chain = await agent_cli(task.directory, "spawn", "--prompt", task.prompt, "--name", name)
    if status == 0:
        return chain["reply"]
    if status == WAITING:
        raise ApplicationError(f"{name} waits", chain, next_retry_delay=timedelta(minutes=1))
    raise ApplicationError(f"{name} failed", chain, non_retryable=True)
