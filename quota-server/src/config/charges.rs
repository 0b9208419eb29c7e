use quota_core::{Limit, PerResource, Resource, WindowLength};

use super::error::ConfigError;
use super::layers::Settings;
use super::policy;

/// The most that a fileserver may charge of each resource, written as a limit is.
pub(super) fn read(settings: &Settings, window: WindowLength) -> Result<PerResource<Limit>, ConfigError> {
    let of = |resource: Resource| {
        let key = ["charges", resource.as_str()];
        settings.text(&key, |text| match policy::limit(resource, text, window.length())? {
            Limit::At(0) => Err("must be above 0, or no report would be taken".into()),
            most => Ok(most),
        })
    };
    Ok(PerResource::new(of(Resource::Cpu)?, of(Resource::Memory)?, of(Resource::Network)?))
}
