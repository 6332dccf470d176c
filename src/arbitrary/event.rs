use arbitrary::{Arbitrary, Result, Unstructured};

use super::number;
use crate::machine::{Event, RequestId};

impl<'a> Arbitrary<'a> for RequestId {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        number(u).map(Self)
    }
}

impl<'a> Arbitrary<'a> for Event {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let request = u.arbitrary()?;
        Ok(match u.int_in_range(0..=11)? {
            0 => Self::StoresListed {
                request,
                stores: u.arbitrary()?,
            },
            1 => Self::StreamOpened { stream: request },
            2 => Self::StreamEnded {
                stream: request,
                reason: u.arbitrary()?,
            },
            3 => Self::LeaseUpdated {
                request,
                last_lease_is_valid: u.arbitrary()?,
            },
            4 => Self::RegionsClaimed {
                request,
                claims: u.arbitrary()?,
                done: u.arbitrary()?,
            },
            5 => Self::WaitApplyDone {
                stream: request,
                answers: u.arbitrary()?,
            },
            6 => Self::LeaderReadDone {
                request,
                answers: u.arbitrary()?,
            },
            7 => Self::RegionsScanned {
                request,
                regions: u.arbitrary()?,
            },
            8 => Self::RequestFailed {
                request,
                failure: u.arbitrary()?,
            },
            9 => Self::FinishRequested,
            10 => Self::CancelRequested,
            _ => Self::LockLost,
        })
    }
}
