use std::borrow::Cow;
use std::error::Error as StdError;

use tonic::{Code, Status};

use super::region_error::{is_raftstore_v2, without_keys};
use crate::error::{Failure, FailureKind, with_causes};

/// Which call a status came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A prepare stream.
    Stream,
    /// A store's listing of its claims.
    Listing,
    /// A leader read.
    Read,
    /// A call that every PD serves.
    Pd,
    /// A call that older PDs do not have.
    PdNewer,
}

/// A status, taken apart for the table.
#[derive(Clone, Copy, Debug)]
struct Seen<'a> {
    code: Code,
    /// The message, and behind it what caused it where it was made up here.
    words: &'a str,
    /// Whether our own transport made it up, without a word from the server.
    local: bool,
    /// Why HTTP/2 gave up, where it did.
    reason: Option<h2::Reason>,
}

/// Returns what a status means, and says it in words without keys.
pub(super) fn failure(status: &Status, place: Place) -> Failure {
    let local = is_local(status);
    let reason = h2_reason(status);
    let words = if local && reason == Some(h2::Reason::FRAME_SIZE_ERROR) {
        format!(
            "{}: the server does not speak HTTP/2, or wants TLS",
            chain(status)
        )
    } else if local {
        chain(status)
    } else {
        status.message().to_owned()
    };
    let seen = Seen {
        code: status.code(),
        words: &words,
        local,
        reason,
    };
    let kind = classify(seen, place);
    let code = code_name(status.code());
    if local {
        Failure::new(kind, format!("{code}: {}", advised(&words)))
    } else {
        Failure::new(kind, format!("{code}: {}", without_keys(&words)))
    }
}

