use std::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};

use super::number;
use crate::error::{Failure, FailureKind};
use crate::region::{
    Claim, Peer, PeerId, PeerRole, ReadAnswer, Region, RegionEpoch, RegionError, RegionErrorKind,
    RegionId, ScannedRegion, Store, StoreId, StoreState, WaitAnswer, WaitTarget,
};

/// Implements `Arbitrary` field by field.
macro_rules! by_field {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl<'a> Arbitrary<'a> for $name {
            fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
                Ok(Self { $($field: u.arbitrary()?),* })
            }
        }
    )*};
}

by_field! {
    Claim { region, has_pending_admin }
    Peer { id, store_id, role }
    ReadAnswer { region_id, epoch, result }
    Region { id, range, epoch, peers }
    ScannedRegion { region, leader }
    WaitAnswer { target, result }
    WaitTarget { region_id, epoch }
}

impl<'a> Arbitrary<'a> for RegionId {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        number(u).map(Self)
    }
}

impl<'a> Arbitrary<'a> for PeerId {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        number(u).map(Self)
    }
}

impl<'a> Arbitrary<'a> for StoreId {
    /// Few stores, so that they are met again.
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        u.int_in_range(0..=4).map(Self)
    }
}

impl<'a> Arbitrary<'a> for RegionEpoch {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self {
            conf_ver: number(u)?,
            version: number(u)?,
        })
    }
}

impl<'a> Arbitrary<'a> for PeerRole {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(*u.choose(&[
            Self::Voter,
            Self::Learner,
            Self::IncomingVoter,
            Self::DemotingVoter,
        ])?)
    }
}

impl<'a> Arbitrary<'a> for StoreState {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(*u.choose(&[Self::Up, Self::Offline, Self::Tombstone])?)
    }
}

impl<'a> Arbitrary<'a> for Store {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let labels = u.ratio(1, 8)?;
        Ok(Self {
            id: u.arbitrary()?,
            address: "store:20160".to_owned(),
            state: u.arbitrary()?,
            labels: labels
                .then(|| ("engine".to_owned(), "tiflash".to_owned()))
                .into_iter()
                .collect(),
            ..Self::default()
        })
    }
}

impl<'a> Arbitrary<'a> for RegionErrorKind {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let backoff = Duration::from_millis(u.arbitrary::<u16>()?.into());
        Ok(*u.choose(&[
            Self::EpochNotMatch,
            Self::RegionNotFound,
            Self::NotLeader,
            Self::StaleCommand,
            Self::ServerIsBusy { backoff },
            Self::Duplicated,
            Self::NotReady,
            Self::WrongPeer,
            Self::Unserved,
            Self::Unsupported,
            Self::Other,
        ])?)
    }
}

impl<'a> Arbitrary<'a> for RegionError {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self::new(u.arbitrary()?, "no"))
    }
}

impl<'a> Arbitrary<'a> for FailureKind {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(*u.choose(&Self::ALL)?)
    }
}

impl<'a> Arbitrary<'a> for Failure {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self::new(u.arbitrary()?, "failed"))
    }
}
