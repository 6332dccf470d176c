use std::sync::Arc;

use super::address::{Address, Scheme};
use super::peer::Peer;
use super::region_error::without_keys;
use super::status::Place;
use crate::error::{Failure, FailureKind};
use crate::pb::pdpb::pd_client::PdClient;
use crate::pb::pdpb::{
    ErrorType, GetMembersRequest, GetMembersResponse, Member, RequestHeader, ResponseHeader,
};

/// What a member of PD says of its cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Membership {
    pub(super) cluster_id: u64,
    /// Where the leader listens for clients; empty when there is none now.
    pub(super) leader: Vec<(Scheme, Address)>,
    /// Where all members listen for clients.
    pub(super) members: Vec<(Scheme, Address)>,
}

/// Asks one server who its fellow members are. `cluster_id` is `None` as long as
/// it is not known.
pub(super) async fn ask(
    peer: &Arc<Peer>,
    cluster_id: Option<u64>,
    max_answer_bytes: usize,
) -> Result<Membership, Failure> {
    let header = request_header(cluster_id.unwrap_or_default());
    let (answer, _) = peer
        .call(Place::Pd, |channel| {
            let mut client = PdClient::new(channel).max_decoding_message_size(max_answer_bytes);
            let request = GetMembersRequest {
                header: Some(header.clone()),
            };
            async move { client.get_members(request).await }
        })
        .await?;
    read(&answer.into_inner(), cluster_id).map_err(|failure| peer.named(failure))
}

/// Reads what a server said of its fellow members.
pub(super) fn read(
    answer: &GetMembersResponse,
    cluster_id: Option<u64>,
) -> Result<Membership, Failure> {
    Ok(Membership {
        cluster_id: check_header(answer.header.as_ref(), cluster_id)?,
        leader: answer.leader.iter().flat_map(client_addresses).collect(),
        members: answer.members.iter().flat_map(client_addresses).collect(),
    })
}

pub(super) fn request_header(cluster_id: u64) -> RequestHeader {
    RequestHeader {
        cluster_id,
        caller_component: "snapshot-prepare".to_owned(),
        ..RequestHeader::default()
    }
}

/// Returns the cluster id in an answer's header, or what is wrong with it. An
/// answer that a PD would not give is that of another service.
pub(super) fn check_header(
    header: Option<&ResponseHeader>,
    cluster_id: Option<u64>,
) -> Result<u64, Failure> {
    let Some(header) = header else {
        return Err(Failure::new(
            FailureKind::WrongService,
            "what answers is not PD: its answer has no header",
        ));
    };
    let error = header
        .error
        .as_ref()
        .filter(|error| error.r#type != i32::from(ErrorType::Ok));
    let found = header.cluster_id;
    // Some errors come before PD knows its cluster.
    if let Some(expected) = cluster_id
        && found != expected
        && !(error.is_some() && found == 0)
    {
        return Err(Failure::new(
            FailureKind::WrongCluster,
            format!("it belongs to cluster {found}, not to cluster {expected}"),
        ));
    }
    if let Some(error) = error {
        return Err(header_failure(error.r#type, &error.message));
    }
    if found == 0 {
        return Err(Failure::new(
            FailureKind::WrongService,
            "what answers is not PD: its answer names no cluster",
        ));
    }
    Ok(found)
}

fn header_failure(error_type: i32, message: &str) -> Failure {
    let (kind, name) = match ErrorType::try_from(error_type) {
        Ok(ErrorType::NotBootstrapped) => (FailureKind::Unavailable, "NOT_BOOTSTRAPPED"),
        Ok(ErrorType::IncompatibleVersion) => (FailureKind::Unsupported, "INCOMPATIBLE_VERSION"),
        Ok(ErrorType::Unknown) if message.contains("not leader") => {
            (FailureKind::Unavailable, "UNKNOWN")
        }
        Ok(known) => (FailureKind::Other, known.as_str_name()),
        Err(_) => (FailureKind::Other, "an error of unknown type"),
    };
    Failure::new(kind, format!("PD says {name}: {}", without_keys(message)))
}

fn client_addresses(member: &Member) -> impl Iterator<Item = (Scheme, Address)> {
    member
        .client_urls
        .iter()
        .filter_map(|url| Address::parse(url).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pb::pdpb::Error;

    fn header(cluster_id: u64, error: Option<(ErrorType, &str)>) -> ResponseHeader {
        ResponseHeader {
            cluster_id,
            error: error.map(|(error_type, message)| Error {
                r#type: error_type.into(),
                message: message.to_owned(),
            }),
        }
    }

    #[test]
    fn every_header_is_understood() {
        use ErrorType as Type;
        use FailureKind as Kind;
        let rows = [
            (header(7, None), Some(7), Ok(7)),
            (header(7, None), None, Ok(7)),
            (header(7, Some((Type::Ok, ""))), Some(7), Ok(7)),
            (header(8, None), Some(7), Err(Kind::WrongCluster)),
            (header(0, None), Some(7), Err(Kind::WrongCluster)),
            (header(0, None), None, Err(Kind::WrongService)),
            (
                header(8, Some((Type::Unknown, "not leader"))),
                Some(7),
                Err(Kind::WrongCluster),
            ),
            (
                header(0, Some((Type::Unknown, "is not leader"))),
                Some(7),
                Err(Kind::Unavailable),
            ),
            (
                header(7, Some((Type::Unknown, "is not leader"))),
                Some(7),
                Err(Kind::Unavailable),
            ),
            (
                header(7, Some((Type::Unknown, "etcd is slow"))),
                Some(7),
                Err(Kind::Other),
            ),
            (
                header(7, Some((Type::NotBootstrapped, ""))),
                Some(7),
                Err(Kind::Unavailable),
            ),
            (
                header(7, Some((Type::IncompatibleVersion, ""))),
                Some(7),
                Err(Kind::Unsupported),
            ),
            (
                header(7, Some((Type::DataCompacted, ""))),
                Some(7),
                Err(Kind::Other),
            ),
        ];
        for (header, expected_id, expected) in rows {
            let found = check_header(Some(&header), expected_id).map_err(|failure| failure.kind);
            assert_eq!(found, expected, "{header:?} for {expected_id:?}");
        }
        let none = check_header(None, Some(7)).map_err(|failure| failure.kind);
        assert_eq!(none, Err(Kind::WrongService));
    }
}
