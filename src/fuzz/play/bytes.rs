//! Runs from bytes. Each choice is one byte, so that a change of the bytes
//! changes one thing and leaves the rest as it was.

use std::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};

use super::answer::How;
use super::moves::{Move, Plan};
use super::wild::Input;
use super::world::{Change, range};
use crate::machine::{Config, ForeignLease, Proof};

/// The most moves before the hold, and in it.
const MOVES_MAX: usize = 120;
const MOVES_IN_HOLD_MAX: usize = 20;

impl<'a> Arbitrary<'a> for How {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=13_u8)? {
            0..=5 => Self::Well,
            6..=7 => Self::Refuse(u.arbitrary()?),
            8 => Self::Fail(u.arbitrary()?),
            9..=10 => Self::Partly,
            11 => Self::Yes,
            12 => Self::WrongEpoch,
            _ => Self::Nameless,
        })
    }
}

impl<'a> Arbitrary<'a> for Change {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=8_u8)? {
            0 => Self::Split(u.arbitrary()?),
            1 => Self::Merge(u.arbitrary()?),
            2 => Self::ConfVer(u.arbitrary()?),
            3 => Self::Lead(u.arbitrary()?, u.arbitrary()?),
            4 => Self::AlsoClaim(u.arbitrary()?, u.arbitrary()?),
            5 => Self::Pending(u.arbitrary()?),
            6 => Self::Hidden(u.arbitrary()?),
            7 => Self::Leaderless,
            _ => Self::AddStore,
        })
    }
}

/// Mostly short times, sometimes minutes.
fn millis(u: &mut Unstructured<'_>) -> Result<u32> {
    let short = u32::from(u.arbitrary::<u16>()?);
    Ok(if u.int_in_range(0..=3_u8)? == 3 {
        short * 4
    } else {
        short % 3_000
    })
}

impl<'a> Arbitrary<'a> for Move {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=31_u8)? {
            0..=7 => Self::AnswerAll,
            8..=9 => Self::AnswerAllButLeases,
            10..=16 => Self::Answer(u.arbitrary()?, u.arbitrary()?),
            17..=18 => Self::Again(u.arbitrary()?, u.arbitrary()?),
            19 => Self::Drop(u.arbitrary()?),
            20 => Self::EndStream(u.arbitrary()?, u.arbitrary()?),
            21..=22 => Self::Change(u.arbitrary()?),
            23..=24 => Self::Pass(millis(u)?),
            25 => Self::PassSilently(millis(u)?),
            26..=28 => Self::NextDeadline,
            29 => Self::Finish,
            30 => Self::Cancel,
            _ => Self::LockLost,
        })
    }
}

fn moves(u: &mut Unstructured<'_>, most: usize) -> Result<Vec<Move>> {
    let count = u.int_in_range(0..=most)?;
    let mut moves = Vec::new();
    while !u.is_empty() && moves.len() < count {
        moves.push(u.arbitrary()?);
    }
    Ok(moves)
}

/// A configuration of few distinct values, with which a hold can be reached.
fn config(u: &mut Unstructured<'_>) -> Result<Config> {
    let part = u.int_in_range(0..=7_u8)? == 7;
    let seconds = |u: &mut Unstructured<'_>, from: &[u64]| u.choose(from).copied();
    Ok(Config {
        target: if part {
            range(64, 192)
        } else {
            Config::default().target
        },
        lease: Duration::from_secs(seconds(u, &[120, 120, 5, 12])?),
        prepare_timeout: Duration::from_secs(seconds(u, &[300, 300, 20])?),
        hold_timeout: Duration::from_secs(seconds(u, &[3600, 3600, 10])?),
        window: *u.choose(&[512, 1, 2])?,
        page_size: *u.choose(&[4096, 1, 2])?,
        foreign_lease: *u.choose(&[ForeignLease::Proceed, ForeignLease::Refuse])?,
        proof: *u.choose(&[Proof::Read, Proof::Read, Proof::Read, Proof::Claims])?,
        seed: u.arbitrary::<u8>()?.into(),
        ..Config::default()
    })
}

impl Plan {
    /// Makes the beginning of a run, with no moves yet.
    pub(in crate::fuzz) fn beginning(u: &mut Unstructured<'_>) -> Result<Self> {
        Ok(Self {
            stores: u.int_in_range(1..=3)?,
            regions: u.int_in_range(1..=4)?,
            foreign: u.int_in_range(0..=4_u8)? == 4,
            config: config(u)?,
            moves: Vec::new(),
            in_hold: Vec::new(),
        })
    }
}

impl<'a> Arbitrary<'a> for Plan {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let beginning = Self::beginning(u)?;
        Ok(Self {
            in_hold: moves(u, MOVES_IN_HOLD_MAX)?,
            moves: moves(u, MOVES_MAX)?,
            ..beginning
        })
    }
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        if u.int_in_range(0..=1_u8)? == 0 {
            return Ok(Self::Move(u.arbitrary()?));
        }
        let millis = match u.int_in_range(0..=7_u8)? {
            0..=3 => 0,
            4..=5 => i64::from(millis(u)?),
            6 => -i64::from(millis(u)?),
            _ => i64::from(u.arbitrary::<u16>()?) * 61,
        };
        let aim = match u.int_in_range(0..=3_u8)? {
            0 => None,
            _ => Some(u.arbitrary()?),
        };
        Ok(Self::Event {
            event: u.arbitrary()?,
            aim,
            millis,
        })
    }
}
