use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

/// The most that is handed over at once, so that a flood leaves room for others.
const MOST: usize = 1024;

/// Hands over what a stream has ready, many items at a time, and the failure
/// that ends it after the items that came before.
#[derive(Debug)]
pub(super) struct Chunks<S, E> {
    stream: S,
    held: Option<E>,
    ended: bool,
}

impl<S, T, E> Chunks<S, E>
where
    S: Stream<Item = Result<T, E>> + Unpin,
    E: Unpin,
{
    pub(super) const fn new(stream: S) -> Self {
        Self {
            stream,
            held: None,
            ended: false,
        }
    }

    /// Returns the items that are ready (waiting for the first), or how the
    /// stream ended: `None` for a good end. Nothing is lost by dropping the
    /// future.
    pub(super) async fn next(&mut self) -> Option<Result<Vec<T>, E>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<T>, E>>> {
        if let Some(error) = self.held.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let mut items = Vec::new();
        while !self.ended && items.len() < MOST {
            match Pin::new(&mut self.stream).poll_next(cx) {
                Poll::Ready(Some(Ok(item))) => items.push(item),
                Poll::Ready(Some(Err(error))) => {
                    self.ended = true;
                    self.held = Some(error);
                }
                Poll::Ready(None) => self.ended = true,
                Poll::Pending if items.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if items.is_empty() {
            Poll::Ready(self.held.take().map(Err))
        } else {
            Poll::Ready(Some(Ok(items)))
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::stream::{self, StreamExt};

    use super::*;

    fn of(
        items: Vec<Result<u32, &'static str>>,
    ) -> Chunks<impl Stream<Item = Result<u32, &'static str>> + Unpin, &'static str> {
        Chunks::new(stream::iter(items))
    }

    #[test]
    fn items_come_before_the_failure_that_ends_them() {
        let mut chunks = of(vec![Ok(1), Ok(2), Err("cut"), Ok(3)]);
        assert_eq!(chunks.next().now_or_never(), Some(Some(Ok(vec![1, 2]))));
        assert_eq!(chunks.next().now_or_never(), Some(Some(Err("cut"))));
        assert_eq!(chunks.next().now_or_never(), Some(None));
    }

    #[test]
    fn an_end_is_told_once_all_was_handed_over() {
        let mut chunks = of((0..1500).map(Ok).collect());
        let sizes: Vec<_> = std::iter::from_fn(|| chunks.next().now_or_never().flatten())
            .map(|batch| batch.expect("no failure").len())
            .collect();
        assert_eq!(sizes, [1024, 476]);
    }

    #[test]
    fn what_is_ready_does_not_wait_for_the_rest() {
        let rest = stream::pending::<Result<u32, &str>>();
        let mut chunks = Chunks::new(stream::iter([Ok(1)]).chain(rest));
        assert_eq!(chunks.next().now_or_never(), Some(Some(Ok(vec![1]))));
        assert_eq!(chunks.next().now_or_never(), None);
    }
}