/// Returns what the failure of a dial means.
pub(super) fn dial_failure(error: &(dyn StdError + 'static)) -> Failure {
    let words = chain(error);
    let kind = tls_kind(&words).unwrap_or(FailureKind::Unavailable);
    Failure::new(kind, advised(&words))
}

/// Whether our own transport made the status up, so that the server may never
/// have seen the call.
pub(super) fn is_local(status: &Status) -> bool {
    status.source().is_some()
}

/// Whether a TLS handshake was broken off without a word. A server without TLS
/// does that, and so does one that goes down.
pub(super) fn is_handshake_cut(failure: &Failure) -> bool {
    failure.message.contains("tls handshake eof")
}

/// The one table from statuses to failure kinds.
fn classify(seen: Seen<'_>, place: Place) -> FailureKind {
    use FailureKind as Kind;
    if seen.local
        && let Some(kind) = broken_transport(seen)
    {
        return kind;
    }
    let says = |words: &str| seen.words.contains(words);
    // Answered over HTTP, but not by a gRPC server.
    let not_grpc = says("mapped from HTTP status code") || says("invalid compression flag");
    let on_stream = place == Place::Stream;
    match seen.code {
        Code::Ok => Kind::Finished,
        Code::Cancelled if on_stream && says("the loop has been aborted by server") => {
            Kind::Superseded
        }
        Code::Cancelled => Kind::Cancelled,
        Code::FailedPrecondition if on_stream => Kind::LeaseLost,
        Code::FailedPrecondition | Code::InvalidArgument if says("cluster id") => {
            Kind::WrongCluster
        }
        Code::Unimplemented | Code::Internal | Code::Unknown if not_grpc => Kind::WrongService,
        Code::Unimplemented if place == Place::Pd => Kind::WrongService,
        // So do servers in Go speak, such as PD; an old store just says the code.
        Code::Unimplemented if says("unknown service") => Kind::WrongService,
        Code::Unimplemented => Kind::Unsupported,
        Code::Internal if is_raftstore_v2(seen.words) => Kind::Unsupported,
        Code::Internal if says("failed to decode Protobuf message") => Kind::Malformed,
        Code::Unavailable => Kind::Unavailable,
        Code::DeadlineExceeded => Kind::Timeout,
        Code::Unauthenticated | Code::PermissionDenied => Kind::Unauthenticated,
        Code::ResourceExhausted => Kind::ResourceExhausted,
        Code::OutOfRange if says("message length too large") => Kind::ResourceExhausted,
        _ => Kind::Other,
    }
}

/// What a status means that the transport made up; `None` where its code says it
/// well enough.
fn broken_transport(seen: Seen<'_>) -> Option<FailureKind> {
    use FailureKind as Kind;
    if let Some(kind) = tls_kind(seen.words) {
        return Some(kind);
    }
    // The codes that the transport makes of these depend on its features, the
    // reasons do not.
    match seen.reason {
        Some(h2::Reason::ENHANCE_YOUR_CALM) => return Some(Kind::ResourceExhausted),
        Some(h2::Reason::REFUSED_STREAM) => return Some(Kind::Unavailable),
        Some(h2::Reason::CANCEL) => return Some(Kind::Cancelled),
        // What a server of HTTP/1 says reads as a frame of absurd size.
        Some(h2::Reason::FRAME_SIZE_ERROR) => return Some(Kind::WrongService),
        Some(_) => return Some(Kind::Transport),
        None => {}
    }
    match seen.code {
        Code::Unknown | Code::Internal => Some(Kind::Transport),
        _ => None,
    }
}

/// What the words of the TLS library mean, `None` when it did not speak.
fn tls_kind(words: &str) -> Option<FailureKind> {
    const REFUSALS: [&str; 9] = [
        "invalid peer certificate",
        "received corrupt message",
        "received unexpected message",
        "received unexpected handshake message",
        "received fatal alert",
        "peer is incompatible",
        "peer misbehaved",
        "invalid dns name",
        "HTTPS without TLS",
    ];
    if words.contains("HTTP/2 was not negotiated") {
        return Some(FailureKind::WrongService);
    }
    REFUSALS
        .iter()
        .any(|refusal| words.contains(refusal))
        .then_some(FailureKind::Tls)
}

/// Returns the words of our transport, with what to do behind them where they are
/// those of TLS and leave people guessing.
fn advised(words: &str) -> Cow<'_, str> {
    const REFUSED: &str = "the server refuses the client certificate";
    const ADVICE: [(&str, &str); 11] = [
        (
            "alert: CertificateRequired",
            "the server demands a client certificate",
        ),
        ("alert: BadCertificate", REFUSED),
        ("alert: UnsupportedCertificate", REFUSED),
        ("alert: CertificateRevoked", REFUSED),
        ("alert: CertificateExpired", REFUSED),
        ("alert: CertificateUnknown", REFUSED),
        ("alert: UnknownCA", REFUSED),
        ("alert: AccessDenied", REFUSED),
        ("alert: DecryptError", REFUSED),
        (
            "peer certificate: UnknownIssuer",
            "no CA certificate that is given has signed the server's",
        ),
        (
            "received corrupt message",
            "the server may not speak TLS at all",
        ),
    ];
    let found = ADVICE.iter().find(|(said, _)| words.contains(said));
    match found {
        Some((_, advice)) => Cow::Owned(format!("{words}: {advice}")),
        None => Cow::Borrowed(words),
    }
}

