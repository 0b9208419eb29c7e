use std::ops::{Index, IndexMut};

/// What a piece of work consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Processor time, in microseconds.
    Cpu,
    /// Memory held over time, in KiB-seconds.
    Memory,
    /// Bytes sent and received.
    Network,
}

impl Resource {
    /// Every resource, in the order in which amounts are stored.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Network];

    /// The name in the API, the configuration, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Network => "network",
        }
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One value for each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PerResource<T>([T; 3]);

impl<T> PerResource<T> {
    /// From values in the order of [`Resource::ALL`].
    pub const fn new(cpu: T, memory: T, network: T) -> Self {
        Self([cpu, memory, network])
    }

    /// Asks `value` for each resource.
    pub fn from_fn(mut value: impl FnMut(Resource) -> T) -> Self {
        // Written out: `map` of an array is a loop of calls, and this is in every sum of costs.
        Self([value(Resource::Cpu), value(Resource::Memory), value(Resource::Network)])
    }

    /// The same with each value replaced by what `value` makes of it.
    pub fn map<U>(self, mut value: impl FnMut(T) -> U) -> PerResource<U> {
        let [cpu, memory, network] = self.0;
        PerResource([value(cpu), value(memory), value(network)])
    }

    /// Each resource with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, &T)> {
        Resource::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<Resource> for PerResource<T> {
    type Output = T;

    fn index(&self, resource: Resource) -> &T {
        let [cpu, memory, network] = &self.0;
        match resource {
            Resource::Cpu => cpu,
            Resource::Memory => memory,
            Resource::Network => network,
        }
    }
}

impl<T> IndexMut<Resource> for PerResource<T> {
    fn index_mut(&mut self, resource: Resource) -> &mut T {
        let [cpu, memory, network] = &mut self.0;
        match resource {
            Resource::Cpu => cpu,
            Resource::Memory => memory,
            Resource::Network => network,
        }
    }
}
