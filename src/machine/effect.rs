use std::fmt;

use crate::range::KeyRange;
use crate::region::{ReadTarget, Store, StoreId, WaitTarget};

/// The number of an effect that expects an answer; the number of `OpenStream`
/// is also the stream's. Never used twice by one machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// What has to be done: the output of [`Machine::poll_effect`](super::Machine::poll_effect).
///
/// Carry effects out in order, without waiting for one before the next. The
/// machine keeps all deadlines, so none is carried out twice and none has a
/// time limit of its own. An answer that the machine gave up on may be dropped
/// or handed in late.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Effect {
    /// Ask PD for all stores; answered by `StoresListed` or `RequestFailed`.
    ListStores {
        /// The number.
        request: RequestId,
    },
    /// Dial a store and open a prepare stream; answered by `StreamOpened` or
    /// `StreamEnded`.
    OpenStream {
        /// The number of the effect, and of the stream.
        stream: RequestId,
        /// The store with the address PD gave last.
        store: Store,
    },
    /// Send `UpdateLease` on a stream, before anything else that waits to be
    /// sent there; answered by `LeaseUpdated`.
    UpdateLease {
        /// The number.
        request: RequestId,
        /// The stream.
        stream: RequestId,
        /// The store, for logs.
        store_id: StoreId,
        /// The lease to ask for, in whole seconds.
        seconds: u64,
    },
    /// Ask a store which regions it leads; answered by `RegionsClaimed` (the
    /// last one with `done`) or `RequestFailed`.
    ListClaims {
        /// The number.
        request: RequestId,
        /// The store with the address PD gave last.
        store: Store,
    },
    /// Send `WaitApply` on a stream; answered region by region by
    /// `WaitApplyDone`.
    WaitApply {
        /// The stream.
        stream: RequestId,
        /// The store, for logs.
        store_id: StoreId,
        /// The regions, at most the window.
        regions: Vec<WaitTarget>,
    },
    /// Send one leader read per region to a store; answered by
    /// `LeaderReadDone`, or by `RequestFailed` for all not answered yet.
    LeaderRead {
        /// The number.
        request: RequestId,
        /// The store with the address PD gave last.
        store: Store,
        /// The regions.
        regions: Vec<ReadTarget>,
    },
    /// Ask PD for the regions of a range; answered by `RegionsScanned` or
    /// `RequestFailed`.
    ScanRegions {
        /// The number.
        request: RequestId,
        /// The keys.
        range: KeyRange,
        /// The most regions to answer with.
        limit: u32,
    },
    /// Send `Finish` on a stream and drop what else waits to be sent there;
    /// answered by `LeaseUpdated`, then by `StreamEnded`. The request side stays
    /// open until `CloseStream`.
    Finish {
        /// The number.
        request: RequestId,
        /// The stream.
        stream: RequestId,
        /// The store, for logs.
        store_id: StoreId,
    },
    /// Drop a stream, open or being opened. No event of it counts any more.
    CloseStream {
        /// The stream.
        stream: RequestId,
        /// The store, for logs.
        store_id: StoreId,
    },
}

impl Effect {
    /// Returns the name of the variant, for counters and traces.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::ListStores { .. } => "ListStores",
            Self::OpenStream { .. } => "OpenStream",
            Self::UpdateLease { .. } => "UpdateLease",
            Self::ListClaims { .. } => "ListClaims",
            Self::WaitApply { .. } => "WaitApply",
            Self::LeaderRead { .. } => "LeaderRead",
            Self::ScanRegions { .. } => "ScanRegions",
            Self::Finish { .. } => "Finish",
            Self::CloseStream { .. } => "CloseStream",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_shown_as_one() {
        assert_eq!(RequestId(12).to_string(), "#12");
    }

    #[test]
    fn an_effect_is_called_as_it_is_in_code() {
        let request = RequestId(1);
        let store = Store::default();
        for effect in [
            Effect::ListStores { request },
            Effect::ListClaims { request, store },
            Effect::CloseStream {
                stream: request,
                store_id: StoreId(1),
            },
        ] {
            let shown = format!("{effect:?}");
            assert_eq!(shown.split(' ').next(), Some(effect.name()));
        }
    }
}
