// Prints a formula for Homebrew: which archive each platform gets, and its checksum.
//
//   node packaging/formula.mjs FOLDER URL
//
// FOLDER has the archives and their checksums, of as many platforms as were built; URL is where the archives will be.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const PLATFORMS = [
  ["on_linux", "on_intel", "x86_64-unknown-linux-gnu"],
  ["on_linux", "on_arm", "aarch64-unknown-linux-gnu"],
  ["on_macos", "on_intel", "x86_64-apple-darwin"],
  ["on_macos", "on_arm", "aarch64-apple-darwin"],
];

const [folder, url] = process.argv.slice(2);
if (!url) throw new Error("usage: node packaging/formula.mjs FOLDER URL");
const cargo = readFileSync("Cargo.toml", "utf8");
const field = (name) => cargo.match(new RegExp(`^${name} = "(.*)"$`, "m"))?.[1];
const version = field("version");

const archive = (target) => `agent-cli-${version}-${target}.tar.gz`;
const built = new Set(readdirSync(folder));
const blocks = PLATFORMS.filter(([, , target]) => built.has(`${archive(target)}.sha256`)).map(([system, processor, target]) => {
  const sum = readFileSync(join(folder, `${archive(target)}.sha256`), "utf8").split(/\s/)[0];
  if (!/^[0-9a-f]{64}$/.test(sum)) throw new Error(`${archive(target)}.sha256 has no checksum`);
  return `  ${system} do
    ${processor} do
      url "${url}/${archive(target)}"
      sha256 "${sum}"
    end
  end
`;
});
if (blocks.length === 0) throw new Error(`there are no archives of version ${version} in ${folder}`);

process.stdout.write(`class AgentCli < Formula
  desc "${field("description").replace(/\.$/, "").replaceAll('"', '\\"')}"
  homepage "${field("homepage") ?? url}"
  version "${version}"
  license "${field("license")}"

${blocks.join("\n")}
  def install
    bin.install "agent-cli"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/agent-cli.bash" => "agent-cli"
    zsh_completion.install "completions/_agent-cli"
    fish_completion.install "completions/agent-cli.fish"
  end

  test do
    assert_equal "agent-cli #{version}", shell_output("#{bin}/agent-cli --version").strip
  end
end
`);
