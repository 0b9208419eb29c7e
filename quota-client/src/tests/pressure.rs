use std::time::Duration;

use quota_proto::v1;
use tonic::Code;

use super::*;
use crate::PressureSignal;

#[tokio::test]
async fn pressure_and_who_is_heaviest_are_told_and_what_was_used_here_goes_with_a_check() {
    let fake = Fake::start().await;
    let client = builder([&fake]).build().unwrap();
    allowed(&client, &fetch()).await.meter().cpu(Duration::from_micros(1700));
    let heard = fake.hears(|heard| heard.pressures.iter().any(|told| !told.heaviest.is_empty())).await;
    let told = heard.pressures.last().unwrap();
    assert_eq!(told.node, "gitaly-01");
    assert!(told.pressure.unwrap().memory.is_some() && told.capacity.unwrap().cpu_millicores.is_some());
    let sample = client.pressure().unwrap();
    assert!(sample.reading(PressureSignal::Memory).value.is_some());
    let active = told.active.unwrap();
    assert_eq!((active.repo, active.user, active.ip), (Some(1), Some(1), Some(0)));
    let heaviest: Vec<_> =
        told.heaviest.iter().map(|heavy| (heavy.id.as_str(), heavy.used.unwrap())).collect();
    let used = v1::Amounts { cpu_micros: Some(1700), memory_byte_seconds: Some(0), network_bytes: Some(0) };
    assert_eq!(heaviest, [("project-42", used), ("user-7", used)]);
    assert!(told.heaviest.iter().all(|heavy| heavy.recent.is_some()));

    allowed(&client, &fetch()).await;
    let here = fake.heard().checks.last().unwrap().used_here.unwrap();
    assert_eq!(here.user.unwrap().cpu_micros, Some(1700));
    assert_eq!(here.user.unwrap().memory_byte_seconds, Some(0));
    assert_eq!(here.ip, None);
}

/// One that does not know pressure yet, or has no room for another node.
#[tokio::test]
async fn a_service_that_takes_no_pressure_is_asked_all_the_same() {
    for code in [Code::Unimplemented, Code::ResourceExhausted, Code::InvalidArgument] {
        let (one, other) = (Fake::start().await, Fake::start().await);
        one.answers_pressure(code);
        let client = builder([&one, &other]).build().unwrap();
        one.hears(|heard| heard.pressures.len() >= 2).await;
        assert!(allowed(&client, &fetch()).await.checked());
        let (one, other) = (one.heard(), other.heard());
        assert_eq!((one.checks.len(), other.checks.len(), other.pressures.len()), (1, 0, 0), "{code:?}");
    }
}

#[tokio::test]
async fn a_fileserver_without_a_name_tells_no_pressure() {
    let fake = Fake::start().await;
    let client = builder([&fake]).node("").build().unwrap();
    allowed(&client, &fetch()).await.meter().cpu(Duration::from_micros(1));
    let heard = fake.hears(|heard| !heard.reports.is_empty()).await;
    assert_eq!(heard.pressures, []);
}