/// Returns the message of an error and of all that caused it, each said once.
pub(super) fn chain(error: &(dyn StdError + 'static)) -> String {
    let words = match error.downcast_ref::<Status>() {
        Some(status) => status.message().to_owned(),
        None => error.to_string(),
    };
    with_causes(words, error)
}

fn h2_reason(status: &Status) -> Option<h2::Reason> {
    let mut next = status.source();
    while let Some(cause) = next {
        if let Some(error) = cause.downcast_ref::<h2::Error>() {
            return error.reason();
        }
        next = cause.source();
    }
    None
}

/// Returns the code's name as gRPC writes it.
fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureKind as Kind;

    const SERVER: bool = false;
    const LOCAL: bool = true;

    /// One row for each status that was seen, or is possible, at each place.
    #[test]
    fn every_status_has_its_kind() {
        let stream = Some(Place::Stream);
        let listing = Some(Place::Listing);
        let read = Some(Place::Read);
        let pd = Some(Place::Pd);
        let newer = Some(Place::PdNewer);
        let any = None;
        #[rustfmt::skip]
        let rows = [
            // (who speaks, code, words, where, kind)
            (SERVER, Code::Ok, "", any, Kind::Finished),
            (SERVER, Code::Cancelled, "the loop has been aborted by server", stream, Kind::Superseded),
            (SERVER, Code::Cancelled, "the loop has been aborted by server", listing, Kind::Cancelled),
            (SERVER, Code::Cancelled, "CANCELLED", any, Kind::Cancelled),
            (LOCAL, Code::Cancelled, "operation was canceled: connection closed", any, Kind::Cancelled),
            (SERVER, Code::FailedPrecondition, "the lease has expired, you may not send `wait_apply`", stream, Kind::LeaseLost),
            (SERVER, Code::FailedPrecondition, "mismatch cluster id, need 1 but got 2", pd, Kind::WrongCluster),
            (SERVER, Code::FailedPrecondition, "anything", listing, Kind::Other),
            (SERVER, Code::InvalidArgument, "the cluster id of the request does not match the TiKV cluster", read, Kind::WrongCluster),
            (SERVER, Code::InvalidArgument, "anything", any, Kind::Other),
            (SERVER, Code::Unimplemented, "", stream, Kind::Unsupported),
            (SERVER, Code::Unimplemented, "", listing, Kind::Unsupported),
            (SERVER, Code::Unimplemented, "", read, Kind::Unsupported),
            (SERVER, Code::Unimplemented, "unknown service pdpb.PD", pd, Kind::WrongService),
            (SERVER, Code::Unimplemented, "unknown service backup.Backup", any, Kind::WrongService),
            (SERVER, Code::Unimplemented, "unknown method GetMinTS", newer, Kind::Unsupported),
            (SERVER, Code::Unimplemented, "grpc-status header missing, mapped from HTTP status code 404", any, Kind::WrongService),
            (SERVER, Code::Internal, "broadcast_check_pending_admin not implemented; note: Raftstore V2 doesn't support snapshot backup yet.", listing, Kind::Unsupported),
            (SERVER, Code::Internal, "failed to decode Protobuf message: buffer underflow", any, Kind::Malformed),
            (SERVER, Code::Internal, "protocol error: received message with invalid compression flag: 60", any, Kind::WrongService),
            (SERVER, Code::Internal, "anything", any, Kind::Other),
            (LOCAL, Code::Internal, "h2 protocol error: error reading a body from connection", any, Kind::Transport),
            (SERVER, Code::Unavailable, "coprocessor not initialized", stream, Kind::Unavailable),
            (SERVER, Code::Unavailable, "not leader", pd, Kind::Unavailable),
            (LOCAL, Code::Unavailable, "tcp connect error: Connection refused", any, Kind::Unavailable),
            (LOCAL, Code::Unavailable, "invalid peer certificate: UnknownIssuer", any, Kind::Tls),
            (LOCAL, Code::Unavailable, "invalid peer certificate: certificate not valid for name \"a\"", any, Kind::Tls),
            (LOCAL, Code::Unavailable, "received corrupt message of type InvalidContentType", any, Kind::Tls),
            (SERVER, Code::Unavailable, "invalid peer certificate: not about our own connection", any, Kind::Unavailable),
            (LOCAL, Code::Unknown, "transport error: received fatal alert: CertificateRequired", any, Kind::Tls),
            (LOCAL, Code::Unknown, "transport error: HTTP/2 was not negotiated.", any, Kind::WrongService),
            (LOCAL, Code::Unknown, "transport error: broken pipe", any, Kind::Transport),
            (SERVER, Code::Unknown, "anything", any, Kind::Other),
            (SERVER, Code::DeadlineExceeded, "Deadline Exceeded", any, Kind::Timeout),
            (SERVER, Code::Unauthenticated, "Common name check fail, reason: x509_common_name from peer is not-allowed", any, Kind::Unauthenticated),
            (SERVER, Code::PermissionDenied, "", any, Kind::Unauthenticated),
            (SERVER, Code::ResourceExhausted, "Received message larger than max (5760002 vs. 4194304)", any, Kind::ResourceExhausted),
            (SERVER, Code::OutOfRange, "Error, decoded message length too large: found 5 bytes, the limit is: 4 bytes", any, Kind::ResourceExhausted),
            (SERVER, Code::OutOfRange, "anything", any, Kind::Other),
            (SERVER, Code::NotFound, "", any, Kind::Other),
            (SERVER, Code::AlreadyExists, "", any, Kind::Other),
            (SERVER, Code::Aborted, "", any, Kind::Other),
            (SERVER, Code::DataLoss, "", any, Kind::Other),
        ];
        for (local, code, words, place, kind) in rows {
            let all = [
                Place::Stream,
                Place::Listing,
                Place::Read,
                Place::Pd,
                Place::PdNewer,
            ];
            for place in all
                .into_iter()
                .filter(|each| place.is_none_or(|place| place == *each))
            {
                let seen = Seen {
                    code,
                    words,
                    local,
                    reason: None,
                };
                assert_eq!(classify(seen, place), kind, "{seen:?} at {place:?}");
            }
        }
    }

    #[test]
    fn refusals_of_tls_say_what_to_do() {
        for (words, advice) in [
            (
                "received fatal alert: CertificateRequired",
                "demands a client",
            ),
            ("received fatal alert: UnknownCA", "refuses the client"),
            (
                "invalid peer certificate: UnknownIssuer",
                "no CA certificate",
            ),
            ("received corrupt message of type X", "may not speak TLS"),
        ] {
            let error = std::io::Error::other(words);
            let dialed = dial_failure(&error);
            let mut status = Status::unknown("transport error");
            status.set_source(std::sync::Arc::new(std::io::Error::other(words)));
            for failure in [dialed, failure(&status, Place::Read)] {
                assert_eq!(failure.kind, Kind::Tls, "{failure}");
                assert!(failure.message.contains(words), "{failure}");
                assert!(failure.message.contains(advice), "{failure}");
            }
            // The server's own words are not about our connection.
            let said = failure(&Status::unavailable(words), Place::Read);
            assert!(!said.message.contains(advice), "{said}");
        }
        let other = std::io::Error::other("connection refused");
        assert_eq!(dial_failure(&other).message, "connection refused");
    }

    #[test]
    fn the_reason_of_http2_outweighs_the_code() {
        for (reason, kind) in [
            (h2::Reason::ENHANCE_YOUR_CALM, Kind::ResourceExhausted),
            (h2::Reason::REFUSED_STREAM, Kind::Unavailable),
            (h2::Reason::CANCEL, Kind::Cancelled),
            (h2::Reason::FRAME_SIZE_ERROR, Kind::WrongService),
            (h2::Reason::NO_ERROR, Kind::Transport),
            (h2::Reason::PROTOCOL_ERROR, Kind::Transport),
        ] {
            let mut status = Status::unknown("transport error");
            status.set_source(std::sync::Arc::new(h2::Error::from(reason)));
            assert_eq!(failure(&status, Place::Listing).kind, kind, "{reason:?}");
        }
    }

    #[test]
    fn words_name_the_code_and_the_causes_but_no_keys() {
        let mut status = Status::unknown("transport error");
        status.set_source(std::sync::Arc::new(std::io::Error::other("broken pipe")));
        assert_eq!(
            failure(&status, Place::Read).message,
            "UNKNOWN: transport error: broken pipe"
        );
        let status = Status::internal("bad region start_key: 7A7A");
        assert!(!failure(&status, Place::Listing).message.contains("7A7A"));
        let status = Status::unimplemented("");
        assert_eq!(
            failure(&status, Place::Listing).message,
            "UNIMPLEMENTED: (no words)"
        );
    }
}
