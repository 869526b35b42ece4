// Packs the program for npm: a package for this platform, and the package `agent-cli`, which depends on those of all platforms and
// runs the one that npm has installed. Neither has install scripts, which package managers block by default.
//
//   node packaging/npm.mjs PROGRAM TARGET FOLDER
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const PLATFORMS = {
  "x86_64-unknown-linux-gnu": ["linux", "x64"],
  "aarch64-unknown-linux-gnu": ["linux", "arm64"],
  "x86_64-apple-darwin": ["darwin", "x64"],
  "aarch64-apple-darwin": ["darwin", "arm64"],
};

const [program, target, folder] = process.argv.slice(2);
if (!PLATFORMS[target]) throw new Error(`no package of npm for ${target}`);
const cargo = readFileSync("Cargo.toml", "utf8");
const field = (name) => cargo.match(new RegExp(`^${name} = "(.*)"$`, "m"))?.[1];
const common = { version: field("version"), description: field("description"), license: field("license") };
const nameOf = ([os, cpu]) => `@agent-cli/${os}-${cpu}`;

/** Writes a package, and packs it. */
function pack(place, manifest, files) {
  rmSync(place, { recursive: true, force: true });
  mkdirSync(join(place, "bin"), { recursive: true });
  writeFileSync(join(place, "package.json"), JSON.stringify({ ...manifest, ...common }, null, 2) + "\n");
  copyFileSync("LICENSE", join(place, "LICENSE"));
  copyFileSync("README.md", join(place, "README.md"));
  files();
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder, place], { stdio: ["ignore", "ignore", "inherit"] });
  rmSync(place, { recursive: true });
}

const platform = PLATFORMS[target];
const [os, cpu] = platform;
const own = join(folder, "platform");
pack(own, { name: nameOf(platform), os: [os], cpu: [cpu], ...(os === "linux" && { libc: ["glibc"] }) }, () => {
  copyFileSync(program, join(own, "bin/agent-cli"));
  chmodSync(join(own, "bin/agent-cli"), 0o755);
});

const wrapper = join(folder, "wrapper");
const optionalDependencies = Object.fromEntries(Object.values(PLATFORMS).map((it) => [nameOf(it), common.version]));
pack(wrapper, { name: "agent-cli", bin: { "agent-cli": "bin/agent-cli.js" }, engines: { node: ">=18" }, optionalDependencies }, () => {
  copyFileSync("packaging/run.js", join(wrapper, "bin/agent-cli.js"));
  chmodSync(join(wrapper, "bin/agent-cli.js"), 0o755);
});
