//! The hosts of a database on a server: their leases, the chains that they take from each other, and the files that travel.

mod claims;
pub(crate) mod leases;
pub(crate) mod rights;

use crate::core::housekeeping::hosting::Offer;
use crate::core::housekeeping::rights::Grant;
use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::error::{Result, StoreError};
use crate::store::hosts::{CLOCKS_AGREE_WITHIN, Host, Hosts, Renewed, Terms, Wanted};
use crate::store::sql::database::connection::Database;

impl Hosts for Database {
    fn renew(&self, terms: &Terms) -> Result<Renewed> {
        self.beside(Step::Renew, |connection| leases::renew(connection, terms)).map(Option::unwrap_or_default)
    }

    fn check_clock(&self) -> Result<()> {
        if self.connection.host().is_none() {
            return Ok(());
        }
        let ahead = self.query(leases::clock_ahead)?;
        if ahead.abs() > CLOCKS_AGREE_WITHIN { Err(StoreError::ClockOff(ahead)) } else { Ok(()) }
    }

    fn hosts(&self) -> Result<Vec<Host>> {
        if self.connection.host().is_none() { Ok(Vec::new()) } else { self.read(leases::hosts) }
    }

    fn drain(&self, host: &str, is_draining: bool) -> Result<()> {
        let unknown = || StoreError::UnknownHost(host.to_owned());
        let drained = self.beside(Step::Drain, |connection| leases::drain(connection, host, is_draining))?;
        drained.flatten().ok_or_else(unknown)
    }

    fn forget(&self, host: &str) -> Result<u64> {
        if self.connection.host().is_none() {
            return Err(StoreError::UnknownHost(host.to_owned()));
        }
        self.write(Step::Forget, |connection| leases::forget(connection, host))
    }

    fn rights(&self) -> Result<Vec<Grant>> {
        if self.connection.host().is_none() { Ok(Vec::new()) } else { self.query(rights::rights) }
    }

    fn change_rights(&self, of: &[Grant], is_given: bool) -> Result<bool> {
        let changed = self.beside(Step::ChangeRights, |connection| rights::change(connection, of, is_given))?;
        Ok(changed.unwrap_or_default())
    }

    fn take(&self, wanted: Wanted, offer: &Offer) -> Result<Option<FrameId>> {
        claims::take(self, wanted, offer)
    }
}
