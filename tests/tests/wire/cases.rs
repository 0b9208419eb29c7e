//! The table of cases, by what is asked.

mod accounts;
mod admission;
mod backing_off;
mod breaches;
mod cuts;
mod modes;
mod nodes;
mod overrides;
mod refusals;
mod releases;
mod reports;
