use crate::pb::errorpb;
use crate::pb::kvrpcpb::{BatchGetResponse, KeyError, KvPair, RawBatchGetResponse};
use crate::region::{ReadAnswer, ReadTarget, RegionError, RegionErrorKind};
use crate::tikv::region_error::region_error;

/// What came back for one read. Data, if any came, is dropped unseen.
#[derive(Debug)]
pub(in crate::tikv) enum Outcome {
    Served,
    Refused(RegionError),
    /// The store does not serve this read to the API version it was asked in.
    WrongApiVersion,
}

impl Outcome {
    /// What it is of.
    pub(super) fn answer(self, target: &ReadTarget) -> ReadAnswer {
        ReadAnswer {
            region_id: target.region_id,
            epoch: target.epoch,
            result: self.into_result(),
        }
    }

    pub(in crate::tikv) fn into_result(self) -> Result<(), RegionError> {
        match self {
            Self::Served => Ok(()),
            Self::Refused(error) => Err(error),
            Self::WrongApiVersion => Err(RegionError::new(
                RegionErrorKind::Unsupported,
                "the store serves neither kind of read without keys in its API version",
            )),
        }
    }
}

pub(in crate::tikv) fn judge_kv(answer: BatchGetResponse) -> Outcome {
    judge(answer.region_error, answer.error, &answer.pairs)
}

pub(in crate::tikv) fn judge_raw(answer: RawBatchGetResponse) -> Outcome {
    judge(answer.region_error, None, &answer.pairs)
}

/// Served is what holds no region error, no error and no pair.
fn judge(region: Option<errorpb::Error>, error: Option<KeyError>, pairs: &[KvPair]) -> Outcome {
    if let Some(error) = region {
        return Outcome::Refused(region_error(&error));
    }
    let of_pairs = pairs.iter().filter_map(|pair| pair.error.as_ref());
    if error
        .iter()
        .chain(of_pairs)
        .any(|error| error.abort.contains("ApiVersionNotMatched"))
    {
        return Outcome::WrongApiVersion;
    }
    let words = if error.is_some() {
        "the store answered the read with an error"
    } else if !pairs.is_empty() {
        "the store answered a read without keys with data"
    } else {
        return Outcome::Served;
    };
    Outcome::Refused(RegionError::new(RegionErrorKind::Other, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abort(words: &str) -> KeyError {
        KeyError {
            abort: words.to_owned(),
            ..KeyError::default()
        }
    }

    #[test]
    fn served_is_known_by_what_is_absent() {
        assert!(matches!(judge(None, None, &[]), Outcome::Served));
        let pair = KvPair::default();
        let refused = [
            judge(Some(errorpb::Error::default()), None, &[]),
            judge(None, Some(abort("Key 7A is out of [region 1]")), &[]),
            judge(None, Some(KeyError::default()), &[]),
            judge(None, None, &[pair]),
        ];
        for outcome in refused {
            let Outcome::Refused(error) = outcome else {
                panic!("not refused");
            };
            assert!(!error.message.contains("7A"), "{error}");
        }
    }

    #[test]
    fn the_api_version_is_refused_in_two_places() {
        let error = abort("ApiVersionNotMatched { cmd: raw_batch_get, storage_api_version: V2 }");
        let pair = KvPair {
            error: Some(error.clone()),
            ..KvPair::default()
        };
        for outcome in [judge(None, Some(error), &[]), judge(None, None, &[pair])] {
            assert!(matches!(outcome, Outcome::WrongApiVersion));
        }
    }
}
