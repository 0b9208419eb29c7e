use super::*;

fn machine(cores: f64, network: f64) -> Machine {
    Machine { cores, network, memory: 1.0, degraded: None }
}

fn cpu(seconds: f64, weight: f64) -> Work {
    Work { cpu: seconds, weight, ..Work::default() }
}

fn spent(machine: &Machine, work: &mut [Work], resource: Resource) -> (f64, Vec<f64>) {
    let (load, spent) = step(machine, 0.0, 1.0, work.iter_mut());
    // To the millionth: sums of shares are off by less.
    ((load[resource] * 1e6).round() / 1e6, spent.iter().map(|spent| spent[resource].round()).collect())
}

#[test]
fn a_request_has_one_processor_at_most() {
    let mut work = [cpu(9.0, 1.0), cpu(9.0, 1.0)];
    assert_eq!(spent(&machine(4.0, 1.0), &mut work, Resource::Cpu), (0.5, vec![1e6, 1e6]));
}

#[test]
fn processors_that_are_short_are_shared() {
    let mut work = [cpu(9.0, 1.0), cpu(9.0, 1.0), cpu(9.0, 1.0), cpu(9.0, 1.0)];
    assert_eq!(spent(&machine(2.0, 1.0), &mut work, Resource::Cpu), (1.0, vec![5e5; 4]));
}

#[test]
fn a_light_weight_waits_for_others_and_has_what_they_leave() {
    let mut work = [cpu(9.0, 1.0), cpu(9.0, 0.1), cpu(9.0, 0.1)];
    assert_eq!(spent(&machine(2.0, 1.0), &mut work, Resource::Cpu), (1.0, vec![1e6, 5e5, 5e5]));
    let mut work = [cpu(9.0, 1.0), cpu(9.0, 0.1), cpu(9.0, 0.1)];
    let (_, spent) = spent(&machine(1.0, 1.0), &mut work, Resource::Cpu);
    assert_eq!(spent, [833_333.0, 83_333.0, 83_333.0]);
}

#[test]
fn f29_slow_readers_leave_the_line_to_others() {
    let send = |reads: f64| Work { bytes: 1e9, reads: reads * 1e6, ..Work::default() };
    let mut work = [send(1.0), send(100.0), send(100.0)];
    assert_eq!(spent(&machine(1.0, 21.0), &mut work, Resource::Network), (1.0, vec![1e6, 1e7, 1e7]));
}

#[test]
fn memory_is_held_and_grows() {
    let mebibyte = f64::from(1 << 20);
    let mut work = [Work { waits: 9.0, memory: 256.0 * mebibyte, leak: 256.0 * mebibyte, ..Work::default() }];
    let machine = machine(1.0, 1.0);
    assert_eq!(spent(&machine, &mut work, Resource::Memory), (0.25, vec![256.0 * 1024.0]));
    assert_eq!(spent(&machine, &mut work, Resource::Memory), (0.5, vec![512.0 * 1024.0]));
}

#[test]
fn a_degraded_machine_has_fewer_processors() {
    let degraded = Some(super::super::scenario::Degraded { from: 0, until: 5, cores: 1.0 });
    let machine = Machine { degraded, ..machine(2.0, 1.0) };
    let mut work = [cpu(9.0, 1.0), cpu(9.0, 1.0)];
    assert_eq!(spent(&machine, &mut work, Resource::Cpu), (1.0, vec![5e5, 5e5]));
}
