//! The whole client over loopback against one that only counts the answers:
//! processor time of the client's process, the server being in another one.

use std::time::Duration;

use super::{Budget, is_full};
use crate::support::client::Target;
use crate::support::cpu::timed_process;
use crate::support::server::{Server, Size};

const STORES: u32 = 3;
const WINDOW: u32 = 512;
/// Regions, and what `BUDGETS_FULL=1` makes of them.
const REGIONS: u32 = 10_000;
const REGIONS_FULL: u32 = 100_000;
/// Runs of each client, in turns.
const ROUNDS: usize = 7;

pub(crate) fn measure() -> Vec<Budget> {
    let regions = if is_full() { REGIONS_FULL } else { REGIONS };
    let size = Size {
        stores: STORES,
        regions,
    };
    let server = Server::start(size);
    let target = Target::new(&server.pd, size.layout(), WINDOW);
    let clients: [(&str, &dyn Fn()); 4] = [
        ("ours", &|| target.prepare()),
        ("counting", &|| target.count()),
        ("counting, reads in messages", &|| {
            target.count_in_messages()
        }),
        ("counting and listing", &|| target.count_and_list()),
    ];
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for ((_, client), times) in clients.iter().zip(&mut times) {
            times.push(timed_process(client).as_secs_f64());
        }
    }
    for ((name, _), times) in clients.iter().zip(&times) {
        let each = Duration::from_secs_f64(median(times.clone()) / f64::from(regions));
        println!("client, {regions} regions, {name}: {each:.1?} each");
    }
    let [ours, counting, in_messages, listing] = &times;
    let against = |other: &[f64]| {
        let ratios = ours.iter().zip(other).map(|(ours, other)| ours / other);
        median(ratios.collect())
    };
    println!(
        "client against counting, reads in messages: {:.3}",
        against(in_messages)
    );
    println!(
        "client against counting and listing: {:.3}",
        against(listing)
    );
    vec![Budget::timed("client", against(counting), 1.15)]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
