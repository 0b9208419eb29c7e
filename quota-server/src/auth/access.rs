use super::Role;

/// What it takes to ask for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing.
    Open,
    /// This role, or `admin`.
    Least(Role),
}

const OPEN: Access = Access::Open;
const FILESERVER: Access = Access::Least(Role::Fileserver);
const READER: Access = Access::Least(Role::Reader);
const ADMIN: Access = Access::Least(Role::Admin);

/// Every route, by method and path as the router has it.
const ROUTES: &[(&str, &str, Access)] = &[
    ("POST", "/v1/check", FILESERVER),
    ("POST", "/v1/report", FILESERVER),
    ("POST", "/v1/pressure", FILESERVER),
    ("GET", "/v1/accounts/{kind}/{*id}", READER),
    ("GET", "/v1/backoff", READER),
    ("POST", "/v1/backoff", READER),
    ("GET", "/v1/nodes", READER),
    ("GET", "/v1/nodes/{*node}", READER),
    ("GET", "/v1/top", READER),
    ("GET", "/v1/denials", READER),
    ("GET", "/v1/denials/stream", READER),
    ("GET", "/v1/prices", READER),
    ("POST", "/v1/slots", FILESERVER),
    ("GET", "/v1/classes", READER),
    ("GET", "/v1/overrides", READER),
    ("GET", "/v1/overrides/{kind}/{*id}", READER),
    ("PUT", "/v1/overrides/{kind}/{*id}", ADMIN),
    ("DELETE", "/v1/overrides/{kind}/{*id}", ADMIN),
    ("GET", "/v1/modes", READER),
    ("PUT", "/v1/modes", ADMIN),
    ("DELETE", "/v1/modes", ADMIN),
    ("GET", "/", READER),
    ("GET", "/dashboard/accounts", READER),
    ("GET", "/dashboard/accounts/{kind}/{*id}", READER),
    ("GET", "/dashboard/top", READER),
    ("GET", "/dashboard/denials", READER),
    ("GET", "/dashboard/classes", READER),
    ("GET", "/dashboard/overrides", READER),
    ("POST", "/dashboard/overrides", ADMIN),
    ("POST", "/dashboard/overrides/remove", ADMIN),
    ("GET", "/dashboard/modes", READER),
    ("POST", "/dashboard/modes", ADMIN),
    ("POST", "/dashboard/modes/remove", ADMIN),
    ("GET", "/dashboard/icon.svg", OPEN),
    ("GET", "/dashboard/style.css", OPEN),
    ("GET", "/dashboard/live.js", OPEN),
    ("GET", "/metrics", OPEN),
    ("GET", "/healthz", OPEN),
    ("GET", "/readyz", OPEN),
    ("GET", "/openapi.json", OPEN),
];

/// Every method of gRPC, by its path.
const METHODS: &[(&str, Access)] = &[
    ("/quota.v1.QuotaService/Check", FILESERVER),
    ("/quota.v1.QuotaService/Report", FILESERVER),
    ("/quota.v1.QuotaService/ReportPressure", FILESERVER),
    ("/quota.v1.QuotaService/Session", FILESERVER),
    ("/quota.v1.QuotaService/AcquireSlots", FILESERVER),
    ("/quota.v1.QuotaService/RenewSlots", FILESERVER),
    ("/quota.v1.QuotaService/ListClasses", READER),
    ("/quota.v1.QuotaService/GetStanding", READER),
    ("/quota.v1.QuotaService/Backoff", READER),
    ("/quota.v1.QuotaService/BatchBackoff", READER),
    ("/quota.v1.QuotaService/ListNodes", READER),
    ("/quota.v1.QuotaService/ListTop", READER),
    ("/quota.v1.QuotaService/ListDenials", READER),
    ("/quota.v1.OverrideService/List", READER),
    ("/quota.v1.OverrideService/Get", READER),
    ("/quota.v1.OverrideService/Put", ADMIN),
    ("/quota.v1.OverrideService/Delete", ADMIN),
    ("/quota.v1.ModeService/List", READER),
    ("/quota.v1.ModeService/Put", ADMIN),
    ("/quota.v1.ModeService/Delete", ADMIN),
    ("/grpc.health.v1.Health/Check", OPEN),
    ("/grpc.health.v1.Health/Watch", OPEN),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", READER),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", READER),
];

impl Access {
    /// To a route. What has no entry is not served.
    pub(crate) fn of_route(method: &str, path: &str) -> Option<Self> {
        ROUTES.iter().find(|route| (route.0, route.1) == (method, path)).map(|route| route.2)
    }

    /// To a method of gRPC. What has no entry is not served.
    pub(crate) fn of_method(path: &str) -> Option<Self> {
        METHODS.iter().find(|method| method.0 == path).map(|method| method.1)
    }
}
