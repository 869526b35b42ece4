//! The real Claude Code, at a pinned version, from the npm registry.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names a program to use instead of every pinned version.
const OVERRIDE: &str = "AGENT_CLI_CLAUDE";
const PACKAGE: &str = "@anthropic-ai/claude-code";

/// The `claude` program of `version`, installed into the build folder by the first caller of any process.
///
/// # Panics
///
/// When it cannot be had: without npm or without the registry, name a program in `AGENT_CLI_CLAUDE`.
pub fn claude(version: &str) -> PathBuf {
    if let Some(program) = env::var_os(OVERRIDE).filter(|program| !program.is_empty()) {
        return program.into();
    }
    installed(version).unwrap_or_else(|reason| {
        panic!("cannot get {PACKAGE} {version}: {reason}; install npm, or name a claude program in {OVERRIDE}")
    })
}

fn installed(version: &str) -> Result<PathBuf, String> {
    let packages = build_folder().join("claude");
    let home = packages.join(version);
    // The lock is taken even if the folder exists: it is cheap, and keeps this function to one path.
    let _lock = lock(&packages, version).map_err(|error| format!("cannot lock {}: {error}", packages.display()))?;
    if !home.exists() {
        // Removes what an interrupted install left behind. Only the rename completes an install.
        let unfinished = packages.join(format!("{version}.unfinished"));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(|error| error.to_string())?;
        }
        install(version, &unfinished)?;
        fs::rename(&unfinished, &home).map_err(|error| error.to_string())?;
    }
    program(&home).ok_or_else(|| format!("{} holds no claude for this platform", home.display()))
}

fn lock(packages: &Path, version: &str) -> std::io::Result<File> {
    fs::create_dir_all(packages)?;
    let file = File::create(packages.join(format!("{version}.lock")))?;
    file.lock()?;
    Ok(file)
}

fn install(version: &str, folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let output = Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--loglevel=error", "--prefix"])
        .arg(folder)
        .arg(format!("{PACKAGE}@{version}"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run npm: {error}"))?;
    if !output.status.success() {
        return Err(format!("npm install failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let script = folder.join(script_of_older_versions());
    if script.exists() {
        wrap(&script, &folder.join("claude")).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Since 2.1.113 the program is in a package for the platform. npm has already chosen between the C libraries, so the
/// musl variant is there only where it is the one that runs.
fn program(home: &Path) -> Option<PathBuf> {
    let os = if cfg!(target_os = "macos") { "darwin" } else { env::consts::OS };
    let arch = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    let native = |libc: &str| home.join(format!("node_modules/{PACKAGE}-{os}-{arch}{libc}/claude"));
    [native(""), native("-musl"), home.join("claude")].into_iter().find(|program| program.exists())
}

/// Until 2.1.112 the program is a script for Node.
fn script_of_older_versions() -> PathBuf {
    Path::new("node_modules").join(PACKAGE).join("cli.js")
}

/// A program that can be started like any other, wherever the folder is moved to.
fn wrap(script: &Path, wrapper: &Path) -> std::io::Result<()> {
    let folder = wrapper.parent().unwrap_or(Path::new(""));
    let script = script.strip_prefix(folder).unwrap_or(script);
    fs::write(wrapper, format!("#!/bin/sh\nexec node \"$(dirname \"$0\")/{}\" \"$@\"\n", script.display()))?;
    fs::set_permissions(wrapper, fs::Permissions::from_mode(0o755))
}

/// `<target>` in `<target>/<profile>/{deps,examples}/<this program>`.
fn build_folder() -> PathBuf {
    let program = env::current_exe().expect("the running program has a path");
    let folder = program.parent().expect("a program is in a folder");
    let inner = ["deps", "examples"].map(OsStr::new);
    let profile = match folder.file_name() {
        Some(name) if inner.contains(&name) => folder.parent(),
        _ => Some(folder),
    };
    profile.and_then(Path::parent).expect("cargo builds into <target>/<profile>").to_path_buf()
}
