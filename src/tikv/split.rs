use prost::Message;
use prost::encoding::{encoded_len_varint, key_len};

use super::convert;
use crate::cluster::StreamRequest;
use crate::pb::backup::{PrepareSnapshotBackupRequest, PrepareSnapshotBackupRequestType};
use crate::pb::metapb;
use crate::region::WaitTarget;

/// What gRPC puts before each message: a flag and four bytes of length.
const FRAME_BYTES: usize = 5;
/// The number of the field `regions`.
const REGIONS_FIELD: u32 = 2;

/// Returns the messages that make up a request, none larger than `limit` bytes
/// with its frame, save one that holds a single region. No regions, no message:
/// a store answers an empty one with nothing.
pub(super) fn messages(request: StreamRequest, limit: usize) -> Vec<PrepareSnapshotBackupRequest> {
    match request {
        StreamRequest::UpdateLease { seconds } => vec![PrepareSnapshotBackupRequest {
            ty: PrepareSnapshotBackupRequestType::UpdateLease.into(),
            lease_in_seconds: seconds,
            ..PrepareSnapshotBackupRequest::default()
        }],
        StreamRequest::Finish => vec![PrepareSnapshotBackupRequest {
            ty: PrepareSnapshotBackupRequestType::Finish.into(),
            ..PrepareSnapshotBackupRequest::default()
        }],
        StreamRequest::WaitApply { regions } => split(&regions, limit),
    }
}

fn split(targets: &[WaitTarget], limit: usize) -> Vec<PrepareSnapshotBackupRequest> {
    let empty_bytes = FRAME_BYTES + wait_apply(Vec::new()).encoded_len();
    let mut messages = Vec::new();
    let mut regions: Vec<metapb::Region> = Vec::new();
    let mut bytes = empty_bytes;
    for target in targets {
        let region = convert::wait_target(target);
        let region_bytes = field_bytes(&region);
        if !regions.is_empty() && bytes + region_bytes > limit {
            messages.push(wait_apply(std::mem::take(&mut regions)));
            bytes = empty_bytes;
        }
        bytes += region_bytes;
        regions.push(region);
    }
    if !regions.is_empty() {
        messages.push(wait_apply(regions));
    }
    messages
}

fn wait_apply(regions: Vec<metapb::Region>) -> PrepareSnapshotBackupRequest {
    PrepareSnapshotBackupRequest {
        ty: PrepareSnapshotBackupRequestType::WaitApply.into(),
        regions,
        ..PrepareSnapshotBackupRequest::default()
    }
}

/// How much longer a request gets by one region.
fn field_bytes(region: &metapb::Region) -> usize {
    let bytes = region.encoded_len();
    // A length of message is far below 2^64.
    key_len(REGIONS_FIELD) + encoded_len_varint(bytes as u64) + bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::region::{RegionEpoch, RegionId};

    fn target(id: u64, conf_ver: u64, version: u64) -> WaitTarget {
        WaitTarget {
            region_id: RegionId(id),
            epoch: RegionEpoch { conf_ver, version },
        }
    }

    fn wait(regions: Vec<WaitTarget>, limit: usize) -> Vec<PrepareSnapshotBackupRequest> {
        messages(StreamRequest::WaitApply { regions }, limit)
    }

    fn framed(message: &PrepareSnapshotBackupRequest) -> usize {
        FRAME_BYTES + message.encoded_len()
    }

    #[test]
    fn one_byte_decides() {
        let regions = vec![target(1004, 1, 3), target(300, 2, u64::MAX)];
        let whole = framed(&wait(regions.clone(), usize::MAX)[0]);
        assert_eq!(wait(regions.clone(), whole + 1).len(), 1);
        assert_eq!(wait(regions.clone(), whole).len(), 1);
        assert_eq!(wait(regions, whole - 1).len(), 2);
    }

    #[test]
    fn one_region_is_sent_whatever_the_limit() {
        assert_eq!(wait(vec![target(1, 1, 1), target(2, 1, 1)], 1).len(), 2);
        assert_eq!(wait(Vec::new(), 1), []);
    }

    #[test]
    fn the_bytes_are_those_of_the_protocol() {
        let finish = &messages(StreamRequest::Finish, 9)[0];
        assert_eq!(finish.encode_to_vec(), [0x08, 2]);
        let lease = &messages(StreamRequest::UpdateLease { seconds: 60 }, 9)[0];
        assert_eq!(lease.encode_to_vec(), [0x18, 60]);
        let wait = &wait(vec![target(1004, 1, 3)], 99)[0];
        assert_eq!(
            wait.encode_to_vec(),
            [0x08, 1, 0x12, 9, 0x08, 0xec, 7, 0x22, 4, 0x08, 1, 0x10, 3]
        );
    }

    proptest! {
        #[test]
        fn no_message_is_over_the_limit_and_none_could_take_more(
            ids in proptest::collection::vec((any::<u64>(), any::<u16>(), any::<u64>()), 0..200),
            limit in 60_usize..2000,
        ) {
            let regions: Vec<_> = ids
                .iter()
                .map(|(id, conf_ver, version)| target(*id, u64::from(*conf_ver), *version))
                .collect();
            let sent = wait(regions.clone(), limit);
            for message in &sent {
                prop_assert!(framed(message) <= limit);
            }
            for pair in sent.windows(2) {
                let mut fuller = pair[0].clone();
                fuller.regions.push(pair[1].regions[0].clone());
                prop_assert!(framed(&fuller) > limit);
            }
            let all: Vec<_> = sent.into_iter().flat_map(|message| message.regions).collect();
            let asked: Vec<_> = regions.iter().map(convert::wait_target).collect();
            prop_assert_eq!(all, asked);
        }
    }
}
