//! Requests of accounts that the service has cut on this fileserver.

use quota_core::{Cost, PerResource, Resource};
use quota_proto::v1;

use super::fake::Check;
use super::*;
use crate::denial::tests::deny;
use crate::local::cuts::tests::cut;

/// What the service's table says.
fn table() -> Cost {
    Cost::ZERO.with_cpu_micros(10_000).unwrap().with_network_bytes(77).unwrap()
}

fn by(user: &str) -> Request {
    Request::rpc(FETCH).user(user)
}

fn used_here(client: &Client, user: &str) -> u64 {
    let payers = crate::payers::tests::user(user);
    client.shared().usage.lock().here(&payers, tokio::time::Instant::now()).user.unwrap().cpu_micros.unwrap()
}

/// The user noisy is cut, and his requests have cost 400 ms each; those of quiet did too.
async fn noisy(fake: &Fake) -> Client {
    fake.answers([Check::allow_reserving(table())]);
    let client = builder([fake]).build().unwrap();
    for user in ["noisy", "quiet"] {
        for _ in 0..4 {
            allowed(&client, &by(user)).await.meter().cpu(Duration::from_millis(400));
        }
    }
    fake.cuts([cut("noisy", 1)]).await;
    client
}

/// The price of the last request that was asked about, if it brought one.
fn asked(fake: &Fake) -> Option<v1::Cost> {
    fake.heard().checks.last().unwrap().price
}

fn is_learned(price: v1::Cost) -> bool {
    // As time passes, the last one counts less than whole.
    (10_001..=400_000).contains(&price.cpu_micros) && price.network_bytes == 77
}

#[tokio::test]
async fn a_request_of_an_account_that_is_cut_reserves_what_such_requests_cost_lately() {
    let fake = Fake::start().await;
    let client = noisy(&fake).await;
    assert!(fake.heard().checks.iter().all(|check| check.price.is_none()), "nobody was cut");
    let first = allowed(&client, &by("noisy")).await;
    let price = asked(&fake).unwrap();
    assert!(is_learned(price), "{price:?}");
    assert_eq!(used_here(&client, "noisy"), 1_600_000 + price.cpu_micros);

    // It counts for who asks next, until it is spent.
    let second = allowed(&client, &by("noisy")).await;
    let told = fake.heard().checks.last().unwrap().used_here.unwrap().user.unwrap();
    assert_eq!(told.cpu_micros, Some(1_600_000 + price.cpu_micros));
    first.meter().cpu(Duration::from_micros(price.cpu_micros));
    drop((first, second));
    assert_eq!(used_here(&client, "noisy"), 1_600_000 + price.cpu_micros, "what was spent, and no price");

    drop(allowed(&client, &by("quiet")).await);
    assert_eq!((asked(&fake), used_here(&client, "quiet")), (None, 1_600_000));
    fake.cuts([]).await;
    drop(allowed(&client, &by("noisy")).await);
    assert_eq!(asked(&fake), None, "it is cut no more");
}

/// Each request costs much of every resource, and the user is cut for these. Of which does the next reserve more than the
/// table says?
async fn learned(cut_for: &'static [Resource]) -> PerResource<bool> {
    let (fake, each) = (Fake::start().await, 1 << 20);
    fake.answers([Check::allow_reserving(table())]);
    let client = builder([&fake]).build().unwrap();
    for _ in 0..4 {
        let admission = allowed(&client, &by("noisy")).await;
        let meter = admission.meter();
        meter.cpu(Duration::from_micros(each));
        meter.memory(1024 * each);
        meter.sent(each);
    }
    let cut = |resource: &Resource| v1::AccountLimit {
        resource: v1::Resource::from(*resource).into(),
        ..cut("noisy", 1)
    };
    fake.cuts(cut_for.iter().map(cut)).await;
    drop(allowed(&client, &by("noisy")).await);
    let price = asked(&fake).map_or(table(), |price| Cost::try_from(price).unwrap());
    let (price, table) = (*price.amounts(), *table().amounts());
    PerResource::from_fn(|resource| {
        assert!(price[resource] <= each, "{price:?}");
        price[resource] > table[resource]
    })
}

#[tokio::test]
async fn only_of_resources_for_which_an_account_is_cut_more_is_reserved() {
    let cut_for: [&[Resource]; 5] = [
        &[],
        &[Resource::Cpu],
        &[Resource::Memory],
        &[Resource::Network],
        &[Resource::Memory, Resource::Network],
    ];
    for (cut_for, learned) in cut_for.map(|cut_for| (cut_for, tokio::spawn(learned(cut_for)))) {
        let expected = PerResource::from_fn(|resource| cut_for.contains(&resource));
        assert_eq!(learned.await.unwrap(), expected, "cut for {cut_for:?}");
    }
}

#[tokio::test]
async fn of_two_prices_the_dearer_counts_and_work_within_a_request_is_none_of_its_own() {
    let fake = Fake::start().await;
    let client = noisy(&fake).await;
    for (own, expected) in [(1, None), (700_000, Some(700_000))] {
        let own = Cost::ZERO.with_cpu_micros(own).unwrap().with_network_bytes(77).unwrap();
        drop(allowed(&client, &by("noisy").price(own)).await);
        let price = asked(&fake).unwrap();
        assert!(expected.map_or(is_learned(price), |micros| price.cpu_micros == micros), "{price:?}");
    }
    let before = asked_for(&client, &fake).await;
    // Hooks of it, say: what they spend is what the requests cost, and as many as they are, they are no requests.
    for _ in 0..100 {
        client.meter(&by("noisy")).cpu(Duration::from_millis(100));
    }
    assert!(asked_for(&client, &fake).await > before, "10 s more, by as many requests");
}

async fn asked_for(client: &Client, fake: &Fake) -> u64 {
    drop(allowed(client, &by("noisy")).await);
    asked(fake).unwrap().cpu_micros
}

#[tokio::test]
async fn what_was_reserved_here_is_given_back_where_nothing_runs() {
    let fake = Fake::start().await;
    let client = noisy(&fake).await;
    let asked = fake.heard().checks.len();
    fake.answers([Check::Hang]);
    let request = by("noisy");
    let mut asking = Box::pin(client.admit(&request));
    tokio::select! {
        _ = &mut asking => panic!("answered"),
        _ = fake.hears(|heard| heard.checks.len() > asked) => {}
    }
    assert!(used_here(&client, "noisy") > 1_600_000);
    drop(asking);
    assert_eq!(used_here(&client, "noisy"), 1_600_000, "whoever asked has gone");

    fake.answers([Check::answer(deny(Duration::from_secs(1), false))]);
    assert!(matches!(client.admit(&by("noisy")).await, Decision::Deny(_)));
    assert_eq!(used_here(&client, "noisy"), 1_600_000, "refused");
}
