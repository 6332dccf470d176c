use std::fmt;
use std::sync::Arc;

use super::alone::{self, Alone};
use super::batch::Batch;
use super::reader::Reader;
use crate::cluster::Batches;
use crate::error::{Failure, FailureKind};
use crate::region::{ReadAnswer, ReadTarget};

/// The answers to leader reads, as they come.
pub struct TikvReads {
    reader: Arc<Reader>,
    in_flight: usize,
    way: Way,
}

/// In which way the reads are asked.
enum Way {
    InMessages(Box<Batch>),
    Alone(Alone),
}

impl TikvReads {
    /// Reads from every target, at most `in_flight` of them at a time.
    pub(in crate::tikv) async fn start(
        reader: Reader,
        targets: Vec<ReadTarget>,
        in_flight: usize,
    ) -> Result<Self, Failure> {
        let connection = reader.peer.connection().await?;
        let reader = Arc::new(reader);
        let way = if !targets.is_empty() && reader.manner.begin_batch() {
            let batch = Batch::new(Arc::clone(&reader), connection, targets, in_flight);
            Way::InMessages(Box::new(batch))
        } else {
            Way::Alone(alone::start(
                Arc::clone(&reader),
                connection,
                targets,
                in_flight,
            ))
        };
        Ok(Self {
            reader,
            in_flight,
            way,
        })
    }

    async fn read_alone(&mut self, targets: Vec<ReadTarget>) -> Result<(), Failure> {
        let connection = self.reader.peer.connection().await?;
        let reader = Arc::clone(&self.reader);
        self.way = Way::Alone(alone::start(reader, connection, targets, self.in_flight));
        Ok(())
    }
}

impl Batches<ReadAnswer> for TikvReads {
    async fn next(&mut self) -> Option<Result<Vec<ReadAnswer>, Failure>> {
        loop {
            let batch = match &mut self.way {
                Way::Alone(answers) => return answers.next().await,
                Way::InMessages(batch) => batch,
            };
            let manner = &self.reader.manner;
            let left = match batch.next().await {
                Some(Ok(answers)) if answers.is_empty() => continue,
                Some(Ok(answers)) => {
                    manner.note_served();
                    return Some(Ok(answers));
                }
                Some(Err(failure)) if batch.is_answered() => return Some(Err(failure)),
                Some(Err(failure)) if manner.note_failed(failure.kind) => batch.targets(),
                Some(Err(failure)) => return Some(Err(failure)),
                // Ended as if all were well.
                None if !batch.is_answered() && manner.note_failed(FailureKind::Malformed) => {
                    batch.targets()
                }
                None => batch.refused(),
            };
            if left.is_empty() {
                return None;
            }
            if let Err(failure) = self.read_alone(left).await {
                return Some(Err(failure));
            }
        }
    }
}

impl fmt::Debug for TikvReads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TikvReads").finish_non_exhaustive()
    }
}
