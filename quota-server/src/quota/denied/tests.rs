use quota_core::Ipv6Prefix;

use super::record::OTHER;
use super::*;

fn user(id: &str) -> Account {
    Account::new(Kind::User, id, Ipv6Prefix::default()).unwrap()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

impl DenialRecord {
    fn deny(&mut self, second: u64, id: &str, rpc: &str) {
        self.add(at(second), &user(id), Resource::Cpu, Some(rpc), Mode::Enforce);
    }

    /// Of the parts since a second: who was denied what, how often, and in which second last.
    fn told(&self, from: u64) -> Vec<(String, String, u64, u64)> {
        let told = self.parts(at(from)).into_iter().flat_map(Part::denials);
        told.map(|(denied, count, last)| {
            let rpc = denied.rpc.map(|rpc| (*rpc).to_owned()).unwrap_or_default();
            (denied.account.id().to_owned(), rpc, count, last.as_micros() / 1_000_000)
        })
        .collect()
    }
}

#[test]
fn parts_are_kept_for_a_day() {
    let mut record = DenialRecord::default();
    record.deny(300, "u", "/svc/A");
    record.deny(310, "u", "/svc/A");
    record.deny(601, "u", "/svc/A");
    let [first, second] = [("u", 2, 310), ("u", 1, 601)]
        .map(|(id, count, last)| (id.to_owned(), "/svc/A".to_owned(), count, last));
    assert_eq!(record.told(0), [first, second.clone()]);
    assert_eq!(record.told(600), [second]);
    record.deny(86_400 + 650, "v", "/svc/A");
    assert_eq!(record.told(0).iter().map(|told| &*told.0).collect::<Vec<_>>(), ["u", "v"]);
    assert_eq!(record.told(0)[0].3, 601, "the first part is more than a day old");
}

#[test]
fn a_clock_that_steps_back_goes_on_in_the_open_part() {
    let mut record = DenialRecord::default();
    record.deny(900, "u", "/svc/A");
    record.deny(30, "u", "/svc/A");
    assert_eq!(record.told(0), [("u".to_owned(), "/svc/A".to_owned(), 2, 900)]);
}

#[test]
fn what_has_changed_is_posted_once_and_again_where_it_failed() {
    let mut record = DenialRecord::default();
    assert_eq!(record.unposted(), []);
    record.deny(300, "u", "/svc/A");
    let posted = record.unposted();
    assert_eq!(posted.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1]);
    assert_eq!(record.unposted(), []);
    record.post_again(1);
    assert_eq!(record.unposted(), posted);
    record.deny(301, "u", "/svc/A");
    record.deny(600, "u", "/svc/A");
    let numbers = |record: &mut DenialRecord| {
        record.unposted().into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&mut record), [1, 2], "the part that is over, too, since it had changed");
    record.post_again(1);
    assert_eq!(numbers(&mut record), [1]);
    record.deny(900, "u", "/svc/A");
    assert_eq!(numbers(&mut record), [3], "what was posted before it was over is not posted again");
}

#[test]
fn any_number_of_names_takes_no_more_room_than_the_bound() {
    let mut record = DenialRecord::default();
    let long = "n".repeat(1000);
    for number in 0..100_000 {
        record.deny(300, &format!("{number}-{long}"), &format!("/svc/{number}"));
        if number % 10 == 0 && number >= 1000 {
            record.deny(300, "heavy", "/svc/A");
        }
    }
    let part = record.parts(at(0)).pop().unwrap();
    let content = part.write();
    assert!(content.len() < 80_000, "{} bytes", content.len());
    let heaviest = part.denials().next().unwrap();
    assert_eq!(heaviest.0.account, user("heavy"));
    assert_eq!(heaviest.0.rpc.as_deref(), Some(OTHER), "its RPC came after 512 others");
    assert!((9700..=9900).contains(&heaviest.1), "{} of 9,900", heaviest.1);
}

#[test]
fn what_cannot_be_read_is_skipped() {
    assert_eq!(Part::read(b"{\"missed\":0"), None);
    let of = |kind: &str, id: &str, resource: &str| {
        let row = format!(
            "{{\"missed\":0,\"denials\":[{{\"kind\":\"{kind}\",\"id\":\"{id}\",\"resource\":\"{resource}\",\
             \"enforced\":true,\"count\":1,\"last\":1}}]}}"
        );
        Part::read(row.as_bytes()).unwrap().denials().count()
    };
    assert_eq!(of("user", "u", "cpu"), 1);
    assert_eq!([of("group", "u", "cpu"), of("user", "", "cpu"), of("user", "u", "disk")], [0, 0, 0]);
}

fn event() -> DenialEvent {
    let breach = quota_core::Breach {
        account: user("u"),
        resource: Resource::Cpu,
        scope: quota_core::Scope::Cluster,
        used: 2,
        limit: quota_core::Limit::At(1),
        retry_after: Duration::ZERO,
        permanent: false,
    };
    DenialEvent { node: Label::default(), rpc: Label::default(), mode: Mode::Enforce, breach }
}

#[tokio::test]
async fn a_slow_reader_is_told_how_many_it_missed() {
    let events = DenialEvents::default();
    let mut listening = events.listen().unwrap();
    (0..1000).for_each(|_| events.tell(event));
    assert_eq!(listening.next().await, Some(Told::Missed(1000 - 256)));
    for _ in 0..256 {
        assert_eq!(listening.next().await, Some(Told::Denial(Arc::new(event()))));
    }
    drop(events);
    assert_eq!(listening.next().await, None);
}

#[test]
fn readers_are_bounded_and_those_that_go_make_room() {
    let events = DenialEvents::default();
    events.tell(|| panic!("nobody follows"));
    let mut all: Vec<Listening> = (0..32).map(|_| events.listen().unwrap()).collect();
    assert!(events.listen().is_none());
    all.pop();
    assert!(events.listen().is_some());
}
