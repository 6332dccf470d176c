//! Running a property: seed, replay, regressions.

use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};

use proptest::strategy::Strategy;
use proptest::test_runner::{
    Config, FileFailurePersistence, RngSeed, TestCaseError, TestError, TestRunner,
};

/// Whether as many cases are run as the test asks for.
pub(crate) fn is_full() -> bool {
    std::env::var_os("PROPTEST_CASES").is_none()
}

/// Checks a property on `cases` values of `strategy`.
///
/// What once failed is in `regressions/<name>.txt` and runs first. A failure is
/// shrunk, and says the seed that brings it back.
pub(crate) fn check<S>(
    name: &'static str,
    regressions: &'static str,
    cases: u32,
    strategy: &S,
    property: impl Fn(&S::Value) -> Result<(), String>,
) where
    S: Strategy,
    S::Value: Debug,
{
    // What the environment says goes before what the test asks for.
    let mut config = Config::default();
    if is_full() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_MAX_SHRINK_ITERS").is_none() {
        config.max_shrink_iters = 20_000;
    }
    if config.failure_persistence.is_some() {
        config.failure_persistence = Some(Box::new(FileFailurePersistence::Direct(regressions)));
    }
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(name),
    };
    config.rng_seed = RngSeed::Fixed(seed);
    config.test_name = Some(name);
    println!("{name}: seed {seed}, {} cases", config.cases);
    let result = TestRunner::new(config).run(strategy, |value| {
        property(&value).map_err(TestCaseError::fail)
    });
    match result {
        Ok(()) => {}
        Err(TestError::Abort(reason)) => panic!("{name} gave up: {reason}"),
        Err(TestError::Fail(reason, value)) => panic!(
            "{name} failed: {reason}\nminimal input: {value:#?}\nreplay: PROPTEST_RNG_SEED={seed} \
             cargo test --no-default-features --features arbitrary --test \
             machine_properties {name}\n\
             (or run the test again: the case was added to {regressions})"
        ),
    }
}
