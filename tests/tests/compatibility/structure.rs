//! The wire format only grows: every name of the earlier one means the same today.

use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet, ServiceDescriptorProto,
};

const OLD: &[u8] = tonic::include_file_descriptor_set!("quota-0001");

fn decode(set: &[u8]) -> FileDescriptorSet {
    FileDescriptorSet::decode(set).unwrap()
}

fn present() -> FileDescriptorSet {
    decode(quota_proto::FILE_DESCRIPTOR_SET)
}

/// Each message, field, enum, value, service and method by its full name, with what others rely on of it.
fn elements(set: &FileDescriptorSet) -> BTreeMap<String, String> {
    let mut elements = BTreeMap::new();
    for file in &set.file {
        let package = file.package();
        file.message_type.iter().for_each(|message| add_message(package, message, &mut elements));
        file.enum_type.iter().for_each(|an_enum| add_enum(package, an_enum, &mut elements));
        for service in &file.service {
            let service_name = format!("{package}.{}", service.name());
            for method in &service.method {
                let streams = (method.client_streaming(), method.server_streaming());
                let relied_on = format!("{} -> {} {streams:?}", method.input_type(), method.output_type());
                elements.insert(format!("{service_name}/{}", method.name()), relied_on);
            }
            elements.insert(service_name, "a service".to_owned());
        }
    }
    elements
}

fn add_message(parent: &str, message: &DescriptorProto, elements: &mut BTreeMap<String, String>) {
    let name = format!("{parent}.{}", message.name());
    for field in &message.field {
        // A field that knows whether it is absent is the only one of a oneof of its own, whose number may change.
        let oneof = field.oneof_index.filter(|_| !field.proto3_optional());
        let oneof = oneof.map(|index| message.oneof_decl[index as usize].name());
        let FieldDescriptorProto { number, type_name, .. } = field;
        let (kind, label, optional) = (field.r#type(), field.label(), field.proto3_optional());
        let relied_on = format!("{number:?} {label:?} {kind:?} {type_name:?} {oneof:?} optional: {optional}");
        elements.insert(format!("{name}.{}", field.name()), relied_on);
    }
    message.nested_type.iter().for_each(|nested| add_message(&name, nested, elements));
    message.enum_type.iter().for_each(|an_enum| add_enum(&name, an_enum, elements));
    elements.insert(name, "a message".to_owned());
}

fn add_enum(parent: &str, an_enum: &EnumDescriptorProto, elements: &mut BTreeMap<String, String>) {
    let name = format!("{parent}.{}", an_enum.name());
    for value in &an_enum.value {
        elements.insert(format!("{name}.{}", value.name()), value.number().to_string());
    }
    elements.insert(name, "an enum".to_owned());
}

/// The names of `old` that are gone from `new`, or mean something else there. Where there is none, no number or name can
/// have come to mean something else either: the compiler refuses to have two of one.
fn broken(old: &FileDescriptorSet, new: &FileDescriptorSet) -> Vec<String> {
    let new = elements(new);
    let is_broken = |(name, relied_on): &(String, String)| new.get(name) != Some(relied_on);
    elements(old).into_iter().filter(is_broken).map(|(name, _)| name).collect()
}

#[test]
fn it_only_grows() {
    let old = decode(OLD);
    assert_eq!(broken(&old, &present()), [""; 0]);
    let names = elements(&old);
    for name in ["quota.v1.QuotaService/Check", "quota.v1.Charge.reservation", "quota.v1.Mode.MODE_SHADOW"] {
        assert!(names.contains_key(name), "{name} is not looked at");
    }
}

/// The present format with a message of it changed.
fn with_message(name: &str, change: impl FnOnce(&mut DescriptorProto)) -> FileDescriptorSet {
    let mut set = present();
    let messages = set.file.iter_mut().flat_map(|file| &mut file.message_type);
    change(messages.into_iter().find(|message| message.name() == name).unwrap());
    set
}

fn with_field(
    message: &str,
    field: &str,
    change: impl FnOnce(&mut FieldDescriptorProto),
) -> FileDescriptorSet {
    with_message(message, |message| change(message.field.iter_mut().find(|of| of.name() == field).unwrap()))
}

fn with_service(change: impl FnOnce(&mut ServiceDescriptorProto)) -> FileDescriptorSet {
    let mut set = present();
    change(set.file.iter_mut().find_map(|file| file.service.first_mut()).unwrap());
    set
}

fn assert_broken(name: &str, new: &FileDescriptorSet) {
    assert_eq!(broken(&decode(OLD), new), [name]);
}

#[test]
fn a_field_that_is_gone_or_changed_is_noticed() {
    assert_broken("quota.v1.Cost.network_bytes", &with_message("Cost", |cost| drop(cost.field.pop())));
    assert_broken("quota.v1.Breach.used", &with_field("Breach", "used", |used| used.number = Some(70)));
    assert_broken("quota.v1.Breach.used", &with_field("Breach", "used", |used| used.set_type(Type::Int64)));
    let renamed = with_field("Breach", "used", |used| used.name = Some("spent".into()));
    assert_broken("quota.v1.Breach.used", &renamed);
    let other = with_field("Breach", "limit", |limit| limit.type_name = Some(".quota.v1.Cost".into()));
    assert_broken("quota.v1.Breach.limit", &other);
    let single = with_field("ReportRequest", "charges", |charges| charges.set_label(Label::Optional));
    assert_broken("quota.v1.ReportRequest.charges", &single);
    let implicit = with_field("Accounts", "repo", |repo| repo.proto3_optional = None);
    assert_broken("quota.v1.Accounts.repo", &implicit);
    let alone = with_field("Limit", "amount", |amount| amount.oneof_index = None);
    assert_broken("quota.v1.Limit.amount", &alone);
}

#[test]
fn a_value_a_method_or_a_package_that_is_gone_or_changed_is_noticed() {
    let mut set = present();
    let modes = set.file.iter_mut().flat_map(|file| &mut file.enum_type);
    let mode = modes.into_iter().find(|mode| mode.name() == "Mode").unwrap();
    mode.value.iter_mut().find(|value| value.name() == "MODE_SHADOW").unwrap().number = Some(9);
    assert_broken("quota.v1.Mode.MODE_SHADOW", &set);

    assert_broken(
        "quota.v1.QuotaService/Report",
        &with_service(|service| {
            let report = service.method.iter_mut().find(|method| method.name() == "Report");
            report.unwrap().client_streaming = Some(true);
        }),
    );
    let gone = with_service(|service| service.method.retain(|method| method.name() != "Report"));
    assert_broken("quota.v1.QuotaService/Report", &gone);

    let mut set = present();
    set.file
        .iter_mut()
        .for_each(|file| file.package = file.package.take().map(|name| name.replace("v1", "v2")));
    let all = elements(&decode(OLD)).into_keys().filter(|name| name.starts_with("quota.v1"));
    assert_eq!(broken(&decode(OLD), &set), all.collect::<Vec<_>>());
}
