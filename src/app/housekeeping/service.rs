//! Installs a user service that continues chains.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::app::Asker;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::claude::doctor::surroundings::DoctorFacts;
use crate::core::housekeeping::service_units::{Duty, ServiceSpec};
use crate::runtime::housekeeping::service::{Installed, Service, ServicePlan};

#[derive(Debug)]
pub(crate) struct Input<'a> {
    /// The executable of agent-cli.
    pub(crate) program: &'a Path,
    /// The environment variables that name directories and files, with their values.
    pub(crate) paths: &'a [(&'static str, PathBuf)],
    pub(crate) duty: Duty,
    /// How many agents may run at once over all chains.
    pub(crate) max_parallel: Option<u32>,
    /// Whether to save the login variables.
    pub(crate) save_login: bool,
}

/// The result of an installation.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) installed: Installed,
    /// Whether none of the variables that could be saved is set.
    pub(crate) has_nothing_to_save: bool,
    /// The login variables on which the login depends, although the service does not get them.
    pub(crate) missing_login: Vec<String>,
}

/// Returns the plan of [`install`].
pub(crate) fn plan(
    asker: &Asker,
    service: &Service,
    input: &Input<'_>,
    around: &DoctorFacts,
    value: impl Fn(&str) -> Option<OsString>,
) -> Result<ServicePlan, AppError> {
    asker.may(PersonsTask::ChangeService)?;
    Ok(service.plan(&spec(service, input), &variables(input, around, value))?)
}

/// Installs the service. `around` describes the logins of this shell, and `value` looks up a variable.
pub(crate) fn install(
    asker: &Asker,
    service: &Service,
    input: &Input<'_>,
    around: &DoctorFacts,
    value: impl Fn(&str) -> Option<OsString>,
) -> Result<Outcome, AppError> {
    asker.may(PersonsTask::ChangeService)?;
    let variables = variables(input, around, value);
    let installed = service.install(&spec(service, input), &variables)?;
    Ok(Outcome {
        installed,
        has_nothing_to_save: input.save_login && variables.is_empty(),
        missing_login: if input.save_login { Vec::new() } else { around.login_only_here.clone() },
    })
}

fn spec<'a>(service: &'a Service, input: &Input<'a>) -> ServiceSpec<'a> {
    let Input { program, paths, ref duty, max_parallel, .. } = *input;
    ServiceSpec { program, paths, environment: service.environment(), duty: duty.clone(), max_parallel }
}

/// The login variables to save.
fn variables(
    input: &Input<'_>,
    around: &DoctorFacts,
    value: impl Fn(&str) -> Option<OsString>,
) -> Vec<(String, String)> {
    if !input.save_login {
        return Vec::new();
    }
    let names = around.login_variables.iter().chain(&around.login_only_here);
    let with_value = |name: &String| value(name).map(|value| (name.clone(), value.to_string_lossy().into_owned()));
    let mut variables: Vec<_> = names.filter_map(with_value).collect();
    variables.sort();
    variables.dedup();
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(save_login: bool) -> Input<'static> {
        Input { program: Path::new("/bin/agent-cli"), paths: &[], duty: Duty::Resume, max_parallel: None, save_login }
    }

    #[test]
    fn the_login_variables_that_have_a_value_are_saved_once() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let around = DoctorFacts {
            login_variables: names(&["KEY", "GONE"]),
            login_only_here: names(&["TOKEN", "KEY"]),
            ..DoctorFacts::default()
        };
        let value = |name: &str| (name != "GONE").then(|| format!("{name}=x").into());
        let saved = variables(&input(true), &around, value);
        let expected = ["KEY", "TOKEN"].map(|name| (name.to_owned(), format!("{name}=x")));
        assert_eq!(saved, expected);
        assert_eq!(variables(&input(false), &around, value), []);
    }
}
