use std::sync::Arc;

use tonic::{Status, Streaming};

use super::chunks::Chunks;
use super::convert;
use super::dial::Connection;
use super::peer::Peer;
use super::region_error::{is_raftstore_v2, without_keys};
use super::status::Place;
use crate::cluster::Batches;
use crate::error::{Failure, FailureKind};
use crate::pb::backup::backup_client::BackupClient;
use crate::pb::backup::{CheckAdminRequest, CheckAdminResponse};
use crate::region::Claim;

/// The claims of a store, as they come.
#[derive(Debug)]
pub struct TikvClaims {
    answers: Chunks<Streaming<CheckAdminResponse>, Status>,
    peer: Arc<Peer>,
    connection: Arc<Connection>,
    /// What was wrong with an answer, kept until those before it are handed over.
    malformed: Option<Failure>,
}

impl TikvClaims {
    /// Asks the store.
    pub(super) async fn ask(peer: Arc<Peer>, max_answer_bytes: usize) -> Result<Self, Failure> {
        let (answers, connection) = peer
            .call(Place::Listing, |channel| async move {
                let mut client =
                    BackupClient::new(channel).max_decoding_message_size(max_answer_bytes);
                let answers = client.check_pending_admin_op(CheckAdminRequest {}).await?;
                Ok(answers.into_inner())
            })
            .await?;
        Ok(Self {
            answers: Chunks::new(answers),
            peer,
            connection,
            malformed: None,
        })
    }
}

impl Batches<Claim> for TikvClaims {
    async fn next(&mut self) -> Option<Result<Vec<Claim>, Failure>> {
        if let Some(failure) = self.malformed.take() {
            return Some(Err(failure));
        }
        let answers = match self.answers.next().await? {
            Ok(answers) => answers,
            Err(status) => {
                return Some(Err(self.peer.judge(
                    &status,
                    Place::Listing,
                    &self.connection,
                )));
            }
        };
        let mut claims = Vec::with_capacity(answers.len());
        for answer in answers {
            match claim(answer) {
                Ok(claim) => claims.push(claim),
                Err(failure) => {
                    self.malformed = Some(self.peer.named(failure));
                    break;
                }
            }
        }
        match self.malformed.take() {
            Some(failure) if claims.is_empty() => Some(Err(failure)),
            failure => {
                self.malformed = failure;
                Some(Ok(claims))
            }
        }
    }
}

pub(super) fn claim(answer: CheckAdminResponse) -> Result<Claim, Failure> {
    if let Some(error) = answer.error {
        let kind = if is_raftstore_v2(&error.msg) {
            FailureKind::Unsupported
        } else {
            FailureKind::Other
        };
        let words = without_keys(&error.msg);
        return Err(Failure::new(
            kind,
            format!("a listing came with an error: {words}"),
        ));
    }
    let Some(region) = answer.region else {
        return Err(Failure::new(
            FailureKind::Malformed,
            "a listing came with an entry that holds no region",
        ));
    };
    Ok(Claim {
        region: convert::region(region)?,
        has_pending_admin: answer.has_pending_admin,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pb::backup;

    #[test]
    fn an_entry_with_an_error_or_without_a_region_is_a_failure() {
        let with_error = CheckAdminResponse {
            error: Some(backup::Error::default()),
            ..CheckAdminResponse::default()
        };
        let partitioned = CheckAdminResponse {
            error: Some(backup::Error {
                msg: "Raftstore V2 doesn't support snapshot backup yet".to_owned(),
                ..backup::Error::default()
            }),
            ..CheckAdminResponse::default()
        };
        let kinds = [with_error, partitioned, CheckAdminResponse::default()]
            .map(|answer| claim(answer).map(drop).map_err(|failure| failure.kind));
        let expected = [
            FailureKind::Other,
            FailureKind::Unsupported,
            FailureKind::Malformed,
        ];
        assert_eq!(kinds, expected.map(Err));
    }
}
