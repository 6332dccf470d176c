use super::wire;
use crate::cluster::StreamAnswer;
use crate::error::{Failure, FailureKind};
use crate::fuzz::play::{Asked, How, Run};
use crate::machine::{Event, RequestId};
use crate::region::ReadAnswer;
use crate::tikv::raw;

type Checked = Result<(), String>;

/// How one thing is answered.
pub(super) struct Answers<'a> {
    pub(super) how: How,
    /// Whether in the form of old servers, where there are two.
    pub(super) old: bool,
    /// Changes a message, given which one of the answer it is.
    pub(super) change: &'a dyn Fn(usize, &mut Vec<u8>),
}

impl Answers<'_> {
    /// As a sound server does.
    pub(super) fn sound() -> Self {
        Answers {
            how: How::Well,
            old: false,
            change: &|_, _| {},
        }
    }

    fn changed(&self, message: usize, mut bytes: Vec<u8>) -> Vec<u8> {
        (self.change)(message, &mut bytes);
        bytes
    }
}

/// A status that ends a call.
pub(super) struct Status {
    pub(super) code: i32,
    pub(super) message: String,
    pub(super) place: u8,
}

/// Answers the outstanding thing at `index` over the wire.
pub(super) fn answer(run: &mut Run, index: usize, answers: Answers<'_>) -> Checked {
    let Some(asked) = run.take_asked(index) else {
        return Ok(());
    };
    match asked {
        Asked::List { .. } | Asked::Scan { .. } => page(run, asked, answers),
        Asked::Claims { .. } => claims(run, asked, answers),
        Asked::Read { .. } => read(run, asked, answers),
        Asked::Lease { .. } | Asked::Finish { .. } => {
            let valid = !matches!(answers.how, How::Refuse(_));
            let bytes = answers.changed(0, wire::lease(valid));
            stream_answer(run, asked, &bytes)
        }
        Asked::Wait { .. } => {
            let event = run.world.answer(&asked, &answers.how, run.now);
            let Event::WaitApplyDone { answers: waits, .. } = &event else {
                return Err(format!("a wait is answered by {event:?}"));
            };
            let sent = waits.first().map(wire::wait).unwrap_or_default();
            let bytes = answers.changed(0, sent.clone());
            if bytes == sent && matches!(answers.how, How::Well | How::Yes) {
                let read = raw::stream_answer(&bytes);
                let same = matches!(&read, Ok(StreamAnswer::WaitApplyDone(it)) if it.target == waits[0].target && it.result.is_ok() == waits[0].result.is_ok());
                understood(same, &event)?;
            }
            stream_answer(run, asked, &bytes)
        }
        Asked::Open { .. } | Asked::End { .. } => {
            let event = run.world.answer(&asked, &How::Well, run.now);
            run.world.old.push(asked);
            run.event(event)
        }
    }
}

/// Sound bytes have to be read as what was written.
fn understood(same: bool, written: &Event) -> Checked {
    if same {
        Ok(())
    } else {
        Err(format!("sound bytes are misunderstood: {written:?}"))
    }
}

fn failed(request: RequestId, failure: Failure) -> Event {
    Event::RequestFailed { request, failure }
}

/// What PD answers in one message.
fn page(run: &mut Run, asked: Asked, answers: Answers<'_>) -> Checked {
    let written = run.world.answer(&asked, &How::Well, run.now);
    let (request, sent) = match &written {
        Event::StoresListed { request, stores } => (*request, wire::stores(stores)),
        Event::RegionsScanned { request, regions } => (*request, wire::scan(regions, answers.old)),
        other => return Err(format!("PD answers with {other:?}")),
    };
    let bytes = answers.changed(0, sent.clone());
    let read = match &asked {
        Asked::Scan { range, .. } => raw::regions(&bytes, range, answers.old)
            .map(|regions| Event::RegionsScanned { request, regions }),
        _ => raw::stores(&bytes).map(|stores| Event::StoresListed { request, stores }),
    };
    let event = read.unwrap_or_else(|failure| failed(request, failure));
    understood(bytes != sent || event == written, &written)?;
    run.world.old.push(asked);
    run.event(event)
}

