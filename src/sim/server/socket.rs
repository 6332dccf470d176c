use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::transport::server::Connected;

/// A connection that can be broken from outside.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    breaker: Breaker,
}

/// Breaks a connection; a cheap handle. Those who serve a call find that of
/// their connection among the extensions of the request.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaker(Arc<Broken>);

#[derive(Debug, Default)]
struct Broken {
    is_broken: AtomicBool,
    /// The task that serves the connection.
    server: AtomicWaker,
}

impl Breaker {
    /// Breaks the connection without a word.
    pub(super) fn trip(&self) {
        self.0.is_broken.store(true, Ordering::Release);
        self.0.server.wake();
    }

    /// Returns whether nothing but this handle and the listener's is left of
    /// the connection.
    pub(super) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl Socket {
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        // Small answers would wait for the acknowledgment of those before them.
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            breaker: Breaker::default(),
        })
    }

    pub(super) fn breaker(&self) -> Breaker {
        self.breaker.clone()
    }

    /// Fails once the connection is broken.
    fn check(&self, cx: &Context<'_>) -> io::Result<()> {
        let broken = &self.breaker.0;
        broken.server.register(cx.waker());
        if broken.is_broken.load(Ordering::Acquire) {
            // What is not sent yet shall not be sent any more.
            let _ = self.stream.set_zero_linger();
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }
}

impl Connected for Socket {
    type ConnectInfo = Breaker;

    fn connect_info(&self) -> Breaker {
        self.breaker()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
