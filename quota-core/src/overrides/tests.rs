use super::*;

const SHADOWED: Bound = Bound { limit: Limit::At(100), mode: Mode::Shadow };

fn weight(value: f64) -> Override {
    Override::Weight(Weight::try_from(value).unwrap())
}

fn cpu(limit: Limit) -> Override {
    Override::Limits(PerResource::new(Some(limit), None, None))
}

#[test]
fn a_weight_is_of_whole_thousandths_more_than_0_and_at_most_1000() {
    for (value, thousandths) in
        [(4.0, 4000), (0.001, 1), (0.007, 7), (1.1, 1100), (999.999, 999_999), (1000.0, 1_000_000)]
    {
        assert_eq!(Weight::try_from(value).map(Weight::thousandths), Ok(thousandths), "{value}");
    }
    for value in [0.0, -1.0, 0.0005, 1.0001, 1000.001, f64::NAN, f64::INFINITY, f64::MAX, f64::MIN_POSITIVE] {
        assert_eq!(Weight::try_from(value), Err(InvalidWeight), "{value}");
    }
}

#[test]
fn a_weight_multiplies_a_limit_and_never_makes_it_0() {
    let of = |value, limit| Weight::try_from(value).unwrap().times(limit);
    assert_eq!(of(4.0, Limit::At(100)), Limit::At(400));
    assert_eq!(of(0.5, Limit::At(5)), Limit::At(3));
    assert_eq!(of(0.001, Limit::At(1)), Limit::At(1));
    assert_eq!(of(1000.0, Limit::At(0)), Limit::At(0));
    assert_eq!(of(1000.0, Limit::At(u64::MAX)), Limit::At(u64::MAX));
    assert_eq!(of(0.5, Limit::Unlimited), Limit::Unlimited);
}

#[test]
fn what_each_makes_of_the_limit_of_the_kind() {
    for (word, limit, mode) in [
        (weight(2.5), Limit::At(250), Mode::Shadow),
        (cpu(Limit::At(7)), Limit::At(7), Mode::Shadow),
        (cpu(Limit::Unlimited), Limit::Unlimited, Mode::Shadow),
        (Override::Exempt, Limit::At(100), Mode::Off),
        (Override::Blocked, Limit::At(0), Mode::Enforce),
    ] {
        assert_eq!(word.ceiling(Resource::Cpu, SHADOWED), Bound { limit, mode }, "{word:?}");
    }
    assert_eq!(cpu(Limit::At(7)).ceiling(Resource::Memory, SHADOWED), SHADOWED, "of which nothing is said");
}

#[test]
fn a_limit_on_a_node_keeps_its_proportion_to_that_of_the_kind() {
    let (of_node, of_kind) = (Limit::At(50), Limit::At(100));
    for (word, limit) in [
        (weight(4.0), Limit::At(200)),
        (cpu(Limit::At(600)), Limit::At(300)),
        (cpu(Limit::At(1)), Limit::At(1)),
        (cpu(Limit::At(0)), Limit::At(0)),
        (cpu(Limit::Unlimited), Limit::Unlimited),
        (Override::Exempt, of_node),
        (Override::Blocked, of_node),
    ] {
        assert_eq!(word.on_node(Resource::Cpu, of_node, of_kind), limit, "{word:?}");
    }
    assert_eq!(cpu(Limit::At(600)).on_node(Resource::Network, of_node, of_kind), of_node);
    assert_eq!(cpu(Limit::At(600)).on_node(Resource::Cpu, of_node, Limit::Unlimited), Limit::At(600));
    assert_eq!(cpu(Limit::At(600)).on_node(Resource::Cpu, of_node, Limit::At(0)), Limit::At(600));
}
