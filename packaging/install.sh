#!/bin/sh
# Installs agent-cli into ~/.local. Variables:
#   AGENT_CLI_RELEASES   where the archives are: an https or file URL
#   AGENT_CLI_VERSION    which version
#   AGENT_CLI_PREFIX     where to install it [default: ~/.local]
set -eu

fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

releases=${AGENT_CLI_RELEASES:?names the folder or URL of the archives}
version=${AGENT_CLI_VERSION:?names the version}
prefix=${AGENT_CLI_PREFIX:-$HOME/.local}

case "$(uname -s) $(uname -m)" in
  'Linux x86_64') target=x86_64-unknown-linux-gnu ;;
  'Linux aarch64' | 'Linux arm64') target=aarch64-unknown-linux-gnu ;;
  'Darwin x86_64') target=x86_64-apple-darwin ;;
  'Darwin arm64') target=aarch64-apple-darwin ;;
  *) fail "there is no archive for $(uname -s) on $(uname -m): cargo install agent-cli --locked --profile dist builds it" ;;
esac
name=agent-cli-$version-$target

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
for file in "$name.tar.gz" "$name.tar.gz.sha256"; do
  case $releases in
    file://*) cp "${releases#file://}/$file" "$temporary" || fail "$releases/$file does not exist" ;;
    *) curl -fsSL --proto '=https' -o "$temporary/$file" "$releases/$file" || fail "$releases/$file cannot be fetched" ;;
  esac
done

cd "$temporary"
if command -v sha256sum >/dev/null; then
  sha256sum -c "$name.tar.gz.sha256" >/dev/null || fail "$name.tar.gz is not what its checksum says"
else
  shasum -a 256 -c "$name.tar.gz.sha256" >/dev/null || fail "$name.tar.gz is not what its checksum says"
fi
tar -xzf "$name.tar.gz"

share=$prefix/share
mkdir -p "$prefix/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
# A program that runs is replaced, not written to.
cp "$name/agent-cli" "$prefix/bin/.agent-cli.new"
mv "$prefix/bin/.agent-cli.new" "$prefix/bin/agent-cli"
cp "$name"/man/*.1 "$share/man/man1"
cp "$name/completions/agent-cli.bash" "$share/bash-completion/completions/agent-cli"
cp "$name/completions/_agent-cli" "$share/zsh/site-functions"
cp "$name/completions/agent-cli.fish" "$share/fish/vendor_completions.d"

printf 'agent-cli %s is installed in %s\n' "$version" "$prefix/bin"
case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) printf 'hint: add it to your PATH: export PATH="%s/bin:$PATH"\n' "$prefix" ;;
esac
