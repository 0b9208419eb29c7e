use super::*;
use crate::Request;
use crate::concurrency::settings::tests::rpc;
use crate::concurrency::{LimitSettings, Limits, Per, RpcSettings, SetSettings};

const RPC: &str = "/gitaly.SSHService/SSHUploadPack";

fn limits(settings: RpcSettings) -> Limits {
    Limits::new(&[settings], &[RPC.to_owned()]).unwrap()
}

/// At most one at once, and nobody waits.
fn one(per: Per) -> RpcSettings {
    let settings = rpc(RPC, LimitSettings::Static(1));
    RpcSettings { per, set: SetSettings { max_queue: 0, ..settings.set }, ..settings }
}

/// The permits of requests made one after the other; `None` where one was refused.
async fn acquire(
    limits: &Limits,
    requests: impl IntoIterator<Item = (Option<&str>, Option<&str>)>,
) -> Vec<Option<Option<Permit>>> {
    let mut permits = Vec::new();
    for (repo, ip) in requests {
        let mut request = Request::rpc(RPC).user("user-7");
        if let Some(repo) = repo {
            request = request.repo(repo);
        }
        if let Some(ip) = ip {
            request = request.ip(ip.parse().unwrap());
        }
        permits.push(limits.acquire(&request, None).await.ok());
    }
    permits
}

/// How many of the requests hold a permit, are not limited, and were refused.
fn count(permits: &[Option<Option<Permit>>]) -> (usize, usize, usize) {
    let of =
        |wanted: fn(&Option<Option<Permit>>) -> bool| permits.iter().filter(|permit| wanted(permit)).count();
    (of(|p| matches!(p, Some(Some(_)))), of(|p| matches!(p, Some(None))), of(Option::is_none))
}

#[tokio::test]
async fn a_limit_is_for_each_repository_however_it_is_spelled() {
    let limits = limits(one(Per::Repo));
    let repos = ["a/b", "/a//b.git", "a/c", "../x", "../x", "", ""];
    let permits = acquire(&limits, repos.map(|repo| (Some(repo), None))).await;
    assert_eq!(count(&permits), (4, 0, 3), "what has no right spelling does not go free");
    let permits = acquire(&limits, [(None, Some("192.0.2.1"))]).await;
    assert_eq!(count(&permits), (0, 1, 0), "who names none has none");
}

#[tokio::test]
async fn a_limit_is_for_each_address_of_one_customer() {
    let limits = limits(one(Per::Ip));
    let requests = [
        ("a", Some("192.0.2.1")),
        ("b", Some("::ffff:192.0.2.1")),
        ("a", Some("192.0.2.2")),
        ("a", Some("2001:db8:1:2::1")),
        ("a", Some("2001:db8:1:2:ffff::9")),
        ("a", Some("127.0.0.1")),
        ("a", Some("127.0.0.1")),
        ("a", None),
    ];
    assert_eq!(count(&acquire(&limits, requests.map(|(repo, ip)| (Some(repo), ip))).await), (4, 1, 3));
}

#[tokio::test]
async fn loopback_is_exempt_where_that_is_configured() {
    let limits = limits(RpcSettings { exempt_loopback: true, ..one(Per::Ip) });
    let addresses = ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "10.0.0.1"];
    let permits = acquire(&limits, addresses.map(|ip| (Some("a"), Some(ip)))).await;
    assert_eq!(count(&permits), (1, 4, 0));
}

#[tokio::test]
async fn requests_without_a_user_have_a_stricter_set_of_their_own() {
    let settings = rpc(RPC, LimitSettings::Static(2));
    let stricter = one(Per::Repo).set;
    let set = SetSettings { max_queue: 0, ..settings.set.clone() };
    let limits = limits(RpcSettings { set, unauthenticated: Some(stricter), ..settings });
    let mut admitted = [0, 0];
    let mut permits = Vec::new();
    for _ in 0..5 {
        for authenticated in [true, false] {
            let user = if authenticated { "user-7" } else { "" };
            if let Ok(permit) = limits.acquire(&Request::rpc(RPC).repo("a").user(user), None).await {
                admitted[usize::from(authenticated)] += 1;
                permits.push(permit);
            }
        }
    }
    assert_eq!(admitted, [1, 2]);
    let figures: Vec<_> =
        limits.figures().map(|(_, who, figures)| (who, figures.limit, figures.refused[0])).collect();
    assert_eq!(figures, [(true, 2, 3), (false, 1, 4)]);
}

#[tokio::test]
async fn an_rpc_without_a_limit_is_not_limited() {
    let limits = limits(one(Per::Repo));
    assert!(
        limits.acquire(&Request::rpc("/gitaly.RefService/ListRefs").repo("a"), None).await.unwrap().is_none()
    );
}

#[test]
fn an_rpc_that_no_service_has_is_refused_at_start() {
    let known = [RPC.to_owned(), "/gitaly.SSHService/SSHReceivePack".to_owned()];
    let told = |settings: &[RpcSettings]| Limits::new(settings, &known).unwrap_err().to_string();
    assert_eq!(
        told(&[rpc("/gitaly.SSHService/SSHUploadpack", LimitSettings::Static(1))]),
        "concurrency[\"/gitaly.SSHService/SSHUploadpack\"] is an RPC that no service has: did you mean \
         \"/gitaly.SSHService/SSHUploadPack\"?"
    );
    let twice = [one(Per::Repo), one(Per::Ip)];
    assert_eq!(told(&twice), "concurrency[\"/gitaly.SSHService/SSHUploadPack\"] is given twice");
}
