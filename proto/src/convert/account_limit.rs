use quota_core::{Account, Limit, Resource};

use super::standing::read_limit;
use crate::{Invalid, v1};

/// Whose limit it is on a node, and of what.
pub fn account_limit(wire: &v1::AccountLimit) -> Result<(Account, Resource, Limit), Invalid> {
    let account = Account::from_spelling(wire.kind().try_into()?, &wire.id);
    let resource = wire.resource().try_into()?;
    Ok((account.map_err(|error| Invalid::new("id", error))?, resource, read_limit(resource, wire.limit)?))
}

#[cfg(test)]
mod tests {
    use quota_core::Kind;

    use super::*;

    #[test]
    fn a_limit_of_an_account_is_read_as_it_was_written_and_garbage_is_none() {
        let wire = v1::AccountLimit {
            kind: v1::Kind::Ip.into(),
            id: "2001:db8::/64".to_owned(),
            resource: v1::Resource::Memory.into(),
            limit: Some(crate::limit(Resource::Memory, Limit::At(7))),
            ..v1::AccountLimit::default()
        };
        let account = Account::from_spelling(Kind::Ip, "2001:db8::/64").unwrap();
        assert_eq!(account_limit(&wire), Ok((account, Resource::Memory, Limit::At(7))));
        for (field, garbage) in [
            ("kind", v1::AccountLimit { kind: 77, ..wire.clone() }),
            ("id", v1::AccountLimit { id: String::new(), ..wire.clone() }),
            ("resource", v1::AccountLimit { resource: 0, ..wire.clone() }),
            ("limit", v1::AccountLimit { limit: None, ..wire.clone() }),
        ] {
            assert_eq!(account_limit(&garbage).map_err(|invalid| invalid.field), Err(field.to_owned()));
        }
    }
}
