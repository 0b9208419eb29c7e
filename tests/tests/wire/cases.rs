//! The table of cases, by what is asked.

mod accounts;
mod admission;
mod backing_off;
mod breaches;
mod cuts;
mod denials;
mod modes;
mod nodes;
mod overrides;
mod prices;
mod refusals;
mod releases;
mod reports;
mod shares;
mod top;