/// A listing: one message for each claim; what comes before a bad one counts.
fn claims(run: &mut Run, asked: Asked, answers: Answers<'_>) -> Checked {
    let written = run.world.answer(&asked, &How::Well, run.now);
    let Event::RegionsClaimed {
        request, claims, ..
    } = &written
    else {
        return Err(format!("a listing is answered by {written:?}"));
    };
    let (mut read, mut failure, mut is_changed) = (Vec::new(), None, false);
    for (index, claim) in claims.iter().enumerate() {
        let sent = wire::claim(claim);
        let bytes = answers.changed(index, sent.clone());
        is_changed |= bytes != sent;
        match raw::claim(&bytes) {
            Ok(claim) => read.push(claim),
            Err(found) => {
                failure = Some(found);
                break;
            }
        }
    }
    let event = Event::RegionsClaimed {
        request: *request,
        claims: read,
        done: failure.is_none(),
    };
    understood(is_changed || event == written, &written)?;
    let request = *request;
    run.world.old.push(asked);
    run.event(event)?;
    match failure {
        Some(failure) => run.event(failed(request, failure)),
        None => Ok(()),
    }
}

fn read(run: &mut Run, asked: Asked, answers: Answers<'_>) -> Checked {
    let Asked::Read {
        request, target, ..
    } = asked
    else {
        return Ok(());
    };
    let written = run.world.answer(&asked, &answers.how, run.now);
    let Event::LeaderReadDone { answers: reads, .. } = &written else {
        return Err(format!("a read is answered by {written:?}"));
    };
    let sent = reads
        .first()
        .map(|answer| wire::read(answer, answers.old))
        .unwrap_or_default();
    let bytes = answers.changed(0, sent.clone());
    let event = match raw::read(&bytes, answers.old) {
        Ok(result) => {
            let served = reads.first().is_some_and(|answer| answer.result.is_ok());
            understood(bytes != sent || served == result.is_ok(), &written)?;
            Event::LeaderReadDone {
                request,
                answers: vec![ReadAnswer {
                    region_id: target.region_id,
                    epoch: target.epoch,
                    result,
                }],
            }
        }
        Err(failure) => failed(request, failure),
    };
    run.world.old.push(asked);
    run.event(event)
}

/// One message on a prepare stream, as the driver takes it: a lease answer
/// belongs to the oldest request that is not answered, whatever it was meant for,
/// and one that cannot be read ends the stream.
fn stream_answer(run: &mut Run, asked: Asked, bytes: &[u8]) -> Checked {
    let Some(stream) = asked.stream() else {
        return Ok(());
    };
    let is_of_lease = |asked: &Asked| {
        matches!(asked, Asked::Lease { .. } | Asked::Finish { .. })
            && asked.stream() == Some(stream)
    };
    match raw::stream_answer(bytes) {
        Err(failure) => end(run, stream, failure),
        Ok(StreamAnswer::WaitApplyDone(answer)) => {
            if is_of_lease(&asked) {
                // The lease is still to be answered, before all others.
                run.world.outstanding.insert(0, asked);
            } else {
                run.world.old.push(asked);
            }
            run.event(Event::WaitApplyDone {
                stream,
                answers: vec![answer],
            })
        }
        Ok(StreamAnswer::LeaseUpdated {
            last_lease_is_valid,
        }) => {
            let oldest = if is_of_lease(&asked) {
                Some(asked)
            } else {
                run.world.outstanding.push(asked);
                let index = run.world.outstanding.iter().position(is_of_lease);
                index.map(|index| run.world.outstanding.remove(index))
            };
            let Some(lease) = oldest else {
                let words = "the store answered a lease request that was not made";
                return end(run, stream, Failure::new(FailureKind::Malformed, words));
            };
            let how = if last_lease_is_valid {
                How::Yes
            } else {
                How::Refuse(crate::region::RegionErrorKind::Other)
            };
            let event = run.world.answer(&lease, &how, run.now);
            run.world.old.push(lease);
            run.event(event)
        }
    }
}

fn end(run: &mut Run, stream: RequestId, reason: Failure) -> Checked {
    run.world.end_stream(stream, reason.kind);
    run.event(Event::StreamEnded { stream, reason })
}

/// Ends the call at `index`, or its stream, with a status.
pub(super) fn fail(run: &mut Run, index: usize, status: &Status) -> Checked {
    let Some(asked) = run.take_asked(index) else {
        return Ok(());
    };
    let place = if asked.stream().is_some() {
        0
    } else {
        status.place
    };
    let failure = raw::failure(status.code, &status.message, place);
    match asked {
        Asked::List { request }
        | Asked::Claims { request, .. }
        | Asked::Read { request, .. }
        | Asked::Scan { request, .. } => {
            run.world.old.push(asked);
            run.event(failed(request, failure))
        }
        Asked::Open { stream, .. }
        | Asked::Lease { stream, .. }
        | Asked::Wait { stream, .. }
        | Asked::Finish { stream, .. }
        | Asked::End { stream } => end(run, stream, failure),
    }
}
