#!/usr/bin/env node
// Runs the program of this platform, with the same arguments, terminal and exit status.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");

let program;
try {
  program = require.resolve(`@agent-cli/${process.platform}-${process.arch}/bin/agent-cli`);
} catch {
  console.error(`error: there is no program for ${process.platform} on ${process.arch}, or npm was told to leave out optional packages`);
  process.exit(1);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends its signals to both, and the program decides what they mean.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => child.kill(signal === "SIGINT" ? 0 : signal));
child.on("error", (error) => {
  console.error(`error: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + (constants.signals[signal] ?? 0) : code));
